use std::{
    io::{self, Write as _},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, Bytes};
use flate2::{Compression, write::GzEncoder};
use http::{
    HeaderMap, HeaderValue,
    header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, VARY},
};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Frame};

use crate::http::{Body, BoxError, Filter, Request, Response};

/// Bodies up to this size are not worth the work; upstream's bound.
const THRESHOLD: u64 = 128 * 1024;
/// The least work; higher levels gain little on API objects. Upstream's level.
const LEVEL: u32 = 1;
/// How much is compressed at a time: other requests get their turn in between, and a client that does not
/// read holds no more than this in compressed form.
const STEP: usize = 64 * 1024;

/// Compresses large answers for clients that accept it. Only bodies whose length is known are touched:
/// a watch has none, and its events must not wait in a compressor.
pub(crate) struct Gzip<H>(pub(crate) H);

impl<H: Filter> Filter for Gzip<H> {
    async fn call(&self, request: Box<Request>) -> Response {
        let accepted = accepts_gzip(request.headers());
        let mut response = self.0.call(request).await;
        if accepted && let Some(length) = length_worth_it(&response) {
            response.extensions_mut().insert(PlainLength(length));
            compress(&mut response);
        }
        response
    }
}

/// How long a body was before it was compressed: an extension of the answer.
#[derive(Clone, Copy)]
pub(super) struct PlainLength(pub(super) u64);

/// Upstream's reading: the word itself, without weights.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.split(',').any(|encoding| encoding.trim() == "gzip"))
}

fn length_worth_it(response: &Response) -> Option<u64> {
    let length = response.body().size_hint().exact().filter(|length| *length > THRESHOLD);
    length.filter(|_| !response.headers().contains_key(CONTENT_ENCODING))
}

fn compress(response: &mut Response) {
    let headers = response.headers_mut();
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    let body = std::mem::take(response.body_mut());
    let encoder = GzEncoder::new(Vec::with_capacity(STEP), Compression::new(LEVEL));
    let compressed = Compressed { inner: body, pending: Bytes::new(), encoder: Some(encoder) };
    *response.body_mut() = compressed.boxed_unsync();
}

/// A body, compressed as it is asked for.
struct Compressed {
    inner: Body,
    /// What came from `inner` and is not compressed yet.
    pending: Bytes,
    /// `None` once the end was written.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl Compressed {
    /// Compresses a step of what is pending; what comes out of it, if anything does yet.
    fn step(&mut self) -> io::Result<Option<Bytes>> {
        let Some(encoder) = &mut self.encoder else { return Ok(None) };
        let length = self.pending.len().min(STEP);
        encoder.write_all(&self.pending[..length])?;
        self.pending.advance(length);
        let out = encoder.get_mut();
        Ok((!out.is_empty()).then(|| std::mem::take(out).into()))
    }

    fn finish(&mut self) -> Option<io::Result<Bytes>> {
        Some(self.encoder.take()?.finish().map(Bytes::from))
    }
}

impl hyper::body::Body for Compressed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            while !self.pending.is_empty() {
                if let Some(bytes) = self.step()? {
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
            }
            match ready!(Pin::new(&mut self.inner).poll_frame(context)).transpose()? {
                // Trailers have no place in a compressed body.
                Some(frame) => self.pending = frame.into_data().unwrap_or_default(),
                None => {
                    let end = self.finish().transpose()?;
                    return Poll::Ready(end.map(|bytes| Ok(Frame::data(bytes))));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use async_trait::async_trait;
    use flate2::read::GzDecoder;
    use futures_util::stream;
    use http::StatusCode;
    use http_body_util::StreamBody;

    use super::*;
    use crate::http::{Handler, testing::request, with_body};

    /// Answers with this many bytes, of known length or as a stream.
    struct Answers {
        length: usize,
        stream: bool,
        encoded: bool,
    }

    fn content(length: usize) -> Vec<u8> {
        (0..length).map(|n| b"kubernetes "[n % 11].wrapping_add((n / 4096) as u8)).collect()
    }

    #[async_trait]
    impl Handler for Answers {
        async fn handle(&self, _: Request) -> Response {
            let mut response = with_body(StatusCode::OK, "application/json", content(self.length).into());
            if self.stream {
                let frame = Frame::data(Bytes::from(content(self.length)));
                *response.body_mut() = StreamBody::new(stream::iter([Ok(frame)])).boxed_unsync();
            }
            if self.encoded {
                response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("br"));
            }
            response
        }
    }

    async fn ask(accept: &'static str, answers: Answers) -> Response {
        let mut request = request("GET", "/");
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static(accept));
        Gzip(answers).call(request.into()).await
    }

    #[tokio::test]
    async fn large_answers_are_compressed_for_those_who_accept_it() {
        let large = 128 * 1024 + 1;
        for (accept, length, stream, encoded, compressed) in [
            ("gzip", large, false, false, true),
            ("deflate, gzip ,br", large, false, false, true),
            ("gzip", large - 1, false, false, false),
            ("gzip", large, true, false, false),
            ("gzip", large, false, true, false),
            ("gzip;q=1", large, false, false, false),
            ("", large, false, false, false),
        ] {
            let response = ask(accept, Answers { length, stream, encoded }).await;
            let gzip = response.headers().get(CONTENT_ENCODING).is_some_and(|encoding| encoding == "gzip");
            assert_eq!(gzip, compressed, "{accept} {length} {stream} {encoded}");
            assert_eq!(response.headers().contains_key(VARY), compressed);
        }
    }

    #[tokio::test]
    async fn what_is_compressed_can_be_read_again() {
        for length in [128 * 1024 + 1, 3 * STEP, 5_000_000] {
            let response = ask("gzip", Answers { length, stream: false, encoded: false }).await;
            let bytes = response.into_body().collect().await.expect("complete").to_bytes();
            assert!(bytes.len() < length / 4, "{} of {length}", bytes.len());
            let mut plain = Vec::new();
            GzDecoder::new(&*bytes).read_to_end(&mut plain).expect("valid");
            assert!(plain == content(length), "{length}");
        }
    }

    #[tokio::test]
    async fn an_error_of_the_body_is_passed_on() {
        let frames = vec![Ok(Frame::data(Bytes::from(content(STEP)))), Err(BoxError::from("broken"))];
        let inner = StreamBody::new(stream::iter(frames)).boxed_unsync();
        let encoder = Some(GzEncoder::new(Vec::new(), Compression::new(LEVEL)));
        let body = Compressed { inner, pending: Bytes::new(), encoder };
        assert_eq!(body.collect().await.expect_err("broken").to_string(), "broken");
    }
}
