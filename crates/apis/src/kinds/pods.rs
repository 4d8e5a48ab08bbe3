mod app_armor;
mod condition;
mod parts;

pub(crate) use self::condition::set_pod_condition;

use concord_builtins::FeatureGates;
use concord_meta::options::DeleteOptions;
use concord_registry::{Context, Object, Part, metadata};
use serde_json::{Value, json};

use super::{Hooks, image_volumes::drop_image_volumes, member, quality_of_service};

pub(super) const HOOKS: Hooks = Hooks {
    drop: Some(before_all),
    create: Some(create),
    update: Some(update),
    graceful_deletion: Some(grace),
    ..Hooks::NONE
};

fn before_all(features: &FeatureGates, object: &mut Object, old: Option<&Object>) {
    drop_image_volumes(features, object, old);
    let gates = ["MatchLabelKeysInPodTopologySpread", "MatchLabelKeysInPodTopologySpreadSelectorMerge"];
    if old.is_none() && gates.iter().all(|gate| features.enabled(gate)) {
        spread_by_labels(object);
    }
}

/// What a new pod's status says, and what its labels mean for the selectors that refer to them.
fn create(context: &Context, object: &mut Object) {
    begin_status(object);
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

/// A new pod waits. Of what a client says about its status only the class stays, as upstream lets it.
fn begin_status(object: &mut Object) {
    let class = match object.get("status").and_then(|status| status.get("qosClass")?.as_str()) {
        Some(class) if !class.is_empty() => class.to_owned(),
        _ => quality_of_service::class(object).to_owned(),
    };
    object.insert("status".to_owned(), json!({"phase": "Pending", "qosClass": class}));
}

fn is_gated(object: &Object) -> bool {
    let gates = object.get("spec").and_then(|spec| spec.get("schedulingGates")?.as_array());
    gates.is_some_and(|gates| !gates.is_empty())
}

fn spread_by_labels(object: &mut Object) {
    let labels = metadata(object).labels().cloned().unwrap_or_default();
    let constraints = object.get_mut("spec").and_then(|spec| spec.get_mut("topologySpreadConstraints"));
    for constraint in constraints.and_then(Value::as_array_mut).into_iter().flatten() {
        write_out(constraint, &labels);
    }
}

/// The keys in `matchLabelKeys` and `mismatchLabelKeys` stand for what the pod's labels have there: the selectors beside
/// them get it written out.
fn select_by_labels(object: &mut Object) {
    let labels = metadata(object).labels().cloned().unwrap_or_default();
    let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
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
        Part::Sub("status") => parts::keep_what_is_not_told(new, old),
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
    fn a_class_that_is_told_stays() {
        for (status, class) in
            [(json!({}), "BestEffort"), (json!({"qosClass": "Burstable", "phase": "Running"}), "Burstable")]
        {
            let mut pod = Object::from_iter([("spec".to_owned(), json!({})), ("status".to_owned(), status)]);
            begin_status(&mut pod);
            assert_eq!(pod["status"], json!({"phase": "Pending", "qosClass": class}));
        }
    }

    #[test]
    fn pods_have_time_to_end_where_they_run() {
        for (node, phase, own, asked, period) in [
            ("", "Pending", Some(30), None, 0),
            ("", "Pending", Some(30), Some(5), 0),
            ("n", "Running", Some(30), None, 30),
            ("n", "Running", Some(30), Some(5), 5),
            ("n", "Running", Some(30), Some(0), 0),
            ("n", "Running", Some(30), Some(-1), 1),
            ("n", "Running", Some(-7), None, 1),
            ("n", "Running", None, None, 0),
            ("n", "Succeeded", Some(30), None, 0),
            ("n", "Failed", Some(30), Some(5), 0),
        ] {
            let pod = json!({
                "spec": {"nodeName": node, "terminationGracePeriodSeconds": own}, "status": {"phase": phase},
            });
            let options = DeleteOptions { grace_period_seconds: asked, ..DeleteOptions::default() };
            let given = grace(pod.as_object().expect("an object"), &options);
            assert_eq!(given, period, "{pod} {asked:?}");
        }
    }

    #[test]
    fn constraints_are_written_out_where_the_feature_is() {
        let release = concord_builtins::Release::LATEST;
        for (gates, expressions) in
            [(&[][..], 1), (&["MatchLabelKeysInPodTopologySpreadSelectorMerge=false"][..], 0)]
        {
            let features = FeatureGates::parse(release, release, gates).expect("gates");
            let constraint = json!({"matchLabelKeys": ["app"], "labelSelector": {}});
            let pod = json!({
                "metadata": {"labels": {"app": "a"}}, "spec": {"topologySpreadConstraints": [constraint]},
            });
            let mut pod = pod.as_object().expect("an object").clone();
            before_all(&features, &mut pod, None);
            let selector = &pod["spec"]["topologySpreadConstraints"][0]["labelSelector"];
            let found = selector.get("matchExpressions").and_then(Value::as_array).map_or(0, Vec::len);
            assert_eq!(found, expressions);
        }
    }

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
        spread_by_labels(&mut pod);
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
