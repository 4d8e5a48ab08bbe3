use http::{HeaderValue, header::CACHE_CONTROL};

use crate::http::{Filter, Request, Response};

/// Forbids caches between client and server to keep answers, except where a handler knows better.
pub(crate) struct CacheControl<H>(pub(crate) H);

impl<H: Filter> Filter for CacheControl<H> {
    async fn call(&self, request: Box<Request>) -> Response {
        let mut response = self.0.call(request).await;
        let private = HeaderValue::from_static("no-cache, private");
        response.headers_mut().entry(CACHE_CONTROL).or_insert(private);
        response
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::http::{
        Handler,
        testing::{Echo, request},
    };

    struct Public;

    #[async_trait]
    impl Handler for Public {
        async fn handle(&self, request: Request) -> Response {
            let mut response = Echo.handle(request).await;
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public"));
            response
        }
    }

    #[tokio::test]
    async fn answers_are_private_unless_the_handler_says_otherwise() {
        let plain = CacheControl(Echo).call(request("GET", "/").into()).await;
        assert_eq!(plain.headers()[CACHE_CONTROL], "no-cache, private");
        let public = CacheControl(Public).call(request("GET", "/").into()).await;
        assert_eq!(public.headers()[CACHE_CONTROL], "public");
    }
}
