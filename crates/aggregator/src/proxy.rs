//! Requests for what other servers serve.

use std::sync::Arc;

use concord_endpoints::{ApiSet, Origin};
use concord_server::{Request, RequestContext as _, Response, Served, Terminated, text};
use http::{StatusCode, header::LOCATION};
use tokio::sync::mpsc;

use crate::{
    catalogue::Catalogue,
    remote::{Remotes, go_reason},
    service::{ApiService, Backend},
    view::ApiServices,
};

/// Sends requests on.
pub(crate) struct Proxy {
    pub(crate) services: ApiServices,
    pub(crate) remotes: Arc<Remotes>,
    /// Knows who can be reached.
    pub(crate) catalogue: Arc<Catalogue>,
    /// Whether a server may send clients elsewhere.
    pub(crate) allows_redirects: bool,
    /// Told who could not be reached, so that it is found out soon what became of them. It may be full: then enough is
    /// known to be wrong.
    pub(crate) failures: mpsc::Sender<Backend>,
}

impl Proxy {
    /// Who else serves a path. What is built into this server is nobody else's.
    pub(crate) fn find(&self, path: &str, set: &ApiSet) -> Option<Arc<ApiService>> {
        let mut parts = path.strip_prefix("/apis/")?.splitn(3, '/');
        let (group, version) = (parts.next()?, parts.next()?);
        let found = self.services.registered().find(group, version)?.clone();
        let own = set.group(group).filter(|group| group.origin() == Origin::BuiltIn);
        own.is_none_or(|own| own.version(version).is_none()).then_some(found)
    }

    /// The answer of the server that serves it. The texts of failures are upstream's.
    pub(crate) async fn handle(&self, service: &ApiService, request: Request) -> Response {
        let mut response = self.answer(service, request).await;
        response.extensions_mut().insert(Served);
        response
    }

    async fn answer(&self, service: &ApiService, request: Request) -> Response {
        let unavailable = || refusal(StatusCode::SERVICE_UNAVAILABLE, "service unavailable");
        let Some(backend) = service.backend.as_ref().filter(|_| self.catalogue.is_available(service)) else {
            return unavailable();
        };
        let remote = match self.remotes.get(backend) {
            Ok(remote) => remote,
            Err(error) => return refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        };
        if let Err(error) = remote.locate() {
            tracing::debug!(error, service = service.name, "An APIService cannot be found.");
            return unavailable();
        }
        let user = request.user();
        match remote.forward().forward(request, &user, &[]).await {
            Ok(answer) if !self.allows_redirects && is_redirect(&answer) => {
                let message = "the backend attempted to redirect this request, which is not permitted";
                text(StatusCode::BAD_GATEWAY, message)
            }
            Ok(answer) => answer,
            Err(failure) => {
                self.failures.try_send(backend.clone()).ok();
                let message = format!("error trying to reach service: {}", go_reason(&failure.error));
                refusal(StatusCode::SERVICE_UNAVAILABLE, &message)
            }
        }
    }
}

fn is_redirect(answer: &Response) -> bool {
    answer.status().is_redirection() && answer.headers().contains_key(LOCATION)
}

/// As Go's function for plain errors: with a newline.
fn refusal(status: StatusCode, message: &str) -> Response {
    let mut response = text(status, format!("{message}\n"));
    response.extensions_mut().insert(Terminated("aggregator"));
    response
}
