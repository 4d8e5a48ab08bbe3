//! The addresses and node ports of Services.

mod address;
mod families;
mod ports;
mod range;
mod repair;
mod reservations;

use std::{net::IpAddr, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use concord_meta::{Status, field};
use concord_registry::{
    Admission, Attributes, Guard, Object, ObjectName, Operation, Resource, Resources, Storage, metadata,
};
use concord_replica::{Entry, Replica, Snapshot};
use concord_store::{Compare, Write};
use serde_json::Value;

pub(crate) use self::range::Family;
use self::{families::Addresses, reservations::Reservations};
pub use self::{
    range::{IpRange, NodePortRange},
    repair::ServiceRepair,
};
use crate::{
    Error,
    own::{required, served},
};

const OTHER_RANGE: &str = "the provided network does not match the current range";
const ALLOCATED: &str = "provided port is already allocated";

/// Gives Services their cluster IPs and node ports.
///
/// As upstream since 1.33, an address that is in use is an IPAddress object of that name. Unlike upstream, it comes into
/// being in the transaction of the Service that uses it, on the condition that there is none, and goes away in the
/// transaction in which the Service gives it up or is removed. So no address is used twice and none leaks, on however
/// many servers. Node ports are held in the same way, by keys that are no objects. What others wrote is repaired by
/// [`ServiceRepair`].
///
/// Which address a new Service gets is decided before the transaction. If another server is faster to take it, another one
/// is chosen, some times, before the client is told to try again.
pub struct ServiceAllocation {
    replica: Arc<Replica>,
    services: Arc<Storage>,
    endpoints: Option<Arc<Storage>>,
    addresses: Arc<Resource>,
    range: IpRange,
    node_ports: NodePortRange,
    /// Where node ports are held: this and the number.
    ports_prefix: Bytes,
    chosen_ips: Reservations<IpAddr>,
    chosen_ports: Reservations<u16>,
}

impl ServiceAllocation {
    /// For the Services and IPAddresses that are among the resources.
    ///
    /// # Errors
    ///
    /// [`Error::NotServed`] if there are none.
    pub fn new(
        replica: Arc<Replica>,
        resources: &dyn Resources,
        range: IpRange,
        node_ports: NodePortRange,
    ) -> Result<Self, Error> {
        let services = required(resources, "", "v1", "services")?;
        let services = services.storage().cloned().expect("a required resource is stored");
        Ok(Self {
            replica,
            ports_prefix: ports::prefix(&services),
            services,
            endpoints: served(resources, "", "v1", "endpoints").and_then(|found| found.storage().cloned()),
            addresses: required(resources, "networking.k8s.io", "v1", "ipaddresses")?,
            range,
            node_ports,
            chosen_ips: Reservations::new(),
            chosen_ports: Reservations::new(),
        })
    }

    fn concerns(&self, attributes: &Attributes<'_>) -> bool {
        let storage = attributes.resource.storage();
        attributes.subresource.is_empty()
            && storage.is_some_and(|storage| storage.prefix == self.services.prefix)
    }

    fn address_key(&self, ip: IpAddr) -> Bytes {
        let storage = self.addresses.storage().expect("a required resource is stored");
        storage.key(ObjectName { namespace: "", name: &ip.to_string() })
    }

    fn port_key(&self, port: i64) -> Bytes {
        ports::key(&self.ports_prefix, port)
    }

    /// Completes a Service that is about to be written.
    fn allocate(
        &self,
        attributes: &Attributes<'_>,
        spec: &mut Object,
        snapshot: &Snapshot,
    ) -> Result<(), Status> {
        let old = attributes.old.and_then(spec_of);
        let before = old.map(Addresses::of);
        let mut addresses = Addresses::of(spec);
        addresses.normalize(before.as_ref());
        if let Some(before) = &before {
            addresses.drop_if_external(before);
        }
        let refused = |errors: Vec<field::Error>| {
            Status::invalid(&self.services.group_kind(), attributes.name, &errors)
        };
        addresses.complete(before.as_ref(), self.range.family()).map_err(refused)?;
        if let Some(before) = &before {
            addresses.unchanged(before).map_err(refused)?;
        }
        self.choose_ip(attributes, &mut addresses, snapshot)?;
        addresses.put(spec);
        ports::assign(spec, old, || self.choose_port(attributes, snapshot))?;
        self.check_ranges(attributes, spec)
    }

    /// Refuses what can be had in no state, before anything else about the Service is looked at: as upstream does.
    fn check_ranges(&self, attributes: &Attributes<'_>, spec: &Object) -> Result<(), Status> {
        let old = attributes.old.and_then(spec_of);
        let had = old.map(|old| Addresses::of(old).allocated()).unwrap_or_default();
        let has = Addresses::of(spec).allocated();
        if let Some(ip) = has.into_iter().find(|ip| !had.contains(ip) && !self.range.contains(*ip)) {
            return Err(self.bad_ip(attributes, Some(spec), ip, OTHER_RANGE));
        }
        let had = old.map(ports::used).unwrap_or_default();
        if let Some(port) = ports::used(spec).difference(&had).find(|port| !self.node_ports.contains(**port))
        {
            return Err(self.bad_port(attributes, Some(spec), *port, self.out_of_range()));
        }
        match ports::claimed_twice(spec).filter(|_| old.is_none()) {
            Some((path, port)) => {
                let error = field::Error::invalid(&path, port, ALLOCATED);
                Err(Status::invalid(&self.services.group_kind(), attributes.name, &[error]))
            }
            None => Ok(()),
        }
    }

    fn out_of_range(&self) -> String {
        let range = self.node_ports;
        format!("provided port is not in the valid range. The range of valid ports is {range}")
    }

    fn bad_ip(&self, attributes: &Attributes<'_>, spec: Option<&Object>, ip: IpAddr, why: &str) -> Status {
        let addresses = spec.map(Addresses::of).unwrap_or_default();
        let error = addresses.bad_ips(format!("failed to allocate IP {ip}: {why}"));
        Status::invalid(&self.services.group_kind(), attributes.name, &[error])
    }

    fn bad_port(&self, attributes: &Attributes<'_>, spec: Option<&Object>, port: i64, why: String) -> Status {
        // Upstream takes it for its own mistake if it is the one for health checks.
        if spec.is_some_and(|spec| !ports::is_of_a_port(spec, port)) {
            return Status::internal_error(format!(
                "failed to allocate requested HealthCheck NodePort {port}: {why}"
            ));
        }
        let error = spec.map(|spec| ports::refused(spec, port, why));
        Status::invalid(&self.services.group_kind(), attributes.name, error.as_slice())
    }

    fn choose_ip(
        &self,
        attributes: &Attributes<'_>,
        addresses: &mut Addresses,
        snapshot: &Snapshot,
    ) -> Result<(), Status> {
        if addresses.is_external_name() || !addresses.cluster_ips.is_empty() {
            return Ok(());
        }
        let is_free = |ip| snapshot.get(&self.address_key(ip)).is_none();
        let dry_run = attributes.context.dry_run;
        let Some(ip) = self.chosen_ips.choose(self.range.candidates(), is_free, dry_run) else {
            let name = concord_meta::go::quote(attributes.name);
            let why = format!("failed to allocate a serviceIP for Service {name}: range is full");
            return Err(Status::internal_error(why));
        };
        addresses.cluster_ip = ip.to_string();
        addresses.cluster_ips = vec![addresses.cluster_ip.clone()];
        Ok(())
    }

    fn choose_port(&self, attributes: &Attributes<'_>, snapshot: &Snapshot) -> Result<u16, Status> {
        let is_free = |port: u16| snapshot.get(&self.port_key(port.into())).is_none();
        let chosen =
            self.chosen_ports.choose(self.node_ports.candidates(), is_free, attributes.context.dry_run);
        chosen.ok_or_else(|| Status::internal_error("failed to allocate a nodePort: range is full"))
    }

    /// What changes hands between two states of a Service, as part of a transaction.
    fn hand_over(
        &self,
        attributes: &Attributes<'_>,
        new: Option<&Object>,
        snapshot: &Snapshot,
    ) -> Result<Guard, Status> {
        let (old, new) = (attributes.old.and_then(spec_of), new.and_then(spec_of));
        let ips =
            |spec: Option<&Object>| spec.map(|spec| Addresses::of(spec).allocated()).unwrap_or_default();
        let (had, has) = (ips(old), ips(new));
        let mut guard = Guard::default();
        for ip in has.iter().filter(|ip| !had.contains(ip)) {
            self.take_ip(attributes, *ip, new, snapshot, &mut guard)?;
        }
        for ip in had.iter().filter(|ip| !has.contains(ip)) {
            self.release_ip(*ip, attributes, snapshot, &mut guard);
        }
        let ports = |spec: Option<&Object>| spec.map(ports::used).unwrap_or_default();
        let (had, has) = (ports(old), ports(new));
        for port in has.difference(&had) {
            self.take_port(attributes, *port, new, snapshot, &mut guard)?;
        }
        for port in had.difference(&has) {
            self.release_port(*port, attributes, snapshot, &mut guard);
        }
        Ok(guard)
    }

    fn take_ip(
        &self,
        attributes: &Attributes<'_>,
        ip: IpAddr,
        spec: Option<&Object>,
        snapshot: &Snapshot,
        guard: &mut Guard,
    ) -> Result<(), Status> {
        let refused = |why: &str| self.bad_ip(attributes, spec, ip, why);
        if !self.range.contains(ip) {
            return Err(refused(OTHER_RANGE));
        }
        let key = self.address_key(ip);
        if snapshot.get(&key).is_some() {
            return Err(match self.chosen_ips.contains(ip) {
                true => self.lost_race(attributes),
                false => refused("provided IP is already allocated"),
            });
        }
        let (key, value) = address::encode(&self.addresses, ip, service(attributes))?;
        guard.compares.push(Compare::absent(key.clone()));
        guard.writes.push(Write::Put { key, value, ttl: None });
        Ok(())
    }

    fn take_port(
        &self,
        attributes: &Attributes<'_>,
        port: i64,
        spec: Option<&Object>,
        snapshot: &Snapshot,
        guard: &mut Guard,
    ) -> Result<(), Status> {
        let refused = |why: String| self.bad_port(attributes, spec, port, why);
        if !self.node_ports.contains(port) {
            return Err(refused(self.out_of_range()));
        }
        let key = self.port_key(port);
        if snapshot.get(&key).is_some() {
            let chosen = u16::try_from(port).is_ok_and(|port| self.chosen_ports.contains(port));
            return Err(match chosen {
                true => self.lost_race(attributes),
                false => refused(ALLOCATED.to_owned()),
            });
        }
        guard.compares.push(Compare::absent(key.clone()));
        guard.writes.push(Write::Put { key, value: address::holder(service(attributes)), ttl: None });
        Ok(())
    }

    /// Lets go of an address that this Service holds, whoever wrote that it does.
    fn release_ip(&self, ip: IpAddr, attributes: &Attributes<'_>, snapshot: &Snapshot, guard: &mut Guard) {
        let Some(entry) = snapshot.get(&self.address_key(ip)) else { return };
        let holder = self.addresses.object(&entry.into());
        let is_held =
            |holder: &Object| address::service(holder) == Some((attributes.namespace, attributes.name));
        if holder.as_ref().is_ok_and(is_held) {
            release(entry, guard);
        }
    }

    fn release_port(&self, port: i64, attributes: &Attributes<'_>, snapshot: &Snapshot, guard: &mut Guard) {
        let entry = snapshot.get(&self.port_key(port));
        if let Some(entry) = entry.filter(|entry| address::is_held_by(&entry.value, service(attributes))) {
            release(entry, guard);
        }
    }

    /// The Endpoints of a Service go with it: they would be those of the next Service of that name.
    fn remove_endpoints(&self, attributes: &Attributes<'_>, snapshot: &Snapshot, guard: &mut Guard) {
        let Attributes { namespace, name, .. } = *attributes;
        let Some(storage) = &self.endpoints else { return };
        let key = storage.key(ObjectName { namespace, name });
        let Some(entry) = snapshot.get(&key) else {
            // They may have come since.
            guard.compares.push(Compare::absent(key));
            return;
        };
        let held =
            storage.object(&entry.into()).is_ok_and(|object| !metadata(&object).finalizers().is_empty());
        if !held {
            guard.compares.push(Compare::mod_revision(key.clone(), entry.mod_revision));
            guard.writes.push(Write::Delete { key });
        }
    }

    /// What was free when it was chosen is not any more.
    fn lost_race(&self, attributes: &Attributes<'_>) -> Status {
        let operation = if attributes.operation == Operation::Create { "create" } else { "update" };
        Status::server_timeout(&self.services.resource, operation, 1)
    }

    /// An address that a Service uses cannot be taken away from it; upstream allows that and puts it back minutes later.
    fn keep_used(&self, attributes: &Attributes<'_>, snapshot: &Snapshot) -> Result<(), Status> {
        let Some((namespace, name)) = attributes.old.and_then(address::service) else { return Ok(()) };
        let Ok(ip) = attributes.name.parse::<IpAddr>() else { return Ok(()) };
        let key = self.services.key(ObjectName { namespace, name });
        let service = snapshot.get(&key).and_then(|entry| self.services.object(&entry.into()).ok());
        let uses = service
            .as_ref()
            .and_then(spec_of)
            .is_some_and(|spec| Addresses::of(spec).allocated().contains(&ip));
        match uses {
            true => {
                let why = format!("the address is in use by Service {namespace}/{name}");
                Err(Status::forbidden(&attributes.resource.group_resource(), attributes.name, why))
            }
            false => Ok(()),
        }
    }
}

#[async_trait]
impl Admission for ServiceAllocation {
    fn name(&self) -> &'static str {
        "ServiceAllocation"
    }

    async fn admit(&self, attributes: &Attributes<'_>, object: Option<&mut Object>) -> Result<(), Status> {
        let Some(spec) = object.and_then(|object| object.get_mut("spec")).and_then(Value::as_object_mut)
        else {
            return Ok(());
        };
        if !self.concerns(attributes) {
            return Ok(());
        }
        let snapshot = self.replica.newest().map_err(Status::internal_error)?;
        self.allocate(attributes, spec, &snapshot)
    }

    fn guard(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Object>,
        snapshot: &Snapshot,
    ) -> Result<Guard, Status> {
        match object {
            Some(object) if self.concerns(attributes) => self.hand_over(attributes, Some(object), snapshot),
            _ => Ok(Guard::default()),
        }
    }

    fn removal(&self, attributes: &Attributes<'_>, snapshot: &Snapshot) -> Result<Guard, Status> {
        if self.concerns(attributes) {
            let mut guard = self.hand_over(attributes, None, snapshot)?;
            self.remove_endpoints(attributes, snapshot, &mut guard);
            return Ok(guard);
        }
        let prefix = |resource: &Resource| resource.storage().map(|storage| storage.prefix.clone());
        if prefix(attributes.resource) == prefix(&self.addresses) {
            self.keep_used(attributes, snapshot)?;
        }
        Ok(Guard::default())
    }
}

fn spec_of(object: &Object) -> Option<&Object> {
    object.get("spec").and_then(Value::as_object)
}

/// The Service that is written.
fn service<'a>(attributes: &Attributes<'a>) -> ObjectName<'a> {
    ObjectName { namespace: attributes.namespace, name: attributes.name }
}

/// Lets go of what is stored so.
fn release(entry: &Entry, guard: &mut Guard) {
    guard.compares.push(Compare::mod_revision(entry.key.clone(), entry.mod_revision));
    guard.writes.push(Write::Delete { key: entry.key.clone() });
}
