//! What the log says about servers and their versions.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use concord_registry::Item;
use concord_replica::{Entry, Event, Snapshot, View};
use concord_storageversion::{
    ADVERTISED_ANNOTATION, Agreement, Disagreement, Entry as Said, Found, IDENTITY_LABEL, Lease, NAMESPACE,
    REGISTERS_ANNOTATION, Status, agreement, is_expired,
};
use concord_store::{KeyRange, Revision};
use parking_lot::{RwLock, RwLockReadGuard};
use serde_json::{Map, Value};
use tokio::{sync::watch, time::Instant};

/// Keeps what is stored about identities and storage versions, fed by the replica.
pub struct FleetView {
    versions: Bytes,
    leases: Bytes,
    shared: Arc<Shared>,
}

/// What a [`FleetView`] knows, for those who read it.
#[derive(Clone)]
pub struct FleetState(pub(crate) Arc<Shared>);

/// What everybody reads.
pub(crate) struct Shared {
    known: RwLock<Known>,
    changed: watch::Sender<Revision>,
}

/// What is known at a revision.
#[derive(Default)]
pub(crate) struct Known {
    /// Whether the log has been read.
    pub(crate) is_loaded: bool,
    /// By the name of the StorageVersion.
    pub(crate) versions: BTreeMap<String, StoredVersion>,
    /// The names of StorageVersions that nobody can make sense of, and the revisions at which they were written.
    pub(crate) unreadable: BTreeMap<String, Revision>,
    /// By name: every lease in the namespace of identities.
    pub(crate) leases: BTreeMap<String, StoredLease>,
    /// Since when there are no other servers than now.
    members_since: Revision,
    revision: Revision,
}

pub(crate) struct StoredVersion {
    pub(crate) item: Item,
    pub(crate) revision: Revision,
    pub(crate) uid: String,
    /// In seconds; 0 if it does not say.
    pub(crate) created: i64,
    pub(crate) owners: Value,
    pub(crate) status: Status,
    /// Since when the servers in it have been saying what they say.
    said_since: Revision,
}

pub(crate) struct StoredLease {
    pub(crate) item: Item,
    pub(crate) lease: Lease,
    /// What kind of server it is the identity of, if it is one.
    pub(crate) component: Option<String>,
    pub(crate) hostname: String,
    /// Whether the server says that it registers nothing: whatever is there under its name is not true any more.
    pub(crate) is_silent: bool,
    /// Where peers reach the server.
    pub(crate) advertised: Option<String>,
    /// In milliseconds.
    pub(crate) renewed: Option<i64>,
    pub(crate) duration_seconds: Option<i64>,
    /// When it was last seen to change, by this server's own time.
    seen: Instant,
}

/// All live servers write one version of a resource, and have done so for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgreedSince {
    /// What they agree on.
    pub agreement: Agreement,
    /// Since when nothing about it has changed, without a gap: neither a server nor what one of them says.
    pub since: Revision,
    /// The revision at which that was seen.
    pub revision: Revision,
}

impl StoredVersion {
    fn read(entry: &Entry, before: Option<&Self>) -> Option<Self> {
        let object: Map<String, Value> = read(entry)?;
        let metadata = object.get("metadata").cloned().unwrap_or_default();
        let status = Status::of(&object);
        let uid = text(&metadata["uid"]);
        let same = before.filter(|before| before.uid == uid && said(&before.status) == said(&status));
        let created = metadata["creationTimestamp"].as_str().and_then(milliseconds).unwrap_or_default();
        Some(Self {
            item: Item::from(entry),
            revision: entry.mod_revision,
            uid,
            created: created / 1000,
            owners: metadata["ownerReferences"].clone(),
            said_since: same.map_or(entry.mod_revision, |before| before.said_since),
            status,
        })
    }

    pub(crate) fn found(&self) -> Found<'_> {
        Found { revision: self.revision, entries: &self.status.storage_versions }
    }
}

fn said(status: &Status) -> BTreeMap<&str, (&str, &str)> {
    let entries = status.storage_versions.iter();
    let says = entries.map(|Said { api_server_id, encoding_version, keys, .. }| {
        (api_server_id.as_str(), (encoding_version.as_str(), keys.seals_with.as_str()))
    });
    says.collect()
}

impl StoredLease {
    fn read(entry: &Entry) -> Option<Self> {
        let object = read(entry)?;
        let (metadata, spec) = (object.get("metadata")?, object.get("spec").cloned().unwrap_or_default());
        let labels = &metadata["labels"];
        Some(Self {
            item: Item::from(entry),
            lease: Lease {
                created: entry.create_revision,
                revision: entry.mod_revision,
                holder: text(&spec["holderIdentity"]),
            },
            component: labels[IDENTITY_LABEL].as_str().map(ToOwned::to_owned),
            hostname: text(&labels[concord_storageversion::HOSTNAME_LABEL]),
            is_silent: metadata["annotations"][REGISTERS_ANNOTATION] == "false",
            advertised: metadata["annotations"][ADVERTISED_ANNOTATION].as_str().map(ToOwned::to_owned),
            renewed: spec["renewTime"].as_str().and_then(milliseconds),
            duration_seconds: spec["leaseDurationSeconds"].as_i64(),
            seen: Instant::now(),
        })
    }

    /// Whether there was a sign of life not longer ago than this.
    pub(crate) fn was_heard_within(&self, time: Duration) -> bool {
        self.seen.elapsed() < time
    }

    /// Whether the server it is the identity of has not been heard of for too long: by the clock, which is upstream's rule,
    /// *and* because nothing was heard here for a while. A clock that is wrong, here or there, ends nobody who renews.
    pub(crate) fn is_over(&self, now: i64, silence: Duration) -> bool {
        is_expired(self.renewed, self.duration_seconds, now) && !self.was_heard_within(silence)
    }
}

/// Bytes of the log were checked before they were written; what another server wrote in another form is not understood.
fn read(entry: &Entry) -> Option<Map<String, Value>> {
    let object = serde_json::from_slice(&entry.value);
    object
        .inspect_err(|error| {
            let key = String::from_utf8_lossy(&entry.key);
            tracing::error!(%key, %error, "A stored object cannot be read: it was not written as JSON.");
        })
        .ok()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn milliseconds(time: &str) -> Option<i64> {
    time.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}

impl FleetView {
    /// A view of what is stored under keys that begin with `prefix`, such as `/registry/`; empty until it is fed.
    pub fn new(prefix: &str) -> Self {
        let shared = Shared { known: RwLock::default(), changed: watch::Sender::new(0) };
        Self {
            versions: format!("{prefix}storageversions/").into(),
            leases: format!("{prefix}leases/{NAMESPACE}/").into(),
            shared: Arc::new(shared),
        }
    }

    /// Where to read what it knows: the view itself belongs to the replica.
    pub fn state(&self) -> FleetState {
        FleetState(self.shared.clone())
    }

    fn set(&self, known: &mut Known, key: &[u8], entry: Option<&Entry>) {
        let name = |prefix: &Bytes| std::str::from_utf8(key.strip_prefix(prefix.as_ref())?).ok();
        if let Some(name) = name(&self.versions) {
            let before = known.versions.remove(name);
            known.unreadable.remove(name);
            let Some(entry) = entry else { return };
            match StoredVersion::read(entry, before.as_ref()) {
                Some(now) => drop(known.versions.insert(name.to_owned(), now)),
                None => {
                    known.unreadable.insert(name.to_owned(), entry.mod_revision);
                }
            }
        } else if let Some(name) = name(&self.leases) {
            let before = known.leases.remove(name);
            let now = entry.and_then(StoredLease::read);
            let member = |lease: &Option<StoredLease>| {
                lease.as_ref().map(|lease| (lease.lease.created, lease.component.clone()))
            };
            if member(&before) != member(&now) {
                known.members_since = known.revision;
            }
            if let Some(now) = now {
                known.leases.insert(name.to_owned(), now);
            }
        }
    }
}

impl View for FleetView {
    fn name(&self) -> &str {
        "fleet"
    }

    fn prefixes(&self) -> Vec<Bytes> {
        vec![self.versions.clone(), self.leases.clone()]
    }

    fn reset(&mut self, snapshot: &Snapshot) {
        // Nothing is known about what was between: whatever was agreed on starts anew.
        let revision = snapshot.revision();
        let mut known = Known { is_loaded: true, members_since: revision, revision, ..Known::default() };
        for prefix in self.prefixes() {
            for entry in snapshot.scan(&KeyRange::prefix(prefix)) {
                self.set(&mut known, &entry.key, Some(entry));
            }
        }
        known.versions.values_mut().for_each(|version| version.said_since = revision);
        *self.shared.known.write() = known;
        self.shared.changed.send_replace(revision);
    }

    fn apply(&mut self, revision: Revision, events: &[Event]) {
        let mut known = self.shared.known.write();
        known.revision = revision;
        for event in events {
            self.set(&mut known, event.key(), event.current());
        }
        drop(known);
        self.shared.changed.send_replace(revision);
    }
}

impl Shared {
    pub(crate) fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read()
    }

    /// Tells when something changes.
    pub(crate) fn changes(&self) -> watch::Receiver<Revision> {
        self.changed.subscribe()
    }
}

impl Known {
    /// The servers whose leases are there, of the components that count.
    pub(crate) fn members(&self, components: &[String]) -> BTreeMap<String, Revision> {
        let member =
            |lease: &StoredLease| lease.component.as_ref().is_some_and(|own| components.contains(own));
        let members = self.leases.iter().filter(|(_, lease)| member(lease));
        members.map(|(id, lease)| (id.clone(), lease.lease.created)).collect()
    }

    pub(crate) fn agreement(&self, name: &str, components: &[String]) -> Result<AgreedSince, Disagreement> {
        let version = self.versions.get(name).ok_or(Disagreement::Unknown)?;
        let members = self.members(components);
        let silent: Vec<String> = members.keys().filter(|id| self.leases[*id].is_silent).cloned().collect();
        if !silent.is_empty() {
            return Err(Disagreement::Silent(silent));
        }
        let agreement = agreement(&version.uid, Some(&version.status.storage_versions), &members)?;
        let since = version.said_since.max(self.members_since);
        Ok(AgreedSince { agreement, since, revision: self.revision })
    }
}

#[cfg(test)]
mod tests {
    use concord_store::KeyValue;

    use super::*;

    /// The lease of a server that renewed it an hour after 1970 began.
    fn lease() -> StoredLease {
        let value = r#"{"metadata": {"labels": {"apiserver.kubernetes.io/identity": "kube-apiserver"}},
            "spec": {"holderIdentity": "a_1", "leaseDurationSeconds": 60, "renewTime": "1970-01-01T01:00:00.000000Z"}}"#;
        let entry = KeyValue { key: "k".into(), value: value.into(), create_revision: 2, mod_revision: 3 };
        StoredLease::read(&Arc::new(entry)).expect("a lease")
    }

    #[tokio::test(start_paused = true)]
    async fn a_wrong_clock_ends_nobody_who_is_heard_of() {
        let (silence, hour) = (Duration::from_secs(30), 3_600_000);
        let lease = lease();
        let is_over = |now| lease.is_over(now, silence);
        // By a clock that is ahead it has been over for an hour, but it was heard of just now.
        assert!(!is_over(2 * hour));
        tokio::time::advance(Duration::from_secs(31)).await;
        assert!(is_over(2 * hour));
        // By a clock that is behind, or just as long as it lasts, it is never over.
        assert!(!is_over(0) && !is_over(hour + 60_000) && is_over(hour + 60_001));
    }
}
