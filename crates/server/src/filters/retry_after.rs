use http::{
    HeaderValue, StatusCode,
    header::{CONNECTION, RETRY_AFTER, USER_AGENT},
};

use crate::{
    RequestContext as _, ShutdownToken,
    http::{Filter, Request, Response, text},
};

/// What is answered to the very end: who watches a server end must see it.
const EXEMPT_PATHS: [&str; 4] = ["/readyz", "/livez", "/healthz", "/metrics"];

/// Once the server drains, sends new requests elsewhere: to another server, over another connection.
pub(crate) struct RetryAfter<H> {
    pub(crate) inner: H,
    pub(crate) draining: ShutdownToken,
}

/// The header of requests that another server of the fleet sends on: this may be the only one that can answer them.
const SENT_ON: &str = "x-kubernetes-peer-proxied";

/// Whether a request is answered even while the server ends. Requests of a server to itself or its peers
/// are part of answering others, which are waited for. Whoever claims to be one gets nothing but an answer.
fn is_exempt(request: &Request) -> bool {
    let user_agent = request.headers().get(USER_AGENT).map_or(&b""[..], HeaderValue::as_bytes);
    let path = request.uri().path();
    user_agent.starts_with(b"kube-apiserver/")
        || request.headers().contains_key(SENT_ON)
        || EXEMPT_PATHS.iter().any(|prefix| path.starts_with(prefix))
}

impl<H: Filter> Filter for RetryAfter<H> {
    async fn call(&self, request: Box<Request>) -> Response {
        if !self.draining.has_begun() || is_exempt(&request) {
            return self.inner.call(request).await;
        }
        let http2 = request.version() == http::Version::HTTP_2;
        request.connection().close();
        let message = "The apiserver is shutting down, please try again later.\n";
        let mut response = text(StatusCode::TOO_MANY_REQUESTS, message);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
        // HTTP/2 has a frame for this, and forbids the header.
        if !http2 {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::{Echo, request};

    async fn status(draining: bool, uri: &str, user_agent: &'static str) -> u16 {
        let token = ShutdownToken::default();
        if draining {
            token.0.cancel();
        }
        let mut request = request("GET", uri);
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(user_agent));
        let response = RetryAfter { inner: Echo, draining: token }.call(request.into()).await;
        if response.status() == 429 {
            assert_eq!(response.headers()[RETRY_AFTER], "5");
            assert_eq!(response.headers()[CONNECTION], "close");
            assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
        }
        response.status().as_u16()
    }

    #[tokio::test]
    async fn new_requests_are_sent_away_only_while_draining() {
        for (draining, uri, user_agent, expected) in [
            (false, "/api/v1/pods", "kubectl", 200),
            (true, "/api/v1/pods", "kubectl", 429),
            (true, "/version", "", 429),
            (true, "/readyz", "kubectl", 200),
            (true, "/livez/ping", "kubectl", 200),
            (true, "/metrics", "", 200),
            (true, "/api/v1/pods", "kube-apiserver/v1.36", 200),
        ] {
            assert_eq!(status(draining, uri, user_agent).await, expected, "{draining} {uri} {user_agent}");
        }
    }

    #[tokio::test]
    async fn what_another_server_sends_on_is_answered_to_the_end() {
        let token = ShutdownToken::default();
        token.0.cancel();
        let mut request = request("POST", "/api/v1/namespaces/a/pods");
        request.headers_mut().insert(SENT_ON, HeaderValue::from_static("true"));
        let response = RetryAfter { inner: Echo, draining: token }.call(request.into()).await;
        assert_eq!(response.status(), 200);
    }
}
