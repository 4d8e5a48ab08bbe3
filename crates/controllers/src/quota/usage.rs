//! What objects use of what quotas limit.

use concord_meta::{GroupResource, Quantity, QuantityFormat};
use concord_plugins::amounts::{self, Amounts};
use concord_registry::{Attributes, Object, Operation, metadata};
use serde_json::Value;

use super::{at, text};

/// The names for pods that have no pattern.
const OF_PODS: [&str; 11] = [
    "count/pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];
const OF_SERVICES: [&str; 4] = ["count/services", "services", "services.nodeports", "services.loadbalancers"];
const OF_CLAIMS: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];

/// What comes between a storage class and what is limited of it.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";
const CLASS_OF_CLAIM: &str = "volume.beta.kubernetes.io/storage-class";
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";

/// Kinds that could be counted before everything could, by their plural alone.
const COUNTED_BEFORE: [&str; 4] = ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];

/// What every container must ask for if a quota limits it.
const DEMANDED: [&str; 6] =
    ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

/// How the objects of a resource are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    Pods,
    Services,
    Claims,
    /// Only how many there are.
    Count,
}

impl Measure {
    pub(super) fn of(resource: &GroupResource) -> Self {
        match (resource.group.as_str(), resource.resource.as_str()) {
            ("", "pods") => Self::Pods,
            ("", "services") => Self::Services,
            ("", "persistentvolumeclaims") => Self::Claims,
            _ => Self::Count,
        }
    }

    /// Whether a request can change what is used.
    pub(super) fn handles(self, attributes: &Attributes<'_>, object: &Object) -> bool {
        let creates = attributes.operation == Operation::Create;
        let updates = attributes.operation == Operation::Update;
        match (self, attributes.subresource) {
            (Self::Pods, "") => {
                let other = attributes.old.is_some_and(|old| is_terminating(old) != is_terminating(object));
                creates || (updates && other)
            }
            (Self::Pods, "resize") | (Self::Claims, "status") => updates,
            (Self::Services | Self::Claims, "") => creates || updates,
            (Self::Count, "") => creates,
            _ => false,
        }
    }

    /// Whether a name in a quota is about objects of this resource.
    pub(super) fn counts(self, resource: &GroupResource, name: &str) -> bool {
        match self {
            Self::Pods => {
                let extended = (name.contains('/') && !name.contains("kubernetes.io/"))
                    || name.strip_prefix("requests.").is_some_and(|name| name.starts_with(DEVICE_CLASS));
                OF_PODS.contains(&name)
                    || name.starts_with("hugepages-")
                    || name.starts_with("requests.hugepages-")
                    || (name.starts_with("requests.") && extended)
            }
            Self::Services => OF_SERVICES.contains(&name),
            Self::Claims => {
                let of_class = name.split_once(OF_CLASS).map(|(_, what)| what);
                name == "count/persistentvolumeclaims" || OF_CLAIMS.contains(&of_class.unwrap_or(name))
            }
            Self::Count => {
                let before = resource.group.is_empty() && COUNTED_BEFORE.contains(&name);
                (before && name == resource.resource) || name == count(resource)
            }
        }
    }

    /// What an object uses.
    pub(super) fn usage(self, resource: &GroupResource, object: &Object, now: i64) -> Amounts {
        match self {
            Self::Pods => of_pod(object, now),
            Self::Services => of_service(object),
            Self::Claims => of_claim(object),
            Self::Count => {
                let before =
                    Some(resource.resource.clone()).filter(|name| COUNTED_BEFORE.contains(&name.as_str()));
                let before = before.filter(|_| resource.group.is_empty());
                std::iter::once(count(resource)).chain(before).map(|name| (name, number(1))).collect()
            }
        }
    }

    /// What is wrong with an object that quotas with these names apply to.
    pub(super) fn constraints<'a>(
        self,
        names: impl Iterator<Item = &'a str>,
        object: &Object,
    ) -> Result<(), String> {
        if self != Self::Pods || at(object, &["spec", "resources"]).is_some() {
            return Ok(());
        }
        let mut missing = Vec::new();
        let mut names: Vec<&str> = names.filter(|name| DEMANDED.contains(name)).collect();
        names.sort_unstable();
        for name in names {
            let lacking = |container: &&Value| {
                let list =
                    |list: &str| amounts::amounts(container.get("resources").and_then(|all| all.get(list)));
                !compute(&list("requests"), &list("limits")).contains_key(name)
            };
            let lists = ["containers", "initContainers"].into_iter();
            let containers = lists.filter_map(|list| at(object, &["spec", list])?.as_array()).flatten();
            let containers =
                containers.filter(lacking).filter_map(|container| container.get("name")?.as_str());
            let mut containers: Vec<&str> = containers.collect();
            containers.sort_unstable();
            containers.dedup();
            if !containers.is_empty() {
                missing.push(format!("{name} for: {}", containers.join(",")));
            }
        }
        match missing.is_empty() {
            true => Ok(()),
            false => Err(format!("must specify {}", missing.join("; "))),
        }
    }
}

fn number(value: i64) -> Quantity {
    Quantity::new(value, QuantityFormat::DecimalSi)
}

/// The name by which everything can be counted.
fn count(resource: &GroupResource) -> String {
    match resource.group.as_str() {
        "" => format!("count/{}", resource.resource),
        group => format!("count/{}.{group}", resource.resource),
    }
}

/// Whether a pod is one that ends by itself.
pub(super) fn is_terminating(pod: &Object) -> bool {
    at(pod, &["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64).is_some_and(|seconds| seconds >= 0)
}

fn of_pod(pod: &Object, now: i64) -> Amounts {
    let mut usage = Amounts::from([("count/pods".to_owned(), number(1))]);
    if !is_over(pod, now) {
        let (mut requests, mut limits) = (amounts::of_pod(pod, "requests"), amounts::of_pod(pod, "limits"));
        let overhead = amounts::amounts(at(pod, &["spec", "overhead"]));
        amounts::add(&mut requests, &overhead);
        let limited =
            overhead.into_iter().filter(|(name, _)| limits.get(name).is_some_and(|limit| !limit.is_zero()));
        let limited: Amounts = limited.collect();
        amounts::add(&mut limits, &limited);
        amounts::add(&mut usage, &compute(&requests, &limits));
    }
    usage
}

/// Whether a pod has ended, or should have been gone by now.
fn is_over(pod: &Object, now: i64) -> bool {
    let said = metadata(pod);
    let due = said.deletion_timestamp().zip(said.deletion_grace_period());
    ["Failed", "Succeeded"].contains(&text(pod, &["status", "phase"]))
        || due.is_some_and(|(deleted, grace)| now > deleted.unix.saturating_add(grace))
}

/// What requests and limits are called in quotas.
fn compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = Amounts::from([("pods".to_owned(), number(1))]);
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(amount) = requests.get(name) {
            usage.insert(name.to_owned(), amount.clone());
            usage.insert(format!("requests.{name}"), amount.clone());
        }
        if let Some(amount) = limits.get(name) {
            usage.insert(format!("limits.{name}"), amount.clone());
        }
    }
    for (name, amount) in requests {
        if name.starts_with("hugepages-") {
            usage.insert(name.clone(), amount.clone());
        }
        let extended = name.contains('/') && !name.contains("kubernetes.io/");
        if name.starts_with("hugepages-") || extended || name.starts_with(DEVICE_CLASS) {
            usage.insert(format!("requests.{name}"), amount.clone());
        }
    }
    usage
}

fn of_service(service: &Object) -> Amounts {
    let ports = || at(service, &["spec", "ports"]).and_then(Value::as_array).into_iter().flatten();
    let with_node_ports = ports().filter(|port| port["nodePort"].as_i64().is_some_and(|port| port != 0));
    let by_choice = at(service, &["spec", "allocateLoadBalancerNodePorts"]) == Some(&Value::Bool(false));
    let (node_ports, balancers) = match text(service, &["spec", "type"]) {
        "NodePort" => (ports().count(), 0),
        "LoadBalancer" if by_choice => (with_node_ports.count(), 1),
        "LoadBalancer" => (ports().count(), 1),
        _ => (0, 0),
    };
    let node_ports = i64::try_from(node_ports).unwrap_or(i64::MAX);
    let values = [1, 1, node_ports, balancers].map(number);
    OF_SERVICES.into_iter().map(str::to_owned).zip(values).collect()
}

fn of_claim(claim: &Object) -> Amounts {
    let annotations = metadata(claim).get("annotations");
    let class = annotations.and_then(|annotations| annotations.get(CLASS_OF_CLAIM)?.as_str());
    let class = class.unwrap_or_else(|| text(claim, &["spec", "storageClassName"]));
    let storage = |path: &[&str]| amounts::amounts(at(claim, path)).remove("storage");
    let requested = storage(&["spec", "resources", "requests"]);
    let allocated = storage(&["status", "allocatedResources"]);
    let requested =
        requested.map(|requested| allocated.filter(|more| *more > requested).unwrap_or(requested));
    let mut usage = Amounts::from([("count/persistentvolumeclaims".to_owned(), number(1))]);
    let all = [Some(number(1)), requested.map(|amount| whole(&amount))];
    for (name, amount) in OF_CLAIMS.into_iter().zip(all) {
        let Some(amount) = amount else { continue };
        if !class.is_empty() {
            usage.insert(format!("{class}{OF_CLASS}{name}"), amount.clone());
        }
        usage.insert(name.to_owned(), amount);
    }
    usage
}

/// Parts of bytes count as whole ones.
fn whole(amount: &Quantity) -> Quantity {
    let rounded = Quantity::new(amount.value(), amount.format());
    if rounded == *amount { amount.clone() } else { rounded }
}
