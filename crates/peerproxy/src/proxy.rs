//! Sends requests to whoever serves them.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use concord_meta::{GroupVersion, Status, StatusDetails};
use concord_server::{
    Accept, FrontProxied, Handler, InLargeSteps, PeerMetrics, Request, RequestContext as _, RequestInfo,
    Response, Served, respond_status,
};
use http::StatusCode;
use rand::seq::SliceRandom as _;
use tokio::time::timeout;

use crate::{
    answer,
    decision::{Asked, Decision, Reason, decide},
    document::{Has, Wanted},
    here::Local,
    openapi,
    peers::Peers,
    routing::{RoutedPeer, Routing},
    together::Together,
    transport::{PROXIED, SendError},
};

mod lists;

/// What discovery speaks of; any other verb only asks whether the path exists.
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// Under which name the records of a request say whom it was sent to; upstream's.
const PROXIED_TO: &str = "apiserver.kubernetes.io/peer-proxied-to";

/// After how long without an answer it is found out whether a peer is still there.
const SLOW: Duration = Duration::from_secs(5);

/// Stands before what answers requests here: what only another server of the fleet serves goes there.
pub struct PeerProxy {
    inner: Arc<dyn Handler>,
    local: Arc<dyn Local>,
    peers: Arc<Peers>,
    together: Together,
}

impl PeerProxy {
    /// Sends to `peers` what `local` does not serve; everything else is answered by `inner`.
    pub fn new(inner: Arc<dyn Handler>, local: Arc<dyn Local>, peers: Arc<Peers>) -> Self {
        Self { inner, local, peers, together: Together::new() }
    }

    async fn resource(&self, info: &RequestInfo, is_proxied: bool, request: Request) -> Response {
        let wanted = wanted(info);
        let here = self.local.has(&wanted);
        if here == Has::Everything {
            return self.inner.handle(request).await;
        }
        let version = GroupVersion::new(wanted.group, wanted.version);
        let is_local_business = self.peers.state().is_custom(&version);
        let asked = Asked { wanted: Some(wanted), is_proxied, here, is_local_business };
        let routing = self.peers.routing();
        match decide(&asked, &routing) {
            Decision::Local => self.inner.handle(request).await,
            // In a box: what is answered here, and that is most, needs no room for it.
            Decision::Forward(to) => {
                Box::pin(self.forward_once(&routing, to, (info, labels(&wanted)), request)).await
            }
            Decision::Unavailable(reason) => {
                if reason == Reason::NoAddress {
                    self.peers.metrics().peers().proxy_error("endpoint_resolution", labels(&wanted));
                }
                // Anybody can cause this, as often as they like.
                tracing::debug!(path = info.path, ?reason, "Nobody can answer a request now.");
                respond_status(&unavailable(reason), &Accept::of(&request))
            }
        }
    }

    /// Sends a request to one of some peers, chosen at random; to the next one as long as nothing of it was sent.
    async fn forward(
        &self,
        routing: &Routing,
        mut to: Vec<usize>,
        labels: [&str; 3],
        mut request: Request,
    ) -> Response {
        shuffle(routing, &mut to);
        let accept = Accept::of(&request);
        for (tried, at) in to.into_iter().enumerate() {
            if tried > 0 {
                self.peers.metrics().peers().failover();
            }
            match self.send(&routing.peers[at], labels, &accept, request).await {
                Ok(response) => return response,
                Err(Some(back)) => request = *back,
                Err(None) => return respond_status(&answer::broken(), &accept),
            }
        }
        respond_status(&answer::failed(), &accept)
    }

    /// Sends a request to a peer. If nothing of it was sent, it comes back.
    async fn send(
        &self,
        peer: &RoutedPeer,
        labels: [&str; 3],
        accept: &Accept,
        request: Request,
    ) -> Result<Response, Option<Box<Request>>> {
        let Some(address) = peer.address else { return Err(Some(Box::new(request))) };
        let user = request.user();
        if let Some(audit) = request.audit() {
            audit.annotate(PROXIED_TO, &peer.id);
        }
        let metrics = self.peers.metrics().peers();
        let mut waiting = Waiting { metrics, labels, is_answered: false };
        let sent = self.peers.transport().send(address, &user, request);
        let sent = watched(&self.peers, &peer.id, sent).await;
        waiting.is_answered = true;
        match sent {
            Ok(response) => {
                metrics.rerouted(response.status().as_u16(), labels);
                if response.status() == StatusCode::UNAUTHORIZED {
                    // It may know the certificate that this server shows by now, but not the one it showed then.
                    self.peers.transport().forget(address);
                }
                let mut response = answer::relayed(&peer.id, response, accept).await;
                response.extensions_mut().insert(Served);
                Ok(response)
            }
            // No fault of the peer, and it would be the same with every other one and at any other time.
            Err(SendError::Unnameable(reason)) => {
                metrics.proxy_error("proxy_transport", labels);
                tracing::debug!(reason, "A user cannot be named to a peer.");
                Ok(respond_status(&answer::unnameable(), accept))
            }
            Err(error) => {
                metrics.proxy_error("proxy_transport", labels);
                self.peers.suspect(&peer.id);
                if peer.is_reachable {
                    tracing::warn!(id = peer.id, %address, %error, "A request could not be sent to a peer.");
                }
                match error {
                    SendError::NotSent { request, .. } => Err(Some(request)),
                    SendError::Broken(_) | SendError::Unnameable(_) => Err(None),
                }
            }
        }
    }
}

/// Waits for the head of an answer. A peer that takes long may be cut off, which is to be found out for the next request.
async fn watched<T>(peers: &Peers, id: &str, sent: impl Future<Output = T>) -> T {
    let mut sent = std::pin::pin!(sent);
    match timeout(SLOW, &mut sent).await {
        Ok(answered) => answered,
        Err(_) => {
            peers.suspect(id);
            sent.await
        }
    }
}

/// In which order peers are asked.
fn shuffle(routing: &Routing, to: &mut [usize]) {
    to.shuffle(&mut rand::rng());
    // Who did not answer when asked last is a last resort.
    to.sort_by_key(|at| !routing.peers[*at].is_reachable);
}

/// Counts a request whose client, or whose time, is gone before there is an answer: that is nobody's failure.
struct Waiting<'a> {
    metrics: &'a PeerMetrics,
    labels: [&'a str; 3],
    is_answered: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.metrics.proxy_error("cancelled", self.labels);
        }
    }
}

/// What a request needs.
fn wanted(info: &RequestInfo) -> Wanted<'_> {
    let verb = VERBS.iter().find(|verb| **verb == info.verb).copied();
    Wanted {
        group: &info.api_group,
        version: &info.api_version,
        resource: &info.resource,
        subresource: &info.subresource,
        verb: verb.unwrap_or_default(),
    }
}

fn labels<'a>(wanted: &Wanted<'a>) -> [&'a str; 3] {
    [wanted.group, wanted.version, wanted.resource]
}

/// Takes the mark of forwarded requests away, and tells whether it was to be believed. Any value counts: whoever may set it
/// sets it once.
fn take_mark(request: &mut Request) -> bool {
    let is_marked = request.headers_mut().remove(PROXIED).is_some();
    is_marked && request.extensions().get::<FrontProxied>().is_some()
}

fn unavailable(reason: Reason) -> Status {
    let text = match reason {
        Reason::ProxiedAndUnknown => {
            "the resource is not served by the apiserver that the request was proxied to"
        }
        Reason::NotSynced => "the apiserver has not asked its peers yet which resources they serve",
        Reason::Unproved => {
            "an apiserver that may serve the resource has not said yet which resources it serves"
        }
        Reason::NoAddress => "Error getting ip and port info of the remote server while proxying",
    };
    retriable(text)
}

/// 503, with the time after which clients try again by themselves.
pub(crate) fn retriable(text: &str) -> Status {
    let mut status = Status::service_unavailable(text);
    status.details = Some(Box::new(StatusDetails { retry_after_seconds: 1, ..StatusDetails::default() }));
    status
}

#[async_trait]
impl Handler for PeerProxy {
    async fn handle(&self, mut request: Request) -> Response {
        let is_proxied = take_mark(&mut request);
        let info = request.info();
        if info.is_resource_request {
            let mut response = self.resource(&info, is_proxied, request).await;
            if is_proxied {
                response.extensions_mut().insert(InLargeSteps);
            }
            return response;
        }
        if !is_proxied && info.path.starts_with(openapi::INDEX) {
            return Box::pin(self.openapi(&info, request)).await;
        }
        match openapi::version_of(&info.path) {
            Some(version) if !is_proxied && self.is_elsewhere(&version) => {
                Box::pin(self.page(&version, request)).await
            }
            _ => self.inner.handle(request).await,
        }
    }
}

impl PeerProxy {
    /// Whether a group-version can only be another server's.
    fn is_elsewhere(&self, version: &GroupVersion) -> bool {
        !self.local.has_version(version) && !self.peers.state().is_custom(version)
    }

    /// The page about a group-version, for clients that do not read merged discovery, from whoever serves that.
    async fn page(&self, version: &GroupVersion, request: Request) -> Response {
        let routing = self.peers.routing();
        let has = |at: &usize| {
            routing.peers[*at].document.as_ref().is_some_and(|document| document.has_version(version))
        };
        let to: Vec<usize> = (0..routing.peers.len()).filter(has).collect();
        match to.is_empty() {
            true => self.inner.handle(request).await,
            false => self.forward(&routing, to, ["", "", ""], request).await,
        }
    }

    async fn openapi(&self, info: &RequestInfo, request: Request) -> Response {
        let routing = self.peers.routing();
        if info.path.trim_end_matches('/') == openapi::INDEX {
            let missing = openapi::missing(&routing, |version| self.is_elsewhere(version));
            return openapi::index(&*self.inner, &missing, request).await;
        }
        let holders = openapi::holders(&routing, &info.path, |version| self.is_elsewhere(version));
        if !holders.is_empty() {
            let accept = Accept::of(&request);
            let answer = self.in_order(&routing, holders, request).await;
            return answer.unwrap_or_else(|| respond_status(&answer::failed(), &accept));
        }
        let advertised = openapi::advertised(&routing, &info.path, request.uri().query());
        if advertised.is_empty() {
            return self.inner.handle(request).await;
        }
        let again = openapi::copy(&request);
        let own = self.inner.handle(request).await;
        match own.status() {
            StatusCode::MOVED_PERMANENTLY => self.in_order(&routing, advertised, again).await.unwrap_or(own),
            _ => own,
        }
    }

    /// Sends a request to the first of some peers; to the next one as long as nothing of it was sent.
    async fn in_order(&self, routing: &Routing, to: Vec<usize>, mut request: Request) -> Option<Response> {
        let accept = Accept::of(&request);
        for (tried, at) in to.into_iter().enumerate() {
            if tried > 0 {
                self.peers.metrics().peers().failover();
            }
            match self.send(&routing.peers[at], ["", "", ""], &accept, request).await {
                Ok(response) => return Some(response),
                Err(Some(back)) => request = *back,
                Err(None) => return None,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
