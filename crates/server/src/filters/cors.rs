use std::sync::Arc;

use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
        ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ORIGIN,
    },
};

use crate::http::{Filter, Request, Response, full};

/// Decides whether pages of an origin may call the server from a browser.
pub type AllowedOrigins = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Lets browsers call the server from pages of other origins, where the operator allows it.
pub(crate) struct Cors<H> {
    pub(crate) inner: H,
    pub(crate) allowed: Option<AllowedOrigins>,
}

impl<H> Cors<H> {
    fn origin(&self, request: &Request) -> Option<HeaderValue> {
        let allowed = self.allowed.as_ref()?;
        let origin = request.headers().get(ORIGIN)?;
        origin.to_str().is_ok_and(|text| !text.is_empty() && allowed(text)).then(|| origin.clone())
    }
}

fn allow(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_METHODS, "POST, GET, OPTIONS, PUT, DELETE, PATCH"),
        (
            ACCESS_CONTROL_ALLOW_HEADERS,
            "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, \
             If-Modified-Since",
        ),
        (ACCESS_CONTROL_EXPOSE_HEADERS, "Date"),
        (ACCESS_CONTROL_ALLOW_CREDENTIALS, "true"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

impl<H: Filter> Filter for Cors<H> {
    async fn call(&self, request: Box<Request>) -> Response {
        let Some(origin) = self.origin(&request) else { return self.inner.call(request).await };
        // A browser asks with OPTIONS before it sends anything, and without credentials.
        let mut response = if request.method() == Method::OPTIONS {
            let mut response = Response::new(full(""));
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        } else {
            self.inner.call(request).await
        };
        allow(response.headers_mut(), origin);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::{Echo, request};

    async fn ask(method: &str, origin: Option<&'static str>, configured: bool) -> (u16, bool) {
        let allowed: AllowedOrigins = Arc::new(|origin| origin == "https://ours");
        let filter = Cors { inner: Echo, allowed: configured.then_some(allowed) };
        let mut request = request(method, "/");
        if let Some(origin) = origin {
            request.headers_mut().insert(ORIGIN, HeaderValue::from_static(origin));
        }
        let response = filter.call(request.into()).await;
        let allowed = response.headers().get(ACCESS_CONTROL_ALLOW_ORIGIN);
        assert!(allowed.is_none_or(|allowed| Some(allowed.to_str().expect("text")) == origin));
        (response.status().as_u16(), allowed.is_some())
    }

    #[tokio::test]
    async fn pages_of_allowed_origins_may_call() {
        for (method, origin, configured, expected) in [
            ("GET", Some("https://ours"), true, (200, true)),
            ("OPTIONS", Some("https://ours"), true, (204, true)),
            ("GET", Some("https://theirs"), true, (200, false)),
            ("OPTIONS", Some("https://theirs"), true, (200, false)),
            ("GET", None, true, (200, false)),
            ("OPTIONS", Some("https://ours"), false, (200, false)),
        ] {
            assert_eq!(ask(method, origin, configured).await, expected, "{method} {origin:?} {configured}");
        }
    }
}
