//! What every write passes.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use concord_meta::{GroupResource, Status};
use concord_registry::{Gate, stored_version};
use concord_server::not_registered;
use concord_storageversion::{Closed, Fence, gate, object_name, parse_object_name};
use concord_store::{Compare, Txn, Write};
use tokio::time::{Instant, timeout_at};

use crate::{
    progress::{Progress, UNREADABLE},
    view::{Known, Shared},
};

/// The gate of one process of a server.
pub(crate) struct WriteGate {
    pub(crate) shared: Arc<Shared>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) id: String,
    pub(crate) holder: String,
    /// What all keys begin with.
    pub(crate) prefix: Bytes,
    pub(crate) lease_key: Bytes,
    /// The names of the StorageVersions of built-in resources, by what the keys of their objects begin with.
    pub(crate) built_in: HashMap<Bytes, String>,
    /// Whether versions have to be registered; if not, only the lease is compared.
    pub(crate) registers: bool,
    /// How long a write waits.
    pub(crate) patience: Duration,
}

impl WriteGate {
    /// By what right this process writes now, as far as is known.
    pub(crate) fn fence(&self, known: &Known) -> Option<Fence> {
        let lease = &known.leases.get(&self.id)?.lease;
        (lease.holder == self.holder).then(|| Fence::Held { id: self.id.clone(), since: lease.created })
    }

    /// What a transaction has to compare, or what keeps it.
    fn compares(&self, known: &Known, txn: &Txn) -> Result<Vec<Compare>, (String, Closed)> {
        let fence = self.fence(known);
        let nobody = || (String::new(), Closed::NoIdentity);
        let Some(Fence::Held { since, .. }) = &fence else { return Err(nobody()) };
        let mut compares = vec![Compare::create_revision(self.lease_key.clone(), *since)];
        for write in &txn.writes {
            let Write::Put { key, value, .. } = write else { continue };
            let Some(version) = stored_version(value).filter(|_| self.registers) else { continue };
            let name = self.name_of(key);
            let stored = known.versions.get(&name);
            let found = stored.map(|stored| stored.found());
            if let Err(closed) = gate(fence.as_ref(), &name, found.as_ref(), version) {
                return Err((name, closed));
            }
            if let Some(stored) = stored {
                let unchanged = Compare::mod_revision(stored.item.key.clone(), stored.revision);
                if !compares.contains(&unchanged) {
                    compares.push(unchanged);
                }
            }
        }
        Ok(compares)
    }

    /// The StorageVersion of the resource that an object at a key is of.
    pub(crate) fn name_of(&self, key: &[u8]) -> String {
        let below = key.strip_prefix(self.prefix.as_ref()).unwrap_or(key);
        let mut ends = below.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let start = key.len() - below.len();
        let (first, second) = (ends.next(), ends.next());
        for end in [first, second].into_iter().flatten() {
            if let Some(name) = self.built_in.get(&key[..start + end + 1]) {
                return name.clone();
            }
        }
        // Objects of custom resources are below their group and their plural.
        let (group, plural) = match (first, second) {
            (Some(first), Some(second)) => (&below[..first], &below[first + 1..second]),
            _ => (below, &b""[..]),
        };
        object_name(&String::from_utf8_lossy(group), &String::from_utf8_lossy(plural))
    }

    fn refusal(&self, name: &str, closed: &Closed) -> Status {
        if name.is_empty() {
            return Status::service_unavailable(format!(
                "this server does not hold its identity lease {:?}: {}",
                self.id,
                self.progress.identity_error()
            ));
        }
        let (group, resource) = parse_object_name(name).unwrap_or(("", name));
        let resource = GroupResource::new(group, resource);
        let error = self.progress.last_error(&resource).unwrap_or_else(|| match closed {
            _ if self.shared.known().unreadable.contains_key(name) => UNREADABLE.to_owned(),
            Closed::OtherVersion(version) => format!("this server has registered {version}"),
            Closed::NoIdentity | Closed::Unregistered => "<nil>".to_owned(),
        });
        not_registered(&resource, Some(&error))
    }
}

#[async_trait]
impl Gate for WriteGate {
    async fn pass(&self, txn: &mut Txn) -> Result<(), Status> {
        let mut deadline: Option<Instant> = None;
        loop {
            let closed = match self.compares(&self.shared.known(), txn) {
                Ok(compares) => {
                    txn.compares.extend(compares);
                    return Ok(());
                }
                Err(closed) => closed,
            };
            let mut changes = self.shared.changes();
            let until = *deadline.get_or_insert_with(|| Instant::now() + self.patience);
            // It may have opened since.
            if self.compares(&self.shared.known(), txn).is_ok() {
                continue;
            }
            // Nobody but an administrator can open it: there is nothing to wait for.
            let is_hopeless = self.shared.known().unreadable.contains_key(&closed.0);
            if is_hopeless || timeout_at(until, changes.changed()).await.is_err() {
                return Err(self.refusal(&closed.0, &closed.1));
            }
        }
    }
}
