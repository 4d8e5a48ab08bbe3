//! Bodies that somebody looks at on their way.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};

use crate::http::{Body, BoxError, Response};

/// What a body says when it is asked for more.
pub(crate) type Polled = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

/// Sees what a body gives, and is dropped when it has been sent or nobody wants it any more: just before the body is.
pub(crate) trait Witness: Send + Unpin + 'static {
    /// The body was asked for more. `ended` if there is none: nobody asks again then.
    fn saw(&mut self, _polled: &Polled, _ended: bool) {}
}

/// The same answer, seen by `witness`.
pub(crate) fn witnessed(response: Response, witness: impl Witness) -> Response {
    response.map(|body| Witnessed { witness, body }.boxed_unsync())
}

struct Witnessed<W> {
    // Before the body, so that it is dropped first.
    witness: W,
    body: Body,
}

impl<W: Witness> hyper::body::Body for Witnessed<W> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let ended = match &polled {
            // Nobody asks for the end of a body that says it has reached it.
            Poll::Ready(Some(Ok(_))) => self.body.is_end_stream(),
            Poll::Ready(_) => true,
            Poll::Pending => false,
        };
        self.witness.saw(&polled, ended);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
