//! StatefulSets.

use concord_meta::{field::BadValue, names};
use serde_json::{Map, Value};

use super::{
    NO_MATCH, amount, at_most_all, int_or_percent, required_selector, selects, shown, template_labels,
};
use crate::{
    internal, labels, meta,
    node::{Node, Root},
    persistence::{self, ClaimOptions},
    pod::{self, Options},
    rules::same,
};

const MUTABLE: [&str; 7] = [
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
];

/// What an update may keep.
#[derive(Clone, Copy, Default)]
struct Leniency {
    service_name: bool,
    template: bool,
    claims: bool,
}

pub(crate) fn stateful_set(root: Root<'_>) {
    spec(root.get("spec"), Options::default(), Leniency::default());
}

fn management_policy(policy: Node<'_>) {
    match policy.text() {
        "" => policy.required(""),
        "OrderedReady" | "Parallel" => {}
        text => policy.invalid(BadValue::named(text), "must be 'OrderedReady' or 'Parallel'"),
    }
}

fn spec<'v>(spec: Node<'v>, mut options: Options<'v>, leniency: Leniency) {
    management_policy(spec.get("podManagementPolicy"));
    strategy(spec.get("updateStrategy"));
    let retention = spec.get("persistentVolumeClaimRetentionPolicy");
    if retention.is_set() {
        retention.get("whenDeleted").one_of(&["Retain", "Delete"]);
        retention.get("whenScaled").one_of(&["Retain", "Delete"]);
    }
    let claims = spec.get("volumeClaimTemplates");
    if !leniency.claims {
        claims.items().for_each(|claim| persistence::claim_spec(claim.get("spec"), &ClaimOptions::default()));
    }
    spec.get("replicas").nonnegative();
    spec.get("minReadySeconds").nonnegative();
    if spec.has("ordinals") {
        spec.child("ordinals.start").holding(spec.get("ordinals").raw("start")).nonnegative();
    }
    if !leniency.service_name {
        spec.get("serviceName").optional_and(names::dns1123_label);
    }
    required_selector(spec, "statefulset");
    let (node, template) = (spec.get("selector"), spec.get("template"));
    options.without_hostname = true;
    options.claims = claim_names(claims);
    match selects(spec, template) {
        None => node.invalid(labels::shown(node), ""),
        Some(matches) => {
            if !matches {
                template.child("metadata").child("labels").invalid(template_labels(template), NO_MATCH);
            }
            if !leniency.template {
                unnamed_claims(template, &options.claims);
                pod::template(template, &options);
            }
            pod::template_metadata(template, &options);
        }
    }
    super::always_running(template, "StatefulSet");
}

/// Each claim is a volume of the template, which needs the claim's name.
fn unnamed_claims(template: Node<'_>, claims: &[&str]) {
    for (index, _) in claims.iter().enumerate().filter(|(_, name)| name.is_empty()) {
        let volume = template.child("spec").child("volumes").at(index);
        volume.child("persistentVolumeClaim").child("claimName").required("");
    }
}

fn claim_names(claims: Node<'_>) -> Vec<&str> {
    let name = |claim| Value::pointer(claim, "/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let mut all: Vec<&str> = claims.list().iter().map(name).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn strategy(strategy: Node<'_>) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.str("type") {
        "" => strategy.required(""),
        "OnDelete" if rolling.is_set() => {
            let shown = internal::shown("RollingUpdateStatefulSetStrategy", rolling.value());
            rolling.invalid(shown, "only allowed for updateStrategy 'RollingUpdate'");
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            rolling.get("partition").nonnegative();
            max_unavailable(rolling.get("maxUnavailable"));
        }
        _ => {
            let shown = internal::shown("StatefulSetUpdateStrategy", strategy.value());
            strategy.invalid(shown, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

fn max_unavailable(node: Node<'_>) {
    if !node.is_set() {
        return;
    }
    int_or_percent(node);
    if amount(node) == 0 {
        node.invalid(shown(node), "cannot be 0");
    }
    at_most_all(node);
}

pub(crate) fn stateful_set_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    if subresource == "status" {
        return super::status::stateful_set(new, old);
    }
    meta::update(new, old);
    let (node, before) = (new.get("spec"), old.get("spec"));
    let options = || Options::for_template(before.get("template"));
    let mut leniency = Leniency { service_name: true, template: false, claims: true };
    leniency.template = before.breaks(|before| spec(before, options(), leniency));
    spec(node, options(), leniency);
    let rest = |spec: Node<'v>| -> Map<String, Value> {
        let members = spec.object().into_iter().flatten();
        let fixed = members.filter(|(name, _)| !MUTABLE.contains(&name.as_str()));
        fixed.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    if !same(Some(&Value::Object(rest(node))), Some(&Value::Object(rest(before)))) {
        node.forbidden("updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden");
    }
}
