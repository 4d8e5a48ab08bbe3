//! Documents as they are kept: compressed.

use std::{
    collections::VecDeque,
    io::{self, Read as _, Write as _},
    sync::Arc,
};

use bytes::Bytes;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use parking_lot::Mutex;

/// Larger documents are compressed with less care, so that nobody has to wait for it.
const LARGE: usize = 4 * 1024 * 1024;

/// Bytes that are kept compressed, since most clients take them so.
#[derive(Debug, Clone)]
pub(crate) struct Packed {
    gzip: Bytes,
    length: usize,
}

impl Packed {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let level = if bytes.len() > LARGE { Compression::fast() } else { Compression::default() };
        let mut encoder = GzEncoder::new(Vec::new(), level);
        let gzip = encoder.write_all(bytes).and_then(|()| encoder.finish());
        let mut gzip = gzip.expect("memory takes all that is written to it");
        gzip.shrink_to_fit();
        Self { gzip: gzip.into(), length: bytes.len() }
    }

    /// What was packed, unless it is longer than the limit.
    ///
    /// # Errors
    ///
    /// When it is longer, or was not packed.
    pub(crate) fn unpack(gzip: &[u8], limit: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        GzDecoder::new(gzip).take(limit as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > limit {
            return Err(io::Error::other("it is too long"));
        }
        Ok(bytes)
    }

    /// In the form of gzip.
    pub(crate) fn gzip(&self) -> Bytes {
        self.gzip.clone()
    }

    /// The bytes themselves.
    ///
    /// # Errors
    ///
    /// When what is kept was damaged.
    pub(crate) fn plain(&self) -> io::Result<Bytes> {
        let mut bytes = Vec::with_capacity(self.length);
        GzDecoder::new(&*self.gzip).read_to_end(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// How many documents are kept as they are: those of a definition that has just changed, which somebody may wait for.
const RECENT: usize = 8;

/// Documents that were made to know their hashes, for whoever reads the index and asks for them next.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<VecDeque<(Arc<str>, Vec<u8>)>>);

impl Recent {
    /// Keeps a document, in the place of the oldest.
    pub(crate) fn keep(&self, hash: &Arc<str>, json: Vec<u8>) {
        let mut kept = self.0.lock();
        if kept.len() == RECENT {
            kept.pop_front();
        }
        kept.push_back((hash.clone(), json));
    }

    /// The document of a hash, which is kept elsewhere from now on.
    pub(crate) fn take(&self, hash: &Arc<str>) -> Option<Vec<u8>> {
        let mut kept = self.0.lock();
        let at = kept.iter().position(|(known, _)| known == hash)?;
        kept.remove(at).map(|(_, json)| json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_documents_are_kept_until_they_are_taken() {
        let recent = Recent::default();
        let hashes: Vec<Arc<str>> = (0..=RECENT).map(|n| n.to_string().into()).collect();
        hashes.iter().for_each(|hash| recent.keep(hash, hash.as_bytes().to_vec()));
        assert_eq!(recent.take(&hashes[0]), None);
        assert_eq!(recent.take(&hashes[1]).as_deref(), Some(&b"1"[..]));
        assert_eq!(recent.take(&hashes[1]), None);
    }

    #[test]
    fn what_is_packed_can_be_unpacked() {
        for bytes in [&b""[..], b"abc", &b"0123456789".repeat(500_000)] {
            assert_eq!(Packed::new(bytes).plain().expect("bytes"), bytes);
        }
    }
}
