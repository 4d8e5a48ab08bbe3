use std::sync::Arc;

use concord_meta::go;
use http::StatusCode;

use crate::{
    RequestInfo, RequestInfoError,
    http::{Filter, Request, Response, text},
};

/// Finds out what a request asks for, for everybody further in.
pub(crate) struct RequestInfoFilter<H>(pub(crate) H);

impl<H: Filter> Filter for RequestInfoFilter<H> {
    async fn call(&self, mut request: Box<Request>) -> Response {
        match RequestInfo::new(request.method(), request.uri()) {
            Ok(info) => {
                request.extensions_mut().insert(Arc::new(info));
                self.0.call(request).await
            }
            // Go's server refuses such a path before any handler sees it.
            Err(RequestInfoError::BadEscape) => text(StatusCode::BAD_REQUEST, "400 Bad Request"),
            Err(error) => {
                let uri = go::quote(&request.uri().to_string());
                let message =
                    format!("Internal Server Error: {uri}: failed to create RequestInfo: {error}\n");
                let message = message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                text(StatusCode::INTERNAL_SERVER_ERROR, message)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::{
        RequestContext as _,
        http::{
            Handler,
            testing::{read, request},
        },
    };

    struct Verb;

    #[async_trait]
    impl Handler for Verb {
        async fn handle(&self, request: Request) -> Response {
            let known = request.extensions().get::<Arc<RequestInfo>>().is_some();
            text(StatusCode::OK, format!("{known} {}", request.info().verb))
        }
    }

    #[tokio::test]
    async fn handlers_are_told_what_is_asked_for() {
        for (uri, expected) in [
            ("/api/v1/pods", (200, "true list")),
            ("/healthz", (200, "true get")),
            ("/api/v1/pods/%zz", (400, "400 Bad Request")),
            (
                "/api/v1/watch?a=%26&b",
                (
                    500,
                    "Internal Server Error: \"/api/v1/watch?a=%26&amp;b\": failed to create RequestInfo: \
                     unable to determine kind and namespace from url, /api/v1/watch?a=%26&amp;b\n",
                ),
            ),
        ] {
            let answer = read(RequestInfoFilter(Verb).call(request("GET", uri).into()).await).await;
            assert_eq!((answer.0, &*answer.1), expected, "{uri}");
        }
    }
}
