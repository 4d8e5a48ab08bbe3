use hyper::body::Body as _;

use crate::{
    http::Response,
    sending::SMALL,
    witness::{Polled, Witness, witnessed},
};

/// Keeps `guard` until all of an answer has been made. Lists are made while they are sent: an answer whose head exists
/// may have most of its work before it. The answer must not be one that lasts.
pub(super) fn hold(response: Response, guard: impl Send + Unpin + 'static) -> Response {
    // What is this small is there already, and most answers are.
    if response.body().size_hint().upper().is_some_and(|length| length <= SMALL) {
        return response;
    }
    witnessed(response, Held(Some(guard)))
}

/// Gives something back at the end of a body, or when nobody wants it any more.
struct Held<G>(Option<G>);

impl<G: Send + Unpin + 'static> Witness for Held<G> {
    fn saw(&mut self, _: &Polled, ended: bool) {
        if ended {
            self.0 = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use futures_util::stream;
    use http_body_util::{BodyExt as _, StreamBody};
    use hyper::body::Frame;

    use super::*;
    use crate::http::{Body, BoxError, full};

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
