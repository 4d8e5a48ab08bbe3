//! What is known about other servers at one moment.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use crate::document::Document;

/// Everything that decides where requests go and what merged discovery says. It never changes: both read the same one, so
/// they cannot disagree.
#[derive(Debug, Clone, Default)]
pub struct Routing {
    /// Another one whenever anything else in here is another one.
    pub generation: u64,
    /// The servers that are alive, by their IDs.
    pub peers: Vec<RoutedPeer>,
    /// Whether there are more that are alive, of which nothing is known: too many to look at each.
    pub is_crowded: bool,
    /// Whether everybody who could be asked was asked, or did not answer in time.
    pub is_synced: bool,
}

/// Another server that is alive.
#[derive(Debug, Clone)]
pub struct RoutedPeer {
    /// Its ID.
    pub id: String,
    /// Where it was last known to be.
    pub address: Option<SocketAddr>,
    /// What it said last that it serves, without what is never taken from others.
    pub document: Option<Arc<Document>>,
    /// Whether the process that is running now has said what it serves.
    pub is_known: bool,
    /// Whether it answered when it was asked last, and still says where it is.
    pub is_reachable: bool,
    /// Where its OpenAPI v3 documents are: `apis/batch/v1` and the like, with their addresses.
    pub openapi: Arc<BTreeMap<String, String>>,
}

impl PartialEq for RoutedPeer {
    /// Documents are the same only if they are the very same.
    fn eq(&self, other: &Self) -> bool {
        let document = |peer: &Self| peer.document.as_ref().map(Arc::as_ptr);
        self.id == other.id
            && self.address == other.address
            && document(self) == document(other)
            && self.is_known == other.is_known
            && self.is_reachable == other.is_reachable
            && self.openapi == other.openapi
    }
}
