//! Nodes.

use concord_meta::{field::BadValue, go, names};
use serde_json::Value;

use crate::{
    internal,
    ip::{Cidr, is_v4, legacy_cidr, warn_cidr},
    json::{self, Field},
    meta,
    node::{Node, Root},
    pod::taint_effect,
    resources,
    rules::qualified_name,
};

const AVOIDED_PODS: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";

fn taints(taints: Node<'_>) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for taint in taints.items() {
        let (key, value, effect) = (taint.get("key"), taint.get("value"), taint.get("effect"));
        key.check(qualified_name);
        let problems = names::label_value(value.text());
        if !problems.is_empty() {
            value.invalid(value.text(), problems.join(";"));
        }
        match effect.text() {
            "" => effect.required(""),
            _ => taint_effect(effect),
        }
        let pair = (key.text(), effect.text());
        if seen.contains(&pair) {
            taint.duplicate(internal::shown("Taint", taint.value()));
            taint.detail("taints must be unique by key and effect pair");
            continue;
        }
        seen.push(pair);
    }
}

/// Upstream puts taints below metadata.
fn spec_taints(root: Root<'_>) {
    let list = root.get("spec").raw("taints");
    taints(root.child("metadata").child("taints").holding(list));
}

fn node_resources(root: Root<'_>) {
    let status = root.get("status");
    for list in ["capacity", "allocatable"] {
        let node = status.get(list);
        for (name, value) in node.object().into_iter().flatten() {
            resources::amount(node.child(name).holding(Some(value)), name);
        }
    }
}

fn declared_features(root: Root<'_>) {
    let features = root.get("status").get("declaredFeatures");
    let mut before: Option<&str> = None;
    for feature in features.items() {
        let text = feature.text();
        if let Some(before) = before {
            if before == text {
                feature.duplicate(text);
            } else if before > text {
                feature.invalid(text, "list must be sorted alphabetically");
            }
        }
        if let Some(problem) = feature_problem(text) {
            feature.invalid(text, problem);
        }
        before = Some(text);
    }
}

fn feature_problem(name: &str) -> Option<String> {
    let quoted = go::quote(name);
    if name.len() > names::MAX_SUBDOMAIN_BYTES {
        let most = names::MAX_SUBDOMAIN_BYTES;
        return Some(format!("invalid feature name {quoted}: must be no more than {most} characters"));
    }
    let fits = name.split('/').enumerate().all(|(index, part)| {
        let first = part.bytes().next();
        let starts = if index == 0 {
            first.is_some_and(|b| b.is_ascii_uppercase())
        } else {
            first.is_some_and(|b| b.is_ascii_alphabetic())
        };
        starts && part.bytes().all(|b| b.is_ascii_alphanumeric())
    });
    (!fits).then(|| format!("invalid feature name {quoted}: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"))
}

/// The pods that an annotation would rather have elsewhere: a list of controllers, in JSON.
/// What annotations say about a node that fields say today.
fn node_annotations(root: Root<'_>) {
    const TAINTS: &str = "scheduler.alpha.kubernetes.io/taints";
    if let Some(text) = root.annotation(TAINTS).filter(|text| !text.is_empty()) {
        let annotations = root.child("metadata").child("annotations");
        match json::structs(text.as_bytes(), "Taint", &TAINT) {
            Ok(list) => annotations.child(TAINTS).aside(list, taints),
            Err(why) => annotations.invalid(TAINTS, why),
        }
    }
    avoided_pods(root);
}

const TAINT: [Field; 4] = [
    Field { name: "Key", go_type: "string", number: false },
    Field { name: "Value", go_type: "string", number: false },
    Field { name: "Effect", go_type: "core.TaintEffect", number: false },
    Field { name: "TimeAdded", go_type: "string", number: false },
];

fn avoided_pods(root: Root<'_>) {
    let Some(text) = root.annotation(AVOIDED_PODS).filter(|text| !text.is_empty()) else { return };
    let annotations = root.child("metadata").child("annotations");
    let avoided = match json::read(text.as_bytes(), "v1.AvoidPods", Value::is_object) {
        Ok(avoided) => avoided,
        Err(why) => return annotations.child("AvoidPods").invalid(AVOIDED_PODS, why),
    };
    let entries = match avoided.get("preferAvoidPods") {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(entries)) => entries,
        Some(other) => {
            let what = json::kind(other);
            let into = "Go struct field AvoidPods.preferAvoidPods of type []v1.PreferAvoidPodsEntry";
            let why = format!("json: cannot unmarshal {what} into {into}");
            return annotations.child("AvoidPods").invalid(AVOIDED_PODS, why);
        }
    };
    for (index, entry) in entries.iter().enumerate() {
        let signature = annotations.child(AVOIDED_PODS).at(index).child("PodSignature");
        match entry.pointer("/podSignature/podController").filter(|controller| !controller.is_null()) {
            None => signature.required(""),
            Some(controller) if controller.get("controller") == Some(&Value::Bool(false)) => signature
                .child("PodController")
                .child("Controller")
                .invalid(false, "must point to a controller"),
            Some(_) => {}
        }
    }
}

pub(crate) fn node(root: Root<'_>) {
    node_annotations(root);
    spec_taints(root);
    node_resources(root);
    let capacity = root.get("status").get("nodeInfo").get2("swap", "capacity");
    if capacity.is_set() {
        root.child("metadata").child("nodeSwapStatus").child("capacity").holding(capacity.value()).positive();
    }
    declared_features(root);
    let cidrs = root.get("spec").get("podCIDRs");
    cidrs.items().for_each(|cidr| legacy_cidr(cidr, cidr.text(), &[]));
    if cidrs.len() > 1 {
        let texts: Vec<&str> = cidrs.items().map(Node::text).collect();
        if let Some(index) = texts.iter().position(|text| Cidr::parse_sloppy(text).is_none()) {
            let why = format!("invalid CIDR[{index}]: <nil> (invalid CIDR address: {})", texts[index]);
            let what = "invalid PodCIDRs. failed to check with dual stack with error:";
            cidrs.internal_error(format!("{what}{why}"));
        }
        let families: Vec<bool> = cidrs
            .items()
            .filter_map(|cidr| Cidr::parse_sloppy(cidr.text()))
            .map(|cidr| is_v4(cidr.address))
            .collect();
        if cidrs.len() > 2 || !(families.contains(&true) && families.contains(&false)) {
            cidrs.wrong("may specify no more than one CIDR for each IP family");
        }
    }
}

pub(crate) fn node_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    if subresource.is_empty() {
        meta::whole(new);
        node(new);
    }
    meta::update(new, old);
    node_annotations(new);
    node_resources(new);
    declared_features(new);
    let mut seen: Vec<[&str; 2]> = Vec::new();
    for address in new.get("status").get("addresses").items() {
        let pair = ["type", "address"].map(|name| address.str(name));
        if seen.contains(&pair) {
            address.duplicate(internal::shown("NodeAddress", address.value()));
        }
        seen.push(pair);
    }
    let (spec, before) = (new.get("spec"), old.get("spec"));
    pod_cidrs(spec.get("podCIDRs"), before.get("podCIDRs"));
    let provider = before.str("providerID");
    if !provider.is_empty() && provider != spec.str("providerID") {
        spec.child("providerID")
            .forbidden("node updates may not change providerID except from \"\" to valid");
    }
    config_source(spec.get("configSource"), true);
    for name in ["assigned", "active", "lastKnownGood"] {
        config_source(new.get("status").get2("config", name), false);
    }
    spec_taints(new);
    if spec.str("externalID") != before.str("externalID") {
        spec.child("externalID").forbidden("may not be updated");
    }
}

fn pod_cidrs(new: Node<'_>, old: Node<'_>) {
    if old.is_empty() {
        return;
    }
    let refuse = || new.forbidden("node updates may not change podCIDR except from \"\" to valid");
    if new.len() != old.len() {
        return refuse();
    }
    new.list().iter().zip(old.list()).filter(|(new, old)| new != old).for_each(|_| refuse());
}

fn config_source(source: Node<'_>, in_spec: bool) {
    if !source.is_set() {
        return;
    }
    let map = source.get("configMap");
    if !map.is_set() {
        let shown: BadValue = internal::shown("NodeConfigSource", source.value());
        return source.invalid(shown, "exactly one reference subfield must be non-nil");
    }
    for name in ["uid", "resourceVersion"] {
        match (in_spec, map.str(name).is_empty()) {
            (true, false) => map.child(name).forbidden(format!("{name} must not be set in spec")),
            (false, true) => map.child(name).required(""),
            _ => {}
        }
    }
    map.get("namespace").required_and(names::dns1123_label);
    map.get("name").required_and(names::dns1123_subdomain);
    map.get("kubeletConfigKey").required_and(names::config_map_key);
}

/// What to tell who writes a node.
pub(crate) fn warnings<'v>(new: Root<'v>, _: Option<Root<'v>>) {
    let spec = new.get("spec");
    if spec.has("configSource") {
        spec.child("configSource").warn("the feature is removed");
    }
    if !spec.str("externalID").is_empty() {
        spec.child("externalID").warn("this field is deprecated, and is unused by Kubernetes");
    }
    let cidrs = spec.get("podCIDRs");
    cidrs.items().for_each(|cidr| warn_cidr(cidr, cidr.text()));
}
