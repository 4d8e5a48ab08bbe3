use crate::{
    RequestContext as _, ShutdownToken,
    http::{Filter, Request, Response},
};

/// Gives requests that last the means to end in order when the server does.
pub(crate) struct WatchTermination<H> {
    pub(crate) inner: H,
    pub(crate) draining: ShutdownToken,
}

impl<H: Filter> Filter for WatchTermination<H> {
    async fn call(&self, mut request: Box<Request>) -> Response {
        if request.info().is_long_running() {
            request.extensions_mut().insert(self.draining.clone());
        }
        self.inner.call(request).await
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use http::StatusCode;

    use super::*;
    use crate::http::{
        Handler,
        testing::{read, request},
        text,
    };

    struct Tells;

    #[async_trait]
    impl Handler for Tells {
        async fn handle(&self, request: Request) -> Response {
            text(StatusCode::OK, request.shutdown().has_begun().to_string())
        }
    }

    #[tokio::test]
    async fn watches_learn_of_the_end_and_others_are_left_alone() {
        let draining = ShutdownToken::default();
        draining.0.cancel();
        for (uri, told) in [("/api/v1/pods?watch=1", "true"), ("/api/v1/pods", "false")] {
            let filter = WatchTermination { inner: Tells, draining: draining.clone() };
            assert_eq!(read(filter.call(request("GET", uri).into()).await).await.1, told, "{uri}");
        }
    }
}
