//! What makes two questions the same.

use std::hash::{Hash, Hasher};

use concord_forward::{is_upgrade, said};
use concord_server::{Request, RequestContext as _, RequestInfo};
use http::{HeaderMap, HeaderName, HeaderValue, Method, uri::PathAndQuery};
use hyper::body::Body as _;

/// Every request has its own, and an answer says it again.
pub(crate) const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// In which header a user is named.
const USER: HeaderName = HeaderName::from_static("x-remote-user");

/// A question as another server is asked it: what it is about, who asks, and everything else that is said. That is all that the
/// other server knows, so two that are the same can have the same answer.
///
/// Left out are where a request comes from and its audit ID, which are for the other server's records alone: there is one there
/// for all who asked together, and one for each of them here. Everything else counts, even what hardly matters. The name of the
/// client, say, decides whether JSON is indented; and who traces a request wants to see it arrive.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Same {
    target: PathAndQuery,
    headers: HeaderMap,
    /// Of what was known when it was decided whom to ask.
    routing: u64,
}

impl Same {
    /// What is asked, if others may ask the same: a list, for which nothing is sent and which ends by itself.
    pub(crate) fn of(info: &RequestInfo, request: &Request, routing: u64) -> Option<Self> {
        let is_list = info.verb == "list" && request.method() == Method::GET;
        if !is_list || !request.body().is_end_stream() || is_upgrade(request.headers()) {
            return None;
        }
        let target = request.uri().path_and_query()?.clone();
        // A user who cannot be named is told so.
        let mut headers = said(request.headers(), &request.user()).ok()?;
        headers.remove(AUDIT_ID);
        Some(Self { target, headers, routing })
    }
}

impl Hash for Same {
    /// By what most are told apart; headers have no order that could be relied on.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.target.as_str().hash(state);
        self.headers.get(USER).map(HeaderValue::as_bytes).hash(state);
    }
}
