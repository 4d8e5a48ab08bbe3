use std::{collections::BTreeSet, net::IpAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use concord_meta::{Reason, Status};
use concord_registry::{Object, Registry, Resources};
use concord_replica::{Closed, Error as ReplicaError, Scope, Snapshot, Subscription};
use concord_store::KeyRange;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    objects::in_default,
    writer::{Found, Wanted, Writer},
};
use crate::{Config, Error, backoff::Backoff, lifecycle::namespace_storage, services::Family};

/// How often a server says that it is there, and looks whether the objects are right; as upstream's.
const AGAIN: Duration = Duration::from_secs(10);

/// How long a server that said nothing is believed to be there.
const BELIEVED: Duration = Duration::from_secs(15);

/// How long a server that ends tries to say so; a process that has no identity any more has nothing to say.
const PARTING: Duration = Duration::from_secs(1);

/// Keeps the Endpoints and the EndpointSlice `default/kubernetes` those of the servers that are there.
///
/// Servers that share a store each hold a key with their address that expires. All of them write the same objects from
/// the same keys, so it does not matter who does.
pub(crate) struct ServerAddresses {
    writer: Writer,
    config: Config,
    /// What the keys of all servers begin with.
    leases: Bytes,
}

impl ServerAddresses {
    pub(crate) fn new(
        registry: Arc<Registry>,
        resources: Arc<dyn Resources>,
        config: Config,
    ) -> Result<Self, Error> {
        let namespaces = namespace_storage(resources.as_ref())?;
        let root = namespaces.prefix.strip_suffix(b"namespaces/").unwrap_or(&namespaces.prefix);
        let leases = [root, b"masterleases/"].concat().into();
        Ok(Self { writer: Writer { registry, resources }, config, leases })
    }

    /// Goes on until it is cancelled or the replica ends, and then says good-bye.
    pub(crate) async fn run(self, cancel: CancellationToken) {
        cancel.run_until_cancelled(self.follow()).await;
        if self.config.shared_store {
            match tokio::time::timeout(PARTING, self.leave()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::debug!(%error, "The address of this server stays for some seconds.")
                }
                Err(_) => tracing::debug!("The address of this server stays for some seconds."),
            }
        }
    }

    async fn leave(&self) -> Result<(), Status> {
        let registry = &self.writer.registry;
        let txn = registry.begin().await?.delete(self.key());
        registry.store().transact(txn).await.map(drop).map_err(Status::internal_error)
    }

    async fn follow(&self) {
        let mut backoff = Backoff::new();
        loop {
            match self.writer.registry.replica().snapshot_and_subscribe(Scope::prefix(self.leases.clone())) {
                Ok((_, changes)) => {
                    let closed = self.follow_from(changes, &mut backoff).await;
                    if matches!(closed, Closed::Shutdown | Closed::Failed) {
                        return;
                    }
                }
                Err(ReplicaError::Shutdown | ReplicaError::Failed { .. }) => return,
                Err(_) => backoff.pause().await,
            }
        }
    }

    /// Looks at the objects when a server comes or goes, and from time to time.
    async fn follow_from(&self, mut changes: Subscription, backoff: &mut Backoff) -> Closed {
        let mut due = Instant::now();
        loop {
            // Only then: what this server says of itself is one of the changes that are followed.
            let is_due = Instant::now() >= due;
            if let Err(error) = Box::pin(self.keep(is_due)).await {
                if error.reason != Reason::CONFLICT {
                    tracing::warn!(%error, "Where the servers are could not be written to default/kubernetes.");
                }
                backoff.pause().await;
                continue;
            }
            backoff.reset();
            if is_due {
                due = Instant::now() + AGAIN;
            }
            if let Ok(Err(closed)) = tokio::time::timeout_at(due, changes.next()).await {
                return closed;
            }
        }
    }

    fn key(&self) -> Bytes {
        [self.leases.as_ref(), self.config.advertise_address.to_string().as_bytes()].concat().into()
    }

    async fn keep(&self, is_due: bool) -> Result<(), Status> {
        if is_due && self.config.shared_store {
            self.renew().await?;
        }
        let snapshot = self.writer.registry.replica().newest().map_err(Status::internal_error)?;
        let addresses = self.addresses(&snapshot);
        self.keep_object(&endpoints(&addresses, self.config.secure_port), &["subsets"]).await?;
        let slice = endpoint_slice(&addresses, self.config.advertise_address, self.config.secure_port);
        self.keep_object(&slice, &["endpoints", "ports"]).await
    }

    /// Says that this server is there.
    async fn renew(&self) -> Result<(), Status> {
        let address = self.config.advertise_address.to_string();
        let value = json!({
            "kind": "Endpoints", "apiVersion": "v1", "metadata": {}, "subsets": [{"addresses": [{"ip": address}]}],
        });
        let registry = &self.writer.registry;
        let txn = registry.begin().await?.put_with_ttl(self.key(), concord_codec::encode(&value), BELIEVED);
        registry.store().transact(txn).await.map(drop).map_err(Status::internal_error)
    }

    /// The servers that are there, this one included.
    fn addresses(&self, snapshot: &Snapshot) -> BTreeSet<IpAddr> {
        let keys = snapshot.scan(&KeyRange::prefix(self.leases.clone())).map(|entry| &entry.key);
        let said = keys.filter_map(|key| std::str::from_utf8(&key[self.leases.len()..]).ok()?.parse().ok());
        said.chain([self.config.advertise_address]).collect()
    }

    /// Makes the object, or brings these members of it up to date.
    async fn keep_object(&self, wanted: &Wanted, members: &[&str]) -> Result<(), Status> {
        let Some(found) = self.writer.ensure(wanted).await? else { return Ok(()) };
        let Found { resource, wanted: to_be, current: Some(mut object) } = found else { return Ok(()) };
        let family = "addressType";
        if object.get(family) != to_be.get(family) {
            // It cannot be changed.
            return self.writer.remove(wanted, &resource).await;
        }
        let differs = |object: &Object| members.iter().any(|name| object.get(*name) != to_be.get(*name));
        if !differs(&object) {
            return Ok(());
        }
        for name in members {
            match to_be.get(*name) {
                Some(value) => drop(object.insert((*name).to_owned(), value.clone())),
                None => drop(object.remove(*name)),
            }
        }
        self.writer.replace(wanted, &resource, object).await
    }
}

fn port(number: u16) -> Value {
    json!([{"name": "https", "port": number, "protocol": "TCP"}])
}

fn endpoints(addresses: &BTreeSet<IpAddr>, number: u16) -> Wanted {
    let addresses: Vec<Value> = addresses.iter().map(|ip| json!({"ip": ip.to_string()})).collect();
    let object = json!({
        "metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": addresses, "ports": port(number)}],
    });
    in_default("", "v1", "endpoints", object)
}

/// A slice has addresses of one family only: that of this server.
fn endpoint_slice(addresses: &BTreeSet<IpAddr>, own: IpAddr, number: u16) -> Wanted {
    let family = Family::of(own);
    let same = addresses.iter().filter(|ip| Family::of(**ip) == family);
    let endpoints: Vec<Value> =
        same.map(|ip| json!({"addresses": [ip.to_string()], "conditions": {"ready": true}})).collect();
    let object = json!({
        "metadata": {"labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": family.as_str(),
        "endpoints": endpoints,
        "ports": port(number),
    });
    in_default("discovery.k8s.io", "v1", "endpointslices", object)
}
