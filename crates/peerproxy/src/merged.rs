//! Merged discovery, made when it is asked for and kept until something it was made from changes.

use std::{fmt::Write as _, sync::Arc};

use arc_swap::ArcSwapOption;
use aws_lc_rs::digest::{SHA512, digest};
use bytes::Bytes;
use concord_endpoints::{MergedDiscovery, PeerDiscovery};
use parking_lot::Mutex;

use crate::{
    document::{Document, Group, parse_groups},
    merge::{Source, merge},
    peers::Peers,
    routing::Routing,
};

/// The discovery of a fleet as one of its servers tells it.
pub struct FleetDiscovery {
    peers: Arc<Peers>,
    groups: Cache,
    core: Cache,
}

/// One of the two documents, as it was last made.
#[derive(Default)]
struct Cache {
    kept: ArcSwapOption<Kept>,
    /// Held by whoever makes the document: everybody else waits and finds it made.
    making: Mutex<()>,
}

/// A document and what it was made from.
struct Kept {
    local: String,
    generation: u64,
    document: Option<Arc<MergedDiscovery>>,
}

/// What of the document of a server is merged.
type Part = fn(&Document) -> &[Group];

impl FleetDiscovery {
    /// Merges with what these peers serve.
    pub fn new(peers: Arc<Peers>) -> Self {
        Self { peers, groups: Cache::default(), core: Cache::default() }
    }

    fn make(&self, local: &Bytes, etag: &str, routing: &Routing, part: Part) -> Arc<Kept> {
        let document = match parse_groups(local) {
            Ok(groups) => made(self.peers.own_id(), &groups, routing, part),
            Err(error) => {
                tracing::error!(%error, "The discovery of this server cannot be merged with that of others.");
                None
            }
        };
        Arc::new(Kept { local: etag.to_owned(), generation: routing.generation, document })
    }
}

impl Cache {
    fn kept(&self, etag: &str, generation: u64) -> Option<Arc<Kept>> {
        self.kept.load_full().filter(|kept| kept.local == etag && kept.generation == generation)
    }

    /// The document that was made of this, and whether it was there already.
    fn get(&self, etag: &str, generation: u64, make: impl FnOnce() -> Arc<Kept>) -> (Arc<Kept>, bool) {
        if let Some(kept) = self.kept(etag, generation) {
            return (kept, true);
        }
        let _making = self.making.lock();
        if let Some(kept) = self.kept(etag, generation) {
            return (kept, true);
        }
        let made = make();
        self.kept.store(Some(made.clone()));
        (made, false)
    }
}

impl PeerDiscovery for FleetDiscovery {
    fn merged(&self, local: &Bytes, etag: &str) -> Option<Arc<MergedDiscovery>> {
        let routing = self.peers.routing();
        let make = || self.make(local, etag, &routing, Document::groups);
        let (kept, was_there) = self.groups.get(etag, routing.generation, make);
        self.peers.metrics().peers().merged(was_there);
        kept.document.clone()
    }

    fn merged_core(&self, local: &Bytes, etag: &str) -> Option<Arc<MergedDiscovery>> {
        let routing = self.peers.routing();
        let make = || self.make(local, etag, &routing, Document::core);
        self.core.get(etag, routing.generation, make).0.document.clone()
    }

    fn local_was_asked(&self) {
        self.peers.metrics().peers().nopeer();
    }
}

/// The document of all servers; `None` if nobody else has said anything.
fn made(own_id: &str, local: &[Group], routing: &Routing, part: Part) -> Option<Arc<MergedDiscovery>> {
    let mut sources: Vec<Source<'_>> = routing
        .peers
        .iter()
        .filter_map(|peer| {
            let groups = part(peer.document.as_ref()?);
            Some(Source { id: &peer.id, groups, is_reachable: peer.is_reachable })
        })
        .collect();
    if sources.is_empty() {
        return None;
    }
    sources.push(Source { id: own_id, groups: local, is_reachable: true });
    let items = serde_json::to_string(&merge(&sources)).ok()?;
    let kind = r#""kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","#;
    let document = format!("{{{kind}\"metadata\":{{}},\"items\":{items}}}\n").into();
    // kube-apiserver's tag: a hash of the list without its kind.
    let etag = etag(format!("{{\"metadata\":{{}},\"items\":{items}}}").as_bytes());
    Some(Arc::new(MergedDiscovery { document, etag }))
}

fn etag(content: &[u8]) -> String {
    let mut tag = String::with_capacity(130);
    tag.push('"');
    for byte in digest(&SHA512, content).as_ref() {
        write!(tag, "{byte:02X}").expect("writing to a string cannot fail");
    }
    tag.push('"');
    tag
}

#[cfg(test)]
mod tests;
