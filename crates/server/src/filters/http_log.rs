use http::header::USER_AGENT;

use crate::{
    RequestContext as _,
    http::{Filter, Request, Response},
};

/// Logs each request and what became of it, when somebody listens at the debug level. A stream is logged
/// when it begins.
pub(crate) struct HttpLog<H>(pub(crate) H);

impl<H: Filter> Filter for HttpLog<H> {
    async fn call(&self, request: Box<Request>) -> Response {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return self.0.call(request).await;
        }
        let (info, received, uri) = (request.info(), request.received(), request.uri().clone());
        let user_agent = request.headers().get(USER_AGENT).cloned();
        let response = self.0.call(request).await;
        let user_agent = user_agent.as_ref().and_then(|value| value.to_str().ok()).unwrap_or_default();
        let audit_id = response.headers().get("audit-id").and_then(|value| value.to_str().ok());
        tracing::debug!(
            verb = &*info.verb,
            %uri,
            latency = ?received.elapsed(),
            user_agent,
            audit_id,
            status = response.status().as_u16(),
            "HTTP"
        );
        response
    }
}
