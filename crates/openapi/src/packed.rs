//! Documents as they are kept: compressed.

use std::io::{self, Read as _, Write as _};

use bytes::Bytes;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_can_be_unpacked() {
        for bytes in [&b""[..], b"abc", &b"0123456789".repeat(500_000)] {
            assert_eq!(Packed::new(bytes).plain().expect("bytes"), bytes);
        }
    }
}
