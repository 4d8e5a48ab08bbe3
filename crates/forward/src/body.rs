use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use concord_server::{Body, BoxError};
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};

/// The body of an answer that does something with its connection when it is gone, whether it was read to its end or not.
pub(crate) struct Carried {
    inner: Incoming,
    at_end: AtEnd,
}

/// Something to do at the end.
pub(crate) struct AtEnd(Option<Box<dyn FnOnce() + Send>>);

impl AtEnd {
    pub(crate) fn new(action: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(action)))
    }
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        if let Some(action) = self.0.take() {
            action();
        }
    }
}

impl Carried {
    pub(crate) fn boxed(inner: Incoming, at_end: AtEnd) -> Body {
        Self { inner, at_end }.boxed_unsync()
    }
}

impl HttpBody for Carried {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context).map_err(Into::into);
        if matches!(polled, Poll::Ready(None)) {
            // Whoever holds a body that has ended holds nothing else with it.
            drop(std::mem::replace(&mut self.at_end, AtEnd(None)));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
