//! What was given.

use concord_meta::{field::BadValue, names};
use serde_json::Value;

use super::{
    MAX_CONFIG, binding,
    claim::{MAX_REQUESTS, reference, references},
    configuration, distinct, driver, limited, pool_name, raw,
    uuid::share,
};
use crate::{
    conditions::conditions,
    internal,
    ip::Cidr,
    labels::Values,
    node::{Node, Root},
    pod::affinity::node_selector,
    rules::{IMMUTABLE, same},
};

const MAX_RESERVED: usize = 256;
const MAX_DEVICE_CONDITIONS: usize = 8;
const MAX_DATA: usize = 10 * 1024;
const MAX_ADDRESSES: usize = 16;

pub(super) fn update<'v>(new: Root<'v>, old: Root<'v>) {
    let (status, before) = (new.get("status"), old.get("status"));
    let (allocation, allocated) = (status.get("allocation"), before.get("allocation"));
    let reserved = status.get("reservedFor");
    match reserved.len() > MAX_RESERVED {
        true => reserved.too_many(reserved.len(), MAX_RESERVED),
        false => {
            reserved.items().for_each(consumer);
            distinct(reserved, |item| item.str("uid"));
        }
    }
    let devices = status.get("devices");
    devices.items().for_each(|item| device(item, allocation));
    repeated(devices);
    if !reserved.is_empty() && !allocation.is_set() {
        reserved.forbidden("may not be specified when `allocated` is not set");
    } else if new.metadata().has("deletionTimestamp") {
        let is_new = |item: &Value| !before.get("reservedFor").list().contains(item);
        if reserved.list().iter().any(is_new) {
            reserved.forbidden(
                "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set",
            );
        }
    }
    match (allocation.is_set(), allocated.is_set()) {
        (true, true) if !same(allocation.value(), allocated.value()) => {
            allocation.invalid(internal::shown("AllocationResult", allocation.value()), IMMUTABLE);
        }
        (true, false) => result(allocation, new.get("spec").get("devices").get("requests")),
        _ => {}
    }
}

fn consumer(reference: Node<'_>) {
    reference.need(&["resource", "name", "uid"]);
}

fn result<'v>(allocation: Node<'v>, requests: Node<'v>) {
    let devices = allocation.get("devices");
    limited(devices.get("results"), MAX_REQUESTS, |item| {
        reference(item.get("request"), requests);
        driver(item.get("driver"));
        pool_name(item.get("pool"));
        item.get("device").check(names::dns1123_label);
        binding(item);
        share(item.get("shareID"));
    });
    limited(devices.get("config"), 2 * MAX_CONFIG, |config| {
        config.get("source").required_one_of(&["FromClaim", "FromClass"]);
        references(config.get("requests"), requests);
        configuration(config);
    });
    let selector = allocation.get("nodeSelector");
    if selector.is_set() {
        node_selector(selector, Values::Labels);
    }
}

/// What tells a device from all others.
fn identity(device: &Value) -> [&str; 4] {
    ["driver", "pool", "device", "shareID"].map(|name| device[name].as_str().unwrap_or_default())
}

fn shown([driver, pool, device, share]: [&str; 4]) -> BadValue {
    let text = |text: &str| Value::from(text).to_string();
    BadValue::verbatim(format!(
        "{{\"Driver\":{},\"Pool\":{},\"Device\":{},\"ShareID\":{}}}",
        text(driver),
        text(pool),
        text(device),
        text(share)
    ))
}

fn repeated(devices: Node<'_>) {
    let mut seen = Vec::new();
    for (item, device) in devices.items().zip(devices.list()) {
        let identity = identity(device);
        match seen.contains(&identity) {
            true => item.duplicate(shown(identity)),
            false => seen.push(identity),
        }
    }
}

fn device(device: Node<'_>, allocation: Node<'_>) {
    driver(device.get("driver"));
    pool_name(device.get("pool"));
    device.get("device").check(names::dns1123_label);
    share(device.get("shareID"));
    let results = allocation.get("devices").get("results").list();
    let own = device.value().map(identity).unwrap_or_default();
    if !results.iter().any(|result| identity(result) == own) {
        device.invalid(shown(own), "must be an allocated device in the claim");
    }
    let list = device.get("conditions");
    if list.len() > MAX_DEVICE_CONDITIONS {
        list.too_many(list.len(), MAX_DEVICE_CONDITIONS);
    }
    conditions(list);
    let data = device.get("data");
    if data.is_set() {
        raw(data, MAX_DATA);
    }
    network(device.get("networkData"));
}

fn network(data: Node<'_>) {
    for (name, max) in [("interfaceName", 256), ("hardwareAddress", 128)] {
        let node = data.get(name);
        if node.text().len() > max {
            node.too_long(max);
        }
    }
    let addresses = data.get("ips");
    if addresses.len() > MAX_ADDRESSES {
        return addresses.too_many(addresses.len(), MAX_ADDRESSES);
    }
    for address in addresses.items() {
        if Cidr::parse_sloppy(address.text()).is_none() {
            let why = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
            address.invalid(address.text(), why);
        }
    }
    distinct(addresses, Node::text);
}
