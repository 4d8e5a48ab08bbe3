use concord_registry::{Context, Object, Part};
use serde_json::Value;

use super::{Hooks, keep, member};

pub(super) const HOOKS: Hooks = Hooks { default: Some(default), update: Some(update), ..Hooks::NONE };

/// What upstream fills in and other parts of the server read.
fn default(object: &mut Object) {
    let spec = member(object, "spec");
    spec.entry("sessionAffinity").or_insert_with(|| "None".into());
    let kind =
        spec.entry("type").or_insert_with(|| "ClusterIP".into()).as_str().unwrap_or_default().to_owned();
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(port) = port.as_object_mut() else { continue };
        port.entry("protocol").or_insert_with(|| "TCP".into());
        let number = port.get("port").cloned();
        let unset = port.get("targetPort").is_none_or(|target| target == 0 || target == "");
        if let (true, Some(number)) = (unset, number) {
            port.insert("targetPort".to_owned(), number);
        }
    }
    if kind != "ExternalName" {
        spec.entry("internalTrafficPolicy").or_insert_with(|| "Cluster".into());
    }
    if ["NodePort", "LoadBalancer"].contains(&kind.as_str()) {
        spec.entry("externalTrafficPolicy").or_insert_with(|| "Cluster".into());
    }
    if kind == "LoadBalancer" {
        spec.entry("allocateLoadBalancerNodePorts").or_insert_with(|| true.into());
    }
}

/// The addresses stay with the service: a client that does not repeat them keeps them.
fn update(_: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
    let kind = |object: &Object| object.get("spec").and_then(|spec| spec.get("type")).cloned();
    if part != Part::Main || kind(new) != kind(old) {
        return;
    }
    let old = old.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let new = member(new, "spec");
    for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if new.get(name).is_none_or(|value| value == "" || value.is_null()) {
            keep(new, &old, name);
        }
    }
}
