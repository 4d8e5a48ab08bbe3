//! Reading what a client sends, within bounds.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use concord_meta::Status;
use http_body_util::BodyExt as _;
use tokio::time::timeout;

use crate::{Body, BoxError, Deadline};

/// What a request body may have at most, as upstream: 3 MiB.
pub const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

/// How much of a body that is too large is still taken from the client, and how long. A client that is in
/// the middle of sending reads the refusal only if the connection is not cut under it.
const DISCARD_BYTES: usize = 8 * 1024 * 1024;
const DISCARD_TIME: Duration = Duration::from_secs(5);

/// Reads a whole body.
///
/// # Errors
///
/// 413 for more than `limit` bytes, 504 when `deadline` passes first, 400 when the client breaks off.
///
/// # Cancel safety
///
/// What was read is lost.
pub async fn read_body(body: &mut Body, limit: usize, deadline: Deadline) -> Result<Bytes, Status> {
    tokio::select! {
        read = read(body, limit) => match read {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => {
                // Whether all of it was taken or not, the answer is the same.
                drop(timeout(DISCARD_TIME, discard(body)).await);
                Err(Status::request_entity_too_large(format_args!("limit is {limit}")))
            }
            Err(error) => Err(Status::bad_request(error.to_string())),
        },
        () = deadline.passed() => Err(Status::request_timeout()),
    }
}

/// `None` if there is more than `limit`. Memory grows only with what really arrived, whatever length the
/// client announced.
async fn read(body: &mut Body, limit: usize) -> Result<Option<Bytes>, BoxError> {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if first.len() + all.len() + data.len() > limit {
            return Ok(None);
        }
        // Most bodies are one frame, which needs no copy.
        match (first.is_empty(), all.is_empty()) {
            (true, true) => first = data,
            (_, collecting) => {
                if collecting {
                    all.extend_from_slice(&std::mem::take(&mut first));
                }
                all.extend_from_slice(&data);
            }
        }
    }
    Ok(Some(if all.is_empty() { first } else { all.freeze() }))
}

async fn discard(body: &mut Body) {
    let mut discarded = 0;
    while let Some(Ok(frame)) = body.frame().await {
        discarded += frame.data_ref().map_or(0, Bytes::len);
        if discarded > DISCARD_BYTES {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use tokio::time::Instant;

    use super::*;

    fn body(chunks: &[&'static str]) -> Body {
        let frames: Vec<_> =
            chunks.iter().map(|chunk| Ok(Frame::data(Bytes::from_static(chunk.as_bytes())))).collect();
        StreamBody::new(stream::iter(frames)).boxed_unsync()
    }

    async fn read(chunks: &[&'static str], limit: usize) -> Result<String, u16> {
        let bytes = read_body(&mut body(chunks), limit, Deadline::NONE).await;
        bytes.map(|bytes| String::from_utf8(bytes.to_vec()).expect("text")).map_err(|status| status.code)
    }

    #[tokio::test]
    async fn bodies_are_read_up_to_the_limit() {
        assert_eq!(read(&[], 3).await, Ok(String::new()));
        assert_eq!(read(&["abc"], 3).await, Ok("abc".to_owned()));
        assert_eq!(read(&["a", "", "bc"], 3).await, Ok("abc".to_owned()));
        assert_eq!(read(&["", "ab", "c"], 3).await, Ok("abc".to_owned()));
        assert_eq!(read(&["abcd"], 3).await, Err(413));
        assert_eq!(read(&["abc", "d", "e"], 3).await, Err(413));
        let refusal = read_body(&mut body(&["abcd"]), 3, Deadline::NONE).await.expect_err("too large");
        assert_eq!(refusal.message, "Request entity too large: limit is 3");
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_a_bad_request() {
        let frames: Vec<Result<Frame<Bytes>, BoxError>> =
            vec![Ok(Frame::data(Bytes::from_static(b"a"))), Err("gone".into())];
        let mut body = StreamBody::new(stream::iter(frames)).boxed_unsync();
        let status = read_body(&mut body, 9, Deadline::NONE).await.expect_err("incomplete");
        assert_eq!((status.code, &*status.message), (400, "gone"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_go_on_is_given_up() {
        let stuck = || StreamBody::new(stream::pending::<Result<Frame<Bytes>, BoxError>>()).boxed_unsync();
        let begun = Instant::now();
        let deadline = Deadline::at(begun + Duration::from_secs(60));
        let status = read_body(&mut stuck(), 9, deadline).await.expect_err("late");
        assert_eq!((status.code, begun.elapsed()), (504, Duration::from_secs(60)));

        use futures_util::StreamExt as _;
        let large =
            stream::iter([Ok(Frame::data(Bytes::from_static(b"too large")))]).chain(stream::pending());
        let status = read_body(&mut StreamBody::new(large).boxed_unsync(), 3, Deadline::NONE).await;
        assert_eq!(status.expect_err("too large").code, 413, "although the client never ends");
    }
}
