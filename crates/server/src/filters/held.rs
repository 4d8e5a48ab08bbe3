use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Frame, SizeHint};

use crate::{Body, BoxError, http::Response, sending::SMALL};

/// Keeps `guard` until all of an answer has been made. Lists are made while they are sent: an answer whose head exists
/// may have most of its work before it. The answer must not be one that lasts.
pub(super) fn hold(response: Response, guard: impl Send + Unpin + 'static) -> Response {
    // What is this small is there already, and most answers are.
    if response.body().size_hint().upper().is_some_and(|length| length <= SMALL) {
        return response;
    }
    response.map(|body| Held { body, guard: Some(guard) }.boxed_unsync())
}

/// A body that gives something back at its end, or when nobody wants it any more.
struct Held<G> {
    body: Body,
    guard: Option<G>,
}

impl<G: Send + Unpin> hyper::body::Body for Held<G> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        // Nobody asks for the end of a body that says it has reached it.
        let ended = match &polled {
            Poll::Ready(Some(Ok(_))) => self.body.is_end_stream(),
            Poll::Ready(_) => true,
            Poll::Pending => false,
        };
        if ended {
            self.guard = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::stream;
    use http_body_util::StreamBody;

    use super::*;
    use crate::http::full;

    fn pieces(count: usize) -> Body {
        let piece = |_| Ok::<_, BoxError>(Frame::data(Bytes::from_static(b"piece")));
        StreamBody::new(stream::iter((0..count).map(piece))).boxed_unsync()
    }

    #[tokio::test]
    async fn it_is_kept_while_an_answer_is_made() {
        let guard = Arc::new(());
        let is_held = || Arc::strong_count(&guard) > 1;
        let mut body = hold(Response::new(pieces(2)), guard.clone()).into_body();
        for _ in 0..2 {
            assert!(body.frame().await.is_some() && is_held(), "there may be more");
        }
        assert!(body.frame().await.is_none() && !is_held());
        drop(hold(Response::new(pieces(2)), guard.clone()));
        assert!(!is_held(), "whoever goes away gives it back");
    }

    #[tokio::test]
    async fn what_has_been_made_holds_nothing() {
        let guard = Arc::new(());
        let is_held = || Arc::strong_count(&guard) > 1;
        let _small = hold(Response::new(full("small")), guard.clone());
        assert!(!is_held());
        let mut body = hold(Response::new(full(vec![0; 1 << 20])), guard.clone()).into_body();
        assert!(is_held());
        assert!(body.frame().await.is_some() && !is_held(), "all of it was taken");
    }
}
