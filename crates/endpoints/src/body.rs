//! Bodies that are written while they are sent.

use std::{
    io::Write as _,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use concord_meta::Status;
use concord_server::{Body, BoxError};
use flate2::{Compression, write::GzEncoder};
use http::HeaderMap;
use http_body_util::BodyExt as _;
use hyper::body::Frame;

/// How much is written at once.
pub(crate) const CHUNK: usize = 64 * 1024;
/// What is larger is compressed for clients that can read it, as upstream does.
pub(crate) const COMPRESSED: usize = 128 * 1024;

/// Where a body comes from.
pub(crate) trait Source: Send + Unpin + 'static {
    /// Adds to the buffer until there are about `enough` bytes. `false` when everything has been written.
    ///
    /// # Errors
    ///
    /// Why it cannot go on; the client sees a broken connection.
    fn fill(&mut self, enough: usize, out: &mut Vec<u8>) -> Result<bool, Status>;
}

impl Source for Box<dyn Source> {
    fn fill(&mut self, enough: usize, out: &mut Vec<u8>) -> Result<bool, Status> {
        (**self).fill(enough, out)
    }
}

/// What a source gives, piece by piece: no more than one of them is ever in memory.
pub(crate) struct Pieces<S> {
    source: S,
    more: bool,
    encoder: Option<GzEncoder<Vec<u8>>>,
}

/// A body that asks its source for more when the client has taken what there was.
struct Pulled<S>(Pieces<S>);

/// A body from a source, compressed if asked for.
pub(crate) fn pulled(source: impl Source, compress: bool) -> Body {
    Pulled(Pieces::new(source, compress)).boxed_unsync()
}

/// Whether the client can read gzip. As upstream, which knows no qualities.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let encodings = headers.get(http::header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    encodings.unwrap_or_default().split(',').any(|encoding| encoding.trim() == "gzip")
}

impl<S: Source> Pieces<S> {
    pub(crate) fn new(source: S, compress: bool) -> Self {
        // Level 1, as upstream: the network is seldom the bottleneck.
        let encoder = compress.then(|| GzEncoder::new(Vec::new(), Compression::fast()));
        Self { source, more: true, encoder }
    }

    /// Whether there may be more.
    pub(crate) fn has_more(&self) -> bool {
        self.more
    }

    /// The next piece; `None` after the last.
    ///
    /// # Errors
    ///
    /// Why there is none; the client sees a broken connection.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, Status> {
        while self.more {
            let mut plain = Vec::with_capacity(CHUNK + CHUNK / 4);
            self.more = self.source.fill(CHUNK, &mut plain).inspect_err(|status| {
                tracing::error!(%status, "A list broke off.");
            })?;
            let piece = self.compress(plain)?;
            if !piece.is_empty() {
                return Ok(Some(piece.into()));
            }
        }
        Ok(None)
    }

    fn compress(&mut self, plain: Vec<u8>) -> Result<Vec<u8>, Status> {
        let Some(mut encoder) = self.encoder.take() else { return Ok(plain) };
        encoder.write_all(&plain).map_err(Status::internal_error)?;
        if !self.more {
            return encoder.finish().map_err(Status::internal_error);
        }
        let piece = std::mem::take(encoder.get_mut());
        self.encoder = Some(encoder);
        Ok(piece)
    }
}

impl<S: Source> hyper::body::Body for Pulled<S> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let piece = self.0.next().transpose();
        Poll::Ready(piece.map(|piece| piece.map(Frame::data).map_err(BoxError::from)))
    }

    fn is_end_stream(&self) -> bool {
        !self.0.has_more()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    /// Writes a number of lines.
    struct Lines(usize);

    impl Source for Lines {
        fn fill(&mut self, enough: usize, out: &mut Vec<u8>) -> Result<bool, Status> {
            while self.0 > 0 && out.len() < enough {
                out.extend_from_slice(format!("line {}\n", self.0).as_bytes());
                self.0 -= 1;
            }
            Ok(self.0 > 0)
        }
    }

    struct Broken;

    impl Source for Broken {
        fn fill(&mut self, _: usize, _: &mut Vec<u8>) -> Result<bool, Status> {
            Err(Status::internal_error("broken"))
        }
    }

    fn expected() -> Vec<u8> {
        let mut out = Vec::new();
        Lines(100_000).fill(usize::MAX, &mut out).expect("no errors");
        out
    }

    #[tokio::test]
    async fn bodies_come_in_chunks() {
        let mut body = pulled(Lines(100_000), false);
        let mut all = Vec::new();
        while let Some(frame) = body.frame().await {
            let data = frame.expect("no errors").into_data().expect("data");
            assert!(data.len() < CHUNK + 100, "{}", data.len());
            all.extend_from_slice(&data);
        }
        assert_eq!(all, expected());
    }

    #[tokio::test]
    async fn compressed_bodies_are_the_same() {
        let body = pulled(Lines(100_000), true).collect().await.expect("no errors").to_bytes();
        assert!(body.len() < expected().len() / 2, "{}", body.len());
        let mut all = Vec::new();
        GzDecoder::new(&body[..]).read_to_end(&mut all).expect("gzip");
        assert_eq!(all, expected());
    }

    #[tokio::test]
    async fn a_source_that_breaks_off_breaks_the_body() {
        assert!(pulled(Broken, false).collect().await.is_err());
    }

    #[test]
    fn encodings_are_read_as_upstream_does() {
        for (value, expected) in
            [("gzip", true), ("deflate, gzip", true), ("gzip;q=1", false), ("", false), ("br", false)]
        {
            let headers =
                HeaderMap::from_iter([(http::header::ACCEPT_ENCODING, value.parse().expect("text"))]);
            assert_eq!(accepts_gzip(&headers), expected, "{value}");
        }
    }
}
