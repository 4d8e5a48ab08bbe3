//! Puts right what others left: Services whose addresses and node ports nobody holds.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use concord_meta::Status;
use concord_registry::{Item, Object, ObjectName, Registry, Resource, Resources, Storage};
use concord_replica::{Event, Scope, Snapshot};
use concord_store::{Compare, KeyRange, Write};
use memchr::memmem;
use tokio_util::sync::CancellationToken;

use super::{IpRange, NodePortRange, address, families::Addresses, ports, spec_of};
use crate::{
    Error,
    own::{consistent, required},
    queue::{self, Sync},
};

/// Holds the addresses and node ports of Services that another API server wrote, and lets node ports go whose Service is
/// gone.
///
/// A Service that is written here has what it uses from the same transaction on. One that was in the store before, from a
/// kube-apiserver, has not: its node ports are held by a bitmap there, and in releases before 1.33 its addresses are, too.
pub struct ServiceRepair {
    registry: Arc<Registry>,
    services: Arc<Storage>,
    addresses: Arc<Resource>,
    range: IpRange,
    node_ports: NodePortRange,
    ports_prefix: Bytes,
    /// Whether all that was there in the beginning has been looked at.
    is_done: AtomicBool,
}

/// The namespace and the name of a Service.
type Work = (String, String);

impl ServiceRepair {
    /// For the Services and IPAddresses that are among the resources.
    ///
    /// # Errors
    ///
    /// [`Error::NotServed`] if there are none.
    pub fn new(
        registry: Arc<Registry>,
        resources: &dyn Resources,
        range: IpRange,
        node_ports: NodePortRange,
    ) -> Result<Self, Error> {
        let services = required(resources, "", "v1", "services")?;
        let services = services.storage().cloned().expect("a required resource is stored");
        Ok(Self {
            registry,
            ports_prefix: ports::prefix(&services),
            services,
            addresses: required(resources, "networking.k8s.io", "v1", "ipaddresses")?,
            range,
            node_ports,
            is_done: AtomicBool::new(false),
        })
    }

    /// Whether what Services used before this server started is held for them. Until then, others may get the same.
    pub fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Relaxed)
    }

    /// Goes on until it is cancelled or the replica ends.
    pub async fn run(self: Arc<Self>, cancel: CancellationToken) {
        let scopes = [Scope::prefix(self.services.prefix.clone())];
        cancel.run_until_cancelled(queue::run(self.as_ref(), &self.registry, &scopes)).await;
    }

    /// A Service; `None` if it is gone.
    ///
    /// # Errors
    ///
    /// If it cannot be read, which is something else: what it uses stays held.
    fn service(&self, snapshot: &Snapshot, at: ObjectName<'_>) -> Result<Option<Object>, Status> {
        let entry = snapshot.get(&self.services.key(at));
        entry.map(|entry| self.services.object(&entry.into())).transpose()
    }

    /// What a Service uses and nobody holds, as keys and values.
    fn missing(
        &self,
        snapshot: &Snapshot,
        at: ObjectName<'_>,
        service: &Object,
    ) -> Result<Vec<(Bytes, Bytes)>, Status> {
        let Some(spec) = spec_of(service) else { return Ok(Vec::new()) };
        let mut missing = Vec::new();
        let storage = self.addresses.storage().expect("a required resource is stored");
        for ip in Addresses::of(spec).allocated().into_iter().filter(|ip| self.range.contains(*ip)) {
            let key = storage.key(ObjectName { namespace: "", name: &ip.to_string() });
            if snapshot.get(&key).is_none() {
                missing.push(address::encode(&self.addresses, ip, at)?);
            }
        }
        for port in ports::used(spec).into_iter().filter(|port| self.node_ports.contains(*port)) {
            let key = ports::key(&self.ports_prefix, port);
            if snapshot.get(&key).is_none() {
                missing.push((key, address::holder(at)));
            }
        }
        Ok(missing)
    }

    /// The keys of the node ports that a Service uses.
    fn used(&self, service: Option<&Object>) -> BTreeSet<Bytes> {
        let used = service.and_then(spec_of).map(ports::used).unwrap_or_default();
        used.into_iter().map(|port| ports::key(&self.ports_prefix, port)).collect()
    }

    /// The keys of node ports that are held for a Service which does not use them, and when they were written.
    fn leaked(&self, snapshot: &Snapshot, at: ObjectName<'_>, service: Option<&Object>) -> Vec<(Bytes, u64)> {
        let used = self.used(service);
        let held = snapshot.scan(&KeyRange::prefix(self.ports_prefix.clone()));
        let held = held.filter(|entry| memmem::find(&entry.value, at.name.as_bytes()).is_some());
        let leaked = held.filter(|entry| !used.contains(&entry.key) && address::is_held_by(&entry.value, at));
        leaked.map(|entry| (entry.key.clone(), entry.mod_revision)).collect()
    }

    fn is_wrong(&self, snapshot: &Snapshot, at: ObjectName<'_>) -> bool {
        let Ok(service) = self.service(snapshot, at) else { return false };
        let missing = service.as_ref().map(|service| self.missing(snapshot, at, service));
        !self.leaked(snapshot, at, service.as_ref()).is_empty()
            || missing.is_some_and(|missing| missing.is_ok_and(|missing| !missing.is_empty()))
    }
}

impl Sync for ServiceRepair {
    type Item = Work;
    const QUEUE: &str = "servicerepair";

    fn all(&self, snapshot: &Snapshot, items: &mut BTreeSet<Work>) {
        for entry in snapshot.scan(&KeyRange::prefix(self.services.prefix.clone())) {
            let at = self.services.object_name(&entry.key);
            let service = self.services.object(&Item::from(entry)).ok();
            if let Some((at, service)) = at.zip(service)
                && self.missing(snapshot, at, &service).is_ok_and(|missing| !missing.is_empty())
            {
                items.insert((at.namespace.to_owned(), at.name.to_owned()));
            }
        }
        let mut held: BTreeMap<Work, Vec<Bytes>> = BTreeMap::new();
        for entry in snapshot.scan(&KeyRange::prefix(self.ports_prefix.clone())) {
            if let Some(holder) = address::held_for(&entry.value) {
                held.entry(holder).or_default().push(entry.key.clone());
            }
        }
        for ((namespace, name), ports) in held {
            let at = ObjectName { namespace: &namespace, name: &name };
            let Ok(service) = self.service(snapshot, at) else { continue };
            let used = self.used(service.as_ref());
            if ports.iter().any(|port| !used.contains(port)) {
                items.insert((namespace, name));
            }
        }
    }

    fn changed(&self, _: usize, event: &Event, items: &mut BTreeSet<Work>) {
        // Of what is written here nothing is missing: it was part of the transaction.
        if let Some(at) = self.services.object_name(event.key())
            && let Ok(snapshot) = self.registry.replica().newest()
            && self.is_wrong(&snapshot, at)
        {
            items.insert((at.namespace.to_owned(), at.name.to_owned()));
        }
    }

    fn looked_at_all(&self) {
        self.is_done.store(true, Ordering::Relaxed);
    }

    async fn sync(&self, (namespace, name): &Work) -> Result<(), Status> {
        let at = ObjectName { namespace, name };
        // Nothing is taken or let go for a state that may be old.
        let snapshot = consistent(&self.registry).await?;
        let key = self.services.key(at);
        let service = self.service(&snapshot, at)?;
        let mut txn = self.registry.begin().await?;
        txn.compares.push(match snapshot.get(&key) {
            Some(entry) => Compare::mod_revision(key, entry.mod_revision),
            None => Compare::absent(key),
        });
        if let Some(service) = &service {
            for (key, value) in self.missing(&snapshot, at, service)? {
                txn.compares.push(Compare::absent(key.clone()));
                txn.writes.push(Write::Put { key, value, ttl: None });
            }
        }
        for (key, revision) in self.leaked(&snapshot, at, service.as_ref()) {
            txn.compares.push(Compare::mod_revision(key.clone(), revision));
            txn.writes.push(Write::Delete { key });
        }
        if txn.writes.is_empty() {
            return Ok(());
        }
        match self.registry.store().transact(txn).await {
            Ok(_) => {
                tracing::info!(namespace, name, "What a Service uses is held for it again.");
                Ok(())
            }
            // If the Service has changed, or somebody else took one of several things, nothing may be left to do the next time.
            Err(error) => Err(Status::internal_error(error)),
        }
    }
}
