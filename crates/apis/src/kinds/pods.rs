mod app_armor;
mod condition;
mod parts;

pub(crate) use self::condition::set_pod_condition;

use concord_meta::options::DeleteOptions;
use concord_registry::{Context, Object, Part, metadata};
use serde_json::{Value, json};

use super::{Hooks, image_volumes::drop_image_volumes, member, quality_of_service};

pub(super) const HOOKS: Hooks = Hooks {
    drop: Some(drop_image_volumes),
    create: Some(create),
    update: Some(update),
    graceful_deletion: Some(grace),
    ..Hooks::NONE
};

/// What a new pod's status says, and what its labels mean for the selectors that refer to them.
fn create(context: &Context, object: &mut Object) {
    let class = quality_of_service::class(object);
    member(object, "status").insert("qosClass".to_owned(), class.into());
    if is_gated(object) {
        let condition = json!({
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null, "lastTransitionTime": null,
        });
        member(object, "status").insert("conditions".to_owned(), json!([condition]));
    }
    select_by_labels(object);
    app_armor::annotations_become_fields(context, object);
}

fn is_gated(object: &Object) -> bool {
    let gates = object.get("spec").and_then(|spec| spec.get("schedulingGates")?.as_array());
    gates.is_some_and(|gates| !gates.is_empty())
}

/// The keys in `matchLabelKeys` and `mismatchLabelKeys` stand for what the pod's labels have there: the selectors beside
/// them get it written out.
fn select_by_labels(object: &mut Object) {
    let labels = metadata(object).labels().cloned().unwrap_or_default();
    let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
    if let Some(constraints) = spec.get_mut("topologySpreadConstraints").and_then(Value::as_array_mut) {
        constraints.iter_mut().for_each(|constraint| write_out(constraint, &labels));
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = spec.get_mut("affinity").and_then(|all| all.get_mut(kind)) else { continue };
        let mut terms = |list: &str, change: &dyn Fn(&mut Value)| {
            let terms = affinity.get_mut(list).and_then(Value::as_array_mut);
            terms.into_iter().flatten().for_each(change);
        };
        terms("preferredDuringSchedulingIgnoredDuringExecution", &|weighted| {
            if let Some(term) = weighted.get_mut("podAffinityTerm") {
                write_out(term, &labels);
            }
        });
        terms("requiredDuringSchedulingIgnoredDuringExecution", &|term| write_out(term, &labels));
    }
}

fn write_out(term: &mut Value, labels: &Object) {
    let mut requirements = Vec::new();
    for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let keys = term.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        for (key, value) in keys.filter_map(|key| Some((key, labels.get(key)?))) {
            requirements.push(json!({"key": key, "operator": operator, "values": [value]}));
        }
    }
    // A term without a selector matches nothing, and goes on to.
    let Some(selector) = term.get_mut("labelSelector").and_then(Value::as_object_mut) else { return };
    if requirements.is_empty() {
        return;
    }
    let expressions = selector.entry("matchExpressions").or_insert_with(|| json!([]));
    if let Some(expressions) = expressions.as_array_mut() {
        expressions.extend(requirements);
    }
}

/// The doors for ephemeral containers and resources change the spec, like the main one, but nothing else in it.
fn update(_: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
    match part {
        Part::Sub("ephemeralcontainers") => parts::only_ephemeral_containers(new, old),
        Part::Sub("resize") => parts::only_resources(new, old),
        _ => {}
    }
}

/// How long the pod has to end: as asked, or as it says itself; no time at all if it runs nowhere.
fn grace(object: &Object, options: &DeleteOptions) -> i64 {
    let text = |part: &str, name: &str| {
        object.get(part).and_then(|part| part.get(name)).and_then(Value::as_str).unwrap_or_default()
    };
    if text("spec", "nodeName").is_empty() || ["Failed", "Succeeded"].contains(&text("status", "phase")) {
        return 0;
    }
    let own = || object.get("spec")?.get("terminationGracePeriodSeconds")?.as_i64();
    match options.grace_period_seconds.or_else(own) {
        None => 0,
        Some(negative) if negative < 0 => 1,
        Some(period) => period,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_labels_become_requirements() {
        let pod = json!({
            "metadata": {"labels": {"app": "a", "track": "t"}},
            "spec": {
                "topologySpreadConstraints": [
                    {"matchLabelKeys": ["app", "none"], "labelSelector": {}}, {"matchLabelKeys": ["app"]},
                ],
                "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                    {"mismatchLabelKeys": ["track"], "labelSelector": {"matchLabels": {"x": "y"}}},
                ]}},
            },
        });
        let mut pod = pod.as_object().expect("an object").clone();
        select_by_labels(&mut pod);
        let constraints = &pod["spec"]["topologySpreadConstraints"];
        let is_app = json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]});
        assert_eq!(constraints[0]["labelSelector"], is_app);
        assert_eq!(constraints[1], json!({"matchLabelKeys": ["app"]}));
        let terms =
            &pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        assert_eq!(
            terms[0]["labelSelector"]["matchExpressions"],
            json!([{"key": "track", "operator": "NotIn", "values": ["t"]}])
        );
    }
}
