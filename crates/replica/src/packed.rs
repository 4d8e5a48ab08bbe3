use std::ops::Range;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// The stream waits while a value is packed. Of 20 KB of a definition with descriptions level 1, which knows only
/// one code, leaves 44% (in 36 µs); level 2 leaves 33% (66 µs) and level 6 30% (130 µs).
const LEVEL: u32 = 2;
/// A buffer that was made larger than this for one value is not kept for the next.
const BUFFER_BYTES: usize = 64 << 10;
/// What is found again may be 32 KiB away. So a value that is packed with another one is packed in parts of so many
/// bytes, each with what is at the same place of the other one and so much before and after it.
const PART_BYTES: usize = 20 << 10;
const AROUND_BYTES: usize = 6 << 10;

/// Packs values, one after the other. What it needs for that, a few hundred KiB, is made for the first.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    deflate: Option<Compress>,
    buffer: Vec<u8>,
}

/// A value in its packed form. What it was packed with is needed to unpack it.
#[derive(Debug)]
pub(crate) struct Packed {
    bytes: Box<[u8]>,
    /// The length of the value.
    len: usize,
}

impl Packer {
    /// The packed form of a value; `None` if that saves less than half of it. `with` may be any other value, or empty;
    /// of what both have in common next to nothing is left.
    pub(crate) fn pack(&mut self, value: &[u8], with: &[u8]) -> Option<Packed> {
        // With no room for more it gives up half way on what cannot be packed.
        self.buffer.resize(value.len() / 2, 0);
        let written = self.fill(value, with);
        let bytes = written.and_then(|written| self.buffer.get(..written));
        let packed = bytes.map(|bytes| Packed { bytes: bytes.into(), len: value.len() });
        if self.buffer.capacity() > BUFFER_BYTES {
            self.buffer = Vec::new();
        }
        packed
    }

    /// How many bytes of the buffer the packed form takes, if it fits.
    fn fill(&mut self, value: &[u8], with: &[u8]) -> Option<usize> {
        let deflate = self.deflate.get_or_insert_with(|| Compress::new(Compression::new(LEVEL), false));
        let mut written = 0;
        for part in parts(value.len(), with) {
            deflate.reset();
            if !with.is_empty() {
                deflate.set_dictionary(around(with, &part)).ok()?;
            }
            let room = &mut self.buffer[written..];
            let status = deflate.compress(&value[part], room, FlushCompress::Finish).ok()?;
            written += usize::try_from(deflate.total_out()).ok()?;
            (status == Status::StreamEnd).then_some(())?;
        }
        Some(written)
    }
}

impl Packed {
    /// The value, by the other one that it was packed with.
    pub(crate) fn unpack(&self, with: &[u8]) -> Vec<u8> {
        let mut value = vec![0; self.len];
        let is_whole = self.fill(&mut value, with).is_some();
        assert!(is_whole, "what was packed here can be unpacked");
        value
    }

    fn fill(&self, value: &mut [u8], with: &[u8]) -> Option<()> {
        let mut inflate = Decompress::new(false);
        let mut read = 0;
        for part in parts(self.len, with) {
            inflate.reset(false);
            if !with.is_empty() {
                inflate.set_dictionary(around(with, &part)).ok()?;
            }
            let len = part.len() as u64;
            let status = inflate.decompress(&self.bytes[read..], &mut value[part], FlushDecompress::Finish);
            read += usize::try_from(inflate.total_in()).ok()?;
            (matches!(status, Ok(Status::StreamEnd)) && inflate.total_out() == len).then_some(())?;
        }
        Some(())
    }

    /// What it takes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// The parts of a value of so many bytes.
fn parts(len: usize, with: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let step = if with.is_empty() { len.max(1) } else { PART_BYTES };
    (0..len).step_by(step).map(move |start| start..len.min(start + step))
}

/// What is at about the same place of another value; nothing if that one ends before.
fn around<'a>(with: &'a [u8], part: &Range<usize>) -> &'a [u8] {
    let end = with.len().min(part.start + PART_BYTES + AROUND_BYTES);
    let start = end.min(part.start.saturating_sub(AROUND_BYTES));
    &with[start..end]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_packed_is_smaller_and_can_be_unpacked(
            pieces in prop::collection::vec((any::<u8>(), 1_usize..500), 0..200),
            noise in prop::collection::vec(any::<u8>(), 0..4000),
            longer in any::<bool>(),
        ) {
            let mut packer = Packer::default();
            let mut value: Vec<u8> = noise;
            for (byte, times) in pieces {
                value.resize(value.len() + times, byte);
            }
            let other = [&value[..value.len() / 2], b"else", &value[value.len() / 3..]].concat();
            let other = other.repeat(1 + usize::from(longer));
            // Many times, because a packer is used for many.
            for with in [&other[..], &[], &value, &value[..value.len() / 4]] {
                if let Some(packed) = packer.pack(&value, with) {
                    prop_assert!(packed.len() <= value.len() / 2);
                    prop_assert_eq!(packed.unpack(with), value.clone());
                }
            }
        }
    }

    #[test]
    fn text_is_packed_and_noise_is_not() {
        let mut packer = Packer::default();
        let text = "the quick brown fox jumps over the lazy dog, ".repeat(500);
        let packed = packer.pack(text.as_bytes(), &[]).expect("it is repetitive");
        assert!(packed.len() < text.len() / 10);
        let next = |n: &u32| Some(n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        let numbers = std::iter::successors(Some(1_u32), next);
        let noise: Vec<u8> = numbers.map(|number| (number >> 24) as u8).take(10_000).collect();
        assert!(packer.pack(&noise, &[]).is_none());
        assert_eq!(packed.unpack(&[]), text.as_bytes());
        assert!(packer.pack(&vec![0; 1 << 20], &[]).is_some());
        assert_eq!(packer.buffer.capacity(), 0, "a large buffer is let go of");
    }
}
