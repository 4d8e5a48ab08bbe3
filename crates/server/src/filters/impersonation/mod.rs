//! Acting as somebody else.

mod mode;
mod wanted;

use std::{sync::Arc, time::Instant};

use http::{HeaderValue, header::X_CONTENT_TYPE_OPTIONS};

use self::mode::impersonated;
use crate::{
    Accept, Attributes, Authorizer, Metrics, RequestContext as _,
    http::{Filter, Request, Response},
    respond_status,
};

/// Makes the user somebody else, for those who ask for it and may. Handlers, and all filters inside, see only whom the
/// request is made as.
pub(crate) struct Impersonation<H> {
    pub(crate) inner: H,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) metrics: Arc<Metrics>,
}

impl<H: Filter> Filter for Impersonation<H> {
    async fn call(&self, mut request: Box<Request>) -> Response {
        let wanted = match wanted::take(request.headers_mut()) {
            Ok(None) => return self.inner.call(request).await,
            Ok(Some(wanted)) => wanted,
            Err(status) => return respond_status(&status, &Accept::of(&*request)),
        };
        let (user, info) = (request.user(), request.info());
        let attributes = Attributes { user: &user, request: &info };
        let begun = Instant::now();
        let impersonated = impersonated(self.authorizer.as_ref(), &attributes, &wanted).await;
        let constraint = impersonated.as_ref().ok().map(|(_, constraint)| constraint.as_str());
        self.metrics.access().impersonation(constraint, begun.elapsed());
        match impersonated {
            Ok((somebody, constraint)) => {
                if let Some(audit) = request.audit() {
                    audit.impersonated(&somebody, &constraint);
                }
                tracing::debug!(user = user.name, as = somebody.name, uri = %request.uri(), "Impersonating.");
                request.extensions_mut().insert(Arc::new(somebody));
                self.inner.call(request).await
            }
            Err(status) => {
                tracing::debug!(user = user.name, uri = %request.uri(), %status, "Impersonation is forbidden.");
                let mut response = respond_status(&status, &Accept::of(&*request));
                response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
                response
            }
        }
    }
}

#[cfg(test)]
mod tests;
