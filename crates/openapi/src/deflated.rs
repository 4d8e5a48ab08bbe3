//! Pieces of documents, each compressed once, which are put together without being touched.
//!
//! A piece is a run of deflate's blocks that ends at a byte and refers to nothing before it, so that pieces that follow one
//! another are one stream. What gzip says at its end about the whole follows from what is known of the pieces.

use bytes::Bytes;
use flate2::{Compress, Compression, Crc, Decompress, FlushCompress, FlushDecompress};

use crate::sendable::Sendable;

/// A piece is compressed once and sent many times, but thousands of them may be made while somebody waits.
const LEVEL: u32 = 4;

/// Room for the end of a flush, and then some.
const ROOM: usize = 64;
/// What a stream of gzip begins with: nothing is told of a file, its time or its system.
const BEGIN: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff";
/// The last block of deflate, which is empty.
const END: [u8; 2] = [0x03, 0x00];
/// Why reading cannot fail.
const OWN: &str = "what was compressed here can be read here";

/// A piece of a document.
#[derive(Debug)]
pub(crate) struct Deflated {
    bytes: Bytes,
    length: usize,
    crc: Crc,
}

impl Deflated {
    /// Compresses what follows other pieces and is followed by others.
    pub(crate) fn new(plain: &[u8]) -> Self {
        let mut compress = Compress::new(Compression::new(LEVEL), false);
        let mut bytes = Vec::with_capacity(plain.len() / 4 + ROOM);
        loop {
            let read = compress.total_in() as usize;
            let compressed = compress.compress_vec(&plain[read..], &mut bytes, FlushCompress::Sync);
            compressed.expect("all bytes can be compressed");
            // All is written once there is room left.
            if compress.total_in() as usize == plain.len() && bytes.len() < bytes.capacity() {
                break;
            }
            bytes.reserve(ROOM.max(bytes.len() / 2));
        }
        bytes.shrink_to_fit();
        Self { bytes: bytes.into(), length: plain.len(), crc: crc(plain) }
    }

    /// A few bytes, as they are.
    pub(crate) fn stored(plain: &[u8]) -> Self {
        let length = u16::try_from(plain.len()).expect("a block has room for them");
        let bytes = [&[0], &length.to_le_bytes()[..], &(!length).to_le_bytes(), plain].concat();
        Self { bytes: bytes.into(), length: plain.len(), crc: crc(plain) }
    }

    /// Adds what was compressed to something.
    pub(crate) fn read(&self, out: &mut Vec<u8>) {
        let end = out.len() + self.length;
        out.reserve_exact(self.length);
        let mut inflate = Decompress::new(false);
        while out.len() < end {
            let (read, had) = (inflate.total_in() as usize, out.len());
            inflate.decompress_vec(&self.bytes[read..], out, FlushDecompress::None).expect(OWN);
            assert!(out.len() > had, "{OWN}");
        }
    }
}

fn crc(plain: &[u8]) -> Crc {
    let mut crc = Crc::new();
    crc.update(plain);
    crc
}

/// A document while its pieces are put together.
#[derive(Debug)]
pub(crate) struct Pieces {
    pieces: Vec<Bytes>,
    length: u64,
    crc: Crc,
}

impl Pieces {
    pub(crate) fn new() -> Self {
        Self { pieces: vec![Bytes::from_static(BEGIN)], length: 0, crc: Crc::new() }
    }

    pub(crate) fn push(&mut self, piece: &Deflated) {
        self.pieces.push(piece.bytes.clone());
        self.length += piece.length as u64;
        self.crc.combine(&piece.crc);
    }

    /// The whole, in the form of gzip.
    pub(crate) fn finish(mut self) -> Sendable {
        let (sum, length) = (self.crc.sum().to_le_bytes(), self.crc.amount().to_le_bytes());
        self.pieces.push([&END[..], &sum, &length].concat().into());
        self.pieces.shrink_to_fit();
        Sendable::new(self.pieces, self.length)
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read as _, sync::Arc};

    use flate2::read::GzDecoder;
    use http_body_util::BodyExt as _;
    use hyper::body::Body as _;

    use super::*;

    /// Bytes that can be compressed a little.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b'a' + (state >> 60) as u8
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn what_is_compressed_can_be_read() {
        for length in (0..300).chain([STORED, 1_000_000]) {
            let plain = noise(length);
            let mut out = b"before".to_vec();
            Deflated::new(&plain).read(&mut out);
            assert!(out.strip_prefix(b"before") == Some(&plain), "{length}");
        }
        let mut out = Vec::new();
        Deflated::stored(b",").read(&mut out);
        assert_eq!(out, b",");
    }

    const STORED: usize = 65_535;

    #[tokio::test]
    async fn pieces_that_follow_one_another_are_one_stream_of_gzip() {
        for lengths in
            [&[][..], &[0], &[5], &[0, 1, 0], &[100_000, 3, 3, 3, 2_000_000, 64_000, 1], &[7; 9000]]
        {
            let (mut pieces, mut plain) = (Pieces::new(), Vec::new());
            for (number, length) in lengths.iter().enumerate() {
                let piece = noise(*length);
                let is_stored = number % 2 == 1 && *length <= STORED;
                pieces.push(&if is_stored { Deflated::stored(&piece) } else { Deflated::new(&piece) });
                plain.extend(piece);
            }
            let sendable = Arc::new(pieces.finish());
            for gzip in [true, false] {
                let body = sendable.body(gzip);
                let told = body.size_hint().exact().expect("a length");
                let sent = body.collect().await.expect("a body").to_bytes();
                assert_eq!(told, sent.len() as u64);
                let mut read = Vec::new();
                match gzip {
                    // Which reads one member only.
                    true => drop(GzDecoder::new(&*sent).read_to_end(&mut read).expect("gzip")),
                    false => read.extend(sent),
                }
                assert!(read == plain, "{lengths:?}");
            }
        }
    }
}
