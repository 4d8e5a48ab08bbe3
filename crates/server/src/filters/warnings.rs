use http::{HeaderValue, header::WARNING};

use crate::{
    WarningsHandle,
    http::{Filter, Request, Response},
};

/// Collects what handlers warn of and puts it on the answer.
pub(crate) struct WarningRecorder<H>(pub(crate) H);

impl<H: Filter> Filter for WarningRecorder<H> {
    async fn call(&self, mut request: Box<Request>) -> Response {
        let warnings = WarningsHandle::default();
        request.extensions_mut().insert(warnings.clone());
        let mut response = self.0.call(request).await;
        for warning in warnings.headers() {
            // Texts with control characters were left out before; all others are valid values.
            if let Ok(value) = HeaderValue::try_from(warning) {
                response.headers_mut().append(WARNING, value);
            }
        }
        response
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
            testing::{Echo, request},
        },
    };

    struct Warns(&'static [&'static str]);

    #[async_trait]
    impl Handler for Warns {
        async fn handle(&self, request: Request) -> Response {
            self.0.iter().for_each(|text| request.warnings().add(text));
            Echo.handle(request).await
        }
    }

    #[tokio::test]
    async fn warnings_become_headers() {
        let texts = &["unknown field \"é\"", "tab\there", "b", "b"];
        let response = WarningRecorder(Warns(texts)).call(request("GET", "/").into()).await;
        let values: Vec<_> = response.headers().get_all(WARNING).iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(values, ["299 - \"unknown field \\\"é\\\"\"".as_bytes(), b"299 - \"b\""]);
        let response = WarningRecorder(Warns(&[])).call(request("GET", "/").into()).await;
        assert!(!response.headers().contains_key(WARNING));
    }
}
