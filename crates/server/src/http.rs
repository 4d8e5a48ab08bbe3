//! The shapes of requests, responses and handlers.

use std::{error::Error, future::Future, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use serde::Serialize;

/// Any error a body can end with.
pub type BoxError = Box<dyn Error + Send + Sync>;
/// A body of any kind: complete, streamed, or still arriving.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;
/// A request on its way through the chain.
pub type Request = http::Request<Body>;
/// What the chain answers.
pub type Response = http::Response<Body>;

/// Something that answers requests: the innermost handler, or a filter around another handler.
///
/// # Cancel safety
///
/// The future is dropped when the client goes away. A handler that must finish what it began hands it to a
/// task of its own.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Answers one request. Errors are answers too, so there is no error type.
    async fn handle(&self, request: Request) -> Response;
}

#[async_trait]
impl<H: Handler + ?Sized> Handler for Arc<H> {
    async fn handle(&self, request: Request) -> Response {
        (**self).handle(request).await
    }
}

/// A handler whose future the compiler knows: what the chain is made of, so that a request costs one allocation
/// and not one for each filter.
///
/// Each future has room for its own request as well as for the future further in. In a box the request is small, and so
/// are they all together; they would be copied for every request if they were not.
pub(crate) trait Filter: Send + Sync + 'static {
    /// Answers one request.
    fn call(&self, request: Box<Request>) -> impl Future<Output = Response> + Send;
}

impl<H: Handler> Filter for H {
    fn call(&self, request: Box<Request>) -> impl Future<Output = Response> + Send {
        self.handle(*request)
    }
}

/// Filters as a handler.
pub(crate) struct Chained<F>(pub(crate) F);

#[async_trait]
impl<F: Filter> Handler for Chained<F> {
    async fn handle(&self, request: Request) -> Response {
        self.0.call(Box::new(request)).await
    }
}

/// A plain-text answer in the form Go's `http.Error` and the health endpoints give it.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Response {
    let mut response = with_body(status, "text/plain; charset=utf-8", body.into());
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// An indented JSON answer, as upstream gives it for documents that people read.
pub(crate) fn indented_json(value: &impl Serialize) -> Response {
    match serde_json::to_vec_pretty(value) {
        Ok(bytes) => with_body(StatusCode::OK, "application/json", bytes.into()),
        Err(error) => {
            tracing::error!(%error, "An answer could not be encoded.");
            text(StatusCode::INTERNAL_SERVER_ERROR, "the answer could not be encoded\n")
        }
    }
}

/// A body that is all there.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// An answer with a whole body.
pub fn with_body(status: StatusCode, content_type: &'static str, body: Bytes) -> Response {
    let mut response = Response::new(full(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// What unit tests of handlers and filters share.
#[cfg(test)]
pub(crate) mod testing {
    use http_body_util::Empty;

    use super::*;

    /// A request without a body.
    pub(crate) fn request(method: &str, uri: &str) -> Request {
        let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
        http::Request::builder().method(method).uri(uri).body(body).expect("a valid request")
    }

    /// Status and body of an answer.
    pub(crate) async fn read(response: Response) -> (u16, String) {
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a complete body").to_bytes();
        (status, String::from_utf8(body.into()).expect("text"))
    }

    /// A handler whose answers are made while they are sent.
    pub(crate) struct Streams;

    #[async_trait]
    impl Handler for Streams {
        async fn handle(&self, _: Request) -> Response {
            let piece = |_| Ok::<_, BoxError>(hyper::body::Frame::data(Bytes::from_static(b"piece")));
            let pieces = futures_util::stream::iter((0..3).map(piece));
            Response::new(http_body_util::StreamBody::new(pieces).boxed_unsync())
        }
    }

    /// A handler that answers `inner` with the request's path.
    pub(crate) struct Echo;

    #[async_trait]
    impl Handler for Echo {
        async fn handle(&self, request: Request) -> Response {
            text(StatusCode::OK, request.uri().path().to_owned())
        }
    }
}
