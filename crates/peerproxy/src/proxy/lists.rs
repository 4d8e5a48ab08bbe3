//! Lists that several clients ask for at the same time.

use std::sync::{Arc, OnceLock};

use concord_server::{AuditHandle, Request, RequestContext as _, RequestInfo, Response, Served};
use http::StatusCode;
use hyper::body::Body as _;

use super::{PROXIED_TO, PeerProxy, Waiting, shuffle, watched};
use crate::{
    openapi,
    routing::Routing,
    same::{AUDIT_ID, Same},
    together::{Member, Turn},
};

impl PeerProxy {
    /// Sends a request to one of some peers; a list that others ask for as well once for all of them.
    ///
    /// Only an answer that everybody can have is shared, a list. Whatever else comes of asking together, each asks for itself
    /// then, and is told and counted as if it had done so at once; that is one request more for all of them.
    pub(super) async fn forward_once(
        &self,
        routing: &Arc<Routing>,
        to: Vec<usize>,
        (info, labels): (&RequestInfo, [&str; 3]),
        request: Request,
    ) -> Response {
        let turn = match Same::of(info, &request, routing.generation) {
            Some(same) => self.together.join(same, |sent_to| self.fetch(routing, &to, &request, sent_to)),
            None => Turn::Now(None),
        };
        match turn {
            Turn::Now(asking) => {
                let answer = self.forward(routing, to, labels, request).await;
                drop(asking);
                answer
            }
            Turn::Together(member) => match self.with_others(member, labels, request.audit()).await {
                Some(answer) => answer,
                None => self.forward(routing, to, labels, request).await,
            },
        }
    }

    /// Asks one peer for a list, for all who want it.
    fn fetch(
        &self,
        routing: &Arc<Routing>,
        to: &[usize],
        request: &Request,
        sent_to: Arc<OnceLock<String>>,
    ) -> impl Future<Output = Option<Response>> + Send + 'static {
        let (peers, routing, mut to) = (self.peers.clone(), routing.clone(), to.to_vec());
        let (request, user) = (openapi::copy(request), request.user());
        shuffle(&routing, &mut to);
        async move {
            let peer = to.first().map(|at| &routing.peers[*at])?;
            let address = peer.address?;
            sent_to.set(peer.id.clone()).ok();
            let sent = peers.transport().send(address, &user, request);
            let answer = watched(&peers, &peer.id, sent).await.ok()?;
            let is_list = answer.status() == StatusCode::OK && !answer.body().is_end_stream();
            is_list.then_some(answer)
        }
    }

    /// What was answered to all who asked together; `None` if each has to ask for itself.
    async fn with_others(
        &self,
        member: Member,
        labels: [&str; 3],
        audit: Option<&AuditHandle>,
    ) -> Option<Response> {
        let metrics = self.peers.metrics().peers();
        let mut waiting = Waiting { metrics, labels, is_answered: false };
        let mut told = Told { audit, member: &member, is_over: true };
        let head = member.head().await;
        waiting.is_answered = true;
        told.is_over = head.is_some();
        drop(told);
        let mut headers = head?;
        metrics.rerouted(StatusCode::OK.as_u16(), labels);
        // It is that of the request that was sent for all. Each is given its own by whoever gave it to the request.
        headers.remove(AUDIT_ID);
        let mut response = Response::new(member.into_body());
        *response.headers_mut() = headers;
        response.extensions_mut().insert(Served);
        Some(response)
    }
}

/// Says in the records of a request whom it was sent to, also if its client goes before there is an answer; but not if it is to
/// be sent again.
struct Told<'a> {
    audit: Option<&'a AuditHandle>,
    member: &'a Member,
    is_over: bool,
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if let (true, Some(audit), Some(id)) = (self.is_over, self.audit, self.member.sent_to()) {
            audit.annotate(PROXIED_TO, id);
        }
    }
}

#[cfg(test)]
mod tests;
