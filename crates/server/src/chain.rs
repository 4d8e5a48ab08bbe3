//! The way of a request through the server.

use std::sync::Arc;

use crate::{
    filters::{AuditId, CacheControl, PanicRecovery},
    http::Handler,
};

/// Builds the handler chain around `routes`. As in upstream's function of this kind, each line wraps the
/// lines above it: **the last line is the outermost filter**, the first to see a request and the last to see
/// its answer.
pub(crate) fn build(routes: impl Handler) -> Arc<dyn Handler> {
    let handler = routes;
    // Innermost of all filters, so that a panic still becomes an answer with everybody's headers on it.
    let handler = PanicRecovery(handler);
    // Outside of everything that makes answers, errors and panics included: none of them may be cached.
    let handler = CacheControl(handler);
    // Outermost: from here on, whatever is logged or answered about the request can name it.
    let handler = AuditId(handler);
    Arc::new(handler)
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::http::{Request, Response, testing::request};

    struct Panics;

    #[async_trait]
    impl Handler for Panics {
        async fn handle(&self, request: Request) -> Response {
            assert!(request.headers().contains_key("audit-id"), "the id comes before everything else");
            panic!("on purpose");
        }
    }

    #[tokio::test]
    async fn even_the_answer_to_a_panic_has_every_header() {
        let response = build(Panics).handle(request("GET", "/")).await;
        assert_eq!(response.status(), 500);
        assert_eq!(response.headers()["cache-control"], "no-cache, private");
        assert!(response.headers().contains_key("audit-id"));
    }
}
