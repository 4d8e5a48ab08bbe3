//! What the log says about other servers, and about what is never taken from them.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use concord_meta::GroupVersion;
use concord_replica::{Entry, Event, Snapshot, View};
use concord_store::{KeyRange, Revision};
use parking_lot::RwLock;
use serde::Deserialize;
use tokio::sync::watch;

use crate::{
    identity::{Lease, NAMESPACE},
    record::{self, RECORDS},
};

/// Keeps what is stored about identities, endpoint records, custom resources and aggregated servers, fed by the replica.
pub struct PeerView {
    leases: Bytes,
    records: Bytes,
    definitions: Bytes,
    services: Bytes,
    shared: Arc<Shared>,
}

/// What a [`PeerView`] knows, for those who read it.
#[derive(Clone)]
pub struct PeerState(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    known: RwLock<Known>,
    changed: watch::Sender<Revision>,
}

/// What is known at a revision.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    /// Whether the log has been read.
    pub(crate) is_loaded: bool,
    /// The identity leases of API servers, by ID. Whoever looks takes a copy, and clients can make many of them: copies
    /// share what is in them.
    pub(crate) leases: imbl::OrdMap<String, Seen<Lease>>,
    /// The endpoint records, by ID. `None` for one that says nothing, or nothing that can be used.
    pub(crate) records: BTreeMap<String, Seen<Option<SocketAddr>>>,
    pub(crate) customs: Customs,
}

/// Something and the revision at which it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen<T> {
    pub(crate) revision: Revision,
    pub(crate) value: T,
}

/// The group-versions that every server knows from the log: those of custom resources and of aggregated servers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Customs {
    /// By key: several definitions can share a group-version.
    by_key: imbl::HashMap<Bytes, Vec<GroupVersion>>,
    /// How many keys name each.
    counts: imbl::HashMap<GroupVersion, usize>,
    /// Those that went since somebody asked.
    departed: Vec<GroupVersion>,
    /// Another one whenever anything changed.
    pub(crate) version: u64,
}

impl Customs {
    pub(crate) fn contains(&self, version: &GroupVersion) -> bool {
        self.counts.contains_key(version)
    }

    fn set(&mut self, key: &Bytes, now: Vec<GroupVersion>) {
        let before = self.by_key.remove(key).unwrap_or_default();
        if before != now {
            self.version += 1;
        }
        for version in &now {
            *self.counts.entry(version.clone()).or_insert(0) += 1;
        }
        for version in before {
            let left = self.counts.get(&version).map_or(0, |count| count - 1);
            if left == 0 {
                self.counts.remove(&version);
                self.departed.push(version);
            } else {
                self.counts.insert(version, left);
            }
        }
        if !now.is_empty() {
            self.by_key.insert(key.clone(), now);
        }
    }
}

#[derive(Deserialize)]
struct Definition {
    spec: DefinitionSpec,
}

#[derive(Deserialize)]
struct DefinitionSpec {
    group: String,
    #[serde(default)]
    versions: Vec<DefinitionVersion>,
}

#[derive(Deserialize)]
struct DefinitionVersion {
    name: String,
}

#[derive(Deserialize)]
struct Service {
    spec: ServiceSpec,
}

#[derive(Deserialize)]
struct ServiceSpec {
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    service: Option<serde::de::IgnoredAny>,
}

/// All versions of a definition, served or not.
fn defined(value: &[u8]) -> Vec<GroupVersion> {
    let Ok(Definition { spec }) = serde_json::from_slice(value) else { return Vec::new() };
    spec.versions.iter().map(|version| GroupVersion::new(spec.group.as_str(), &version.name)).collect()
}

/// The version of an APIService that another server stands behind.
fn aggregated(value: &[u8]) -> Vec<GroupVersion> {
    let Ok(Service { spec }) = serde_json::from_slice(value) else { return Vec::new() };
    spec.service.map(|_| GroupVersion::new(spec.group, spec.version)).into_iter().collect()
}

impl PeerView {
    /// A view of what is stored under keys that begin with `prefix`, such as `/registry/`; empty until it is fed.
    pub fn new(prefix: &str) -> Self {
        Self {
            leases: format!("{prefix}leases/{NAMESPACE}/").into(),
            records: format!("{prefix}{RECORDS}").into(),
            definitions: format!("{prefix}apiextensions.k8s.io/customresourcedefinitions/").into(),
            services: format!("{prefix}apiregistration.k8s.io/apiservices/").into(),
            shared: Arc::new(Shared { known: RwLock::default(), changed: watch::Sender::new(0) }),
        }
    }

    /// Where to read what it knows: the view itself belongs to the replica.
    pub fn state(&self) -> PeerState {
        PeerState(self.shared.clone())
    }

    fn set(&self, known: &mut Known, key: &Bytes, entry: Option<&Entry>) {
        let below = |prefix: &Bytes| std::str::from_utf8(key.strip_prefix(prefix.as_ref())?).ok();
        let value = |entry: &Entry| entry.value.clone();
        if let Some(id) = below(&self.leases) {
            match entry.and_then(|entry| Some((entry.mod_revision, Lease::read(id, &entry.value)?))) {
                Some((revision, value)) => drop(known.leases.insert(id.to_owned(), Seen { revision, value })),
                None => drop(known.leases.remove(id)),
            }
        } else if let Some(id) = below(&self.records) {
            match entry.map(|entry| (entry.mod_revision, located(id, entry))) {
                Some((revision, value)) => {
                    known.records.insert(id.to_owned(), Seen { revision, value });
                }
                None => {
                    known.records.remove(id);
                }
            }
        } else if key.starts_with(&self.definitions) {
            known.customs.set(key, entry.map(value).map(|value| defined(&value)).unwrap_or_default());
        } else if key.starts_with(&self.services) {
            known.customs.set(key, entry.map(value).map(|value| aggregated(&value)).unwrap_or_default());
        }
    }
}

fn located(id: &str, entry: &Entry) -> Option<SocketAddr> {
    let address = record::decode(id, &entry.value);
    if let Err(error) = &address
        && *error != record::RecordError::NoAddress
    {
        tracing::warn!(id, %error, "The endpoint record of a server is not used.");
    }
    address.ok()
}

impl View for PeerView {
    fn name(&self) -> &str {
        "peers"
    }

    fn prefixes(&self) -> Vec<Bytes> {
        [&self.leases, &self.records, &self.definitions, &self.services].map(Bytes::clone).into()
    }

    fn reset(&mut self, snapshot: &Snapshot) {
        let mut known = Known { is_loaded: true, ..Known::default() };
        for prefix in self.prefixes() {
            for entry in snapshot.scan(&KeyRange::prefix(prefix)) {
                self.set(&mut known, &entry.key, Some(entry));
            }
        }
        let mut shared = self.shared.known.write();
        // What went while the log could not be followed has departed too.
        let gone = shared.customs.counts.keys().filter(|version| !known.customs.contains(version));
        known.customs.departed = shared.customs.departed.iter().chain(gone).cloned().collect();
        known.customs.version = shared.customs.version + 1;
        *shared = known;
        drop(shared);
        self.shared.changed.send_replace(snapshot.revision());
    }

    fn apply(&mut self, revision: Revision, events: &[Event]) {
        let mut known = self.shared.known.write();
        for event in events {
            self.set(&mut known, event.key(), event.current());
        }
        drop(known);
        self.shared.changed.send_replace(revision);
    }
}

impl PeerState {
    /// Whether a group-version is one of custom resources or of an aggregated server.
    pub fn is_custom(&self, version: &GroupVersion) -> bool {
        self.0.known.read().customs.contains(version)
    }

    /// What is known now, and which group-versions went since this was asked last.
    pub(crate) fn take(&self) -> (Known, Vec<GroupVersion>) {
        let mut known = self.0.known.write();
        let departed = std::mem::take(&mut known.customs.departed);
        (known.clone(), departed)
    }

    /// Tells when something changes.
    pub(crate) fn changes(&self) -> watch::Receiver<Revision> {
        self.0.changed.subscribe()
    }
}

/// What the tests of others make their own log with.
#[cfg(test)]
impl Known {
    pub(crate) fn loaded() -> Self {
        Self { is_loaded: true, ..Self::default() }
    }

    pub(crate) fn define(&mut self, name: &str, versions: &[&str]) {
        let versions = versions.iter().filter_map(|version| version.parse().ok()).collect();
        self.customs.set(&Bytes::copy_from_slice(name.as_bytes()), versions);
    }

    pub(crate) fn departed(&mut self) -> Vec<GroupVersion> {
        std::mem::take(&mut self.customs.departed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_definitions_and_of_aggregated_servers_are_everybodys_own() {
        let definition =
            br#"{"spec":{"group":"example.com","versions":[{"name":"v1","served":false},{"name":"v2"}]}}"#;
        let served =
            br#"{"spec":{"group":"metrics.k8s.io","version":"v1","service":{"name":"m","namespace":"n"}}}"#;
        let local = br#"{"spec":{"group":"apps","version":"v1","groupPriorityMinimum":7}}"#;
        let null = br#"{"spec":{"group":"apps","version":"v1","service":null}}"#;
        let text = |versions: Vec<GroupVersion>| {
            versions.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(text(defined(definition)), "example.com/v1 example.com/v2");
        assert_eq!(text(aggregated(served)), "metrics.k8s.io/v1");
        for other in [&local[..], null, b"", b"{}", b"k8s\0", b"[]"] {
            assert_eq!(aggregated(other), []);
            assert_eq!(defined(other), []);
        }
    }

    #[test]
    fn a_version_departs_with_the_last_that_names_it() {
        let mut known = Known::loaded();
        known.define("a", &["x/v1", "x/v2"]);
        known.define("b", &["x/v1"]);
        let version = known.customs.version;
        known.define("b", &["x/v1"]);
        assert_eq!((known.customs.version, known.departed()), (version, vec![]));
        known.define("a", &[]);
        assert_eq!(known.departed(), [GroupVersion::new("x", "v2")]);
        assert!(known.customs.contains(&GroupVersion::new("x", "v1")));
        known.define("b", &[]);
        assert_eq!(known.departed(), [GroupVersion::new("x", "v1")]);
        assert!(known.customs.counts.is_empty() && known.customs.by_key.is_empty());
    }
}
