//! Which labels of its Node a node may choose.

use std::collections::BTreeSet;

use concord_registry::Object;

const OWN: [&str; 11] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];
const OWN_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
const KUBERNETES: [&str; 2] = ["kubernetes.io", "k8s.io"];
const RESTRICTED: &str = "node-restriction.kubernetes.io";

/// Those that differ and are not for a node to decide, sorted.
pub(super) fn forbidden_labels<'a>(new: Option<&'a Object>, old: Option<&'a Object>) -> Vec<&'a str> {
    let value = |labels: Option<&'a Object>, name: &str| labels.and_then(|labels| labels.get(name));
    let names: BTreeSet<&String> = [new, old].into_iter().flatten().flat_map(Object::keys).collect();
    let changed = names.into_iter().filter(|name| value(new, name) != value(old, name));
    changed.map(String::as_str).filter(|name| is_forbidden(name)).collect()
}

fn is_forbidden(label: &str) -> bool {
    let domain = label.split_once('/').map_or("", |(domain, _)| domain);
    let is_in = |of: &str| domain == of || domain.strip_suffix(of).is_some_and(|rest| rest.ends_with('.'));
    let is_own = OWN.contains(&label) || OWN_DOMAINS.into_iter().any(is_in);
    is_in(RESTRICTED) || (KUBERNETES.into_iter().any(is_in) && !is_own)
}
