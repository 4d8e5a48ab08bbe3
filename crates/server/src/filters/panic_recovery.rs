use std::{any::Any, panic::AssertUnwindSafe};

use futures_util::FutureExt as _;
use http::{HeaderValue, StatusCode, header::CACHE_CONTROL};

use crate::http::{Filter, Request, Response, text};

/// Turns a panic of whatever is further in into a 500 and a log entry. The connection and its other requests
/// go on.
pub(crate) struct PanicRecovery<H>(pub(crate) H);

impl<H: Filter> Filter for PanicRecovery<H> {
    async fn call(&self, request: Box<Request>) -> Response {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        // Unwind safety: handlers keep what outlives a request behind locks that do not poison, and
        // publish only complete values.
        match AssertUnwindSafe(self.0.call(request)).catch_unwind().await {
            Ok(response) => response,
            Err(panic) => {
                let panic = message(&*panic);
                tracing::error!(%method, path = uri.path(), panic, "A request made its handler panic.");
                let message = "the request made the server panic, see its log\n";
                let mut response = text(StatusCode::INTERNAL_SERVER_ERROR, message);
                // The filter that says this of all answers was among those that unwound.
                let private = HeaderValue::from_static("no-cache, private");
                response.headers_mut().insert(CACHE_CONTROL, private);
                response
            }
        }
    }
}

/// What `panic!` was given.
pub(super) fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("of unknown kind")
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::http::{
        Handler,
        testing::{Echo, read, request},
    };

    struct Panics;

    #[async_trait]
    impl Handler for Panics {
        async fn handle(&self, request: Request) -> Response {
            tokio::task::yield_now().await;
            panic!("asked for {}", request.uri().path());
        }
    }

    #[tokio::test]
    async fn a_panic_is_an_answer_that_keeps_its_reason_to_itself() {
        let (status, body) = read(PanicRecovery(Panics).call(request("GET", "/secret").into()).await).await;
        assert_eq!(status, 500);
        assert!(body.contains("panic") && !body.contains("secret"), "{body}");
    }

    #[tokio::test]
    async fn an_answer_passes_unchanged() {
        assert_eq!(
            read(PanicRecovery(Echo).call(request("GET", "/a").into()).await).await,
            (200, "/a".to_owned())
        );
    }

    #[test]
    fn panics_of_every_kind_have_a_message() {
        assert_eq!(message(&"text"), "text");
        assert_eq!(message(&"formatted".to_owned()), "formatted");
        assert_eq!(message(&7), "of unknown kind");
    }
}
