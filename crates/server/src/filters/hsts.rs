use http::{HeaderValue, header::STRICT_TRANSPORT_SECURITY};

use crate::http::{Filter, Request, Response};

/// Tells browsers to come back only over TLS, if the operator wants it.
pub(crate) struct Hsts<H> {
    pub(crate) inner: H,
    pub(crate) directives: Option<HeaderValue>,
}

impl<H: Filter> Filter for Hsts<H> {
    async fn call(&self, request: Box<Request>) -> Response {
        let mut response = self.inner.call(request).await;
        if let Some(directives) = &self.directives {
            response.headers_mut().entry(STRICT_TRANSPORT_SECURITY).or_insert_with(|| directives.clone());
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::{Echo, request};

    #[tokio::test]
    async fn directives_are_sent_when_there_are_any() {
        for directives in [None, Some(HeaderValue::from_static("max-age=31536000; preload"))] {
            let filter = Hsts { inner: Echo, directives: directives.clone() };
            let response = filter.call(request("GET", "/").into()).await;
            assert_eq!(response.headers().get(STRICT_TRANSPORT_SECURITY), directives.as_ref());
        }
    }
}
