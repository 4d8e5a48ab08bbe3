use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{convert, settle};

fn converted(mut object: Value, to: &str) -> Value {
    let from = object["apiVersion"].as_str().expect("a version").to_owned();
    convert(object.as_object_mut().expect("an object"), &from, to).expect("both are known");
    object
}

fn to_v1(spec: Value, status: Value) -> Value {
    converted(autoscaler("autoscaling/v2", spec, status), "autoscaling/v1")
}

fn autoscaler(version: &str, spec: Value, status: Value) -> Value {
    let mut object =
        json!({"kind": "HorizontalPodAutoscaler", "apiVersion": version, "metadata": {"name": "a"}});
    object["spec"] = spec;
    object["status"] = status;
    object
}

fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object["metadata"]["annotations"].get(format!("autoscaling.alpha.kubernetes.io/{name}"))?.as_str()
}

fn cpu(utilization: i32) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": utilization}}})
}

#[test]
fn the_utilization_of_cpu_is_a_field_of_v1() {
    let v1 = to_v1(json!({"minReplicas": 1, "maxReplicas": 3, "metrics": [cpu(50)]}), json!({}));
    assert_eq!(v1["spec"], json!({"minReplicas": 1, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}));
    assert_eq!(v1["apiVersion"], "autoscaling/v1");
    assert_eq!(v1["metadata"], json!({"name": "a"}));
    assert_eq!(converted(v1, "autoscaling/v2")["spec"]["metrics"], json!([cpu(50)]));
}

#[test]
fn without_any_metric_v1_means_eighty_percent_of_cpu() {
    let v2 = converted(autoscaler("autoscaling/v1", json!({"maxReplicas": 3}), json!({})), "autoscaling/v2");
    assert_eq!(v2["spec"], json!({"maxReplicas": 3, "metrics": [cpu(80)]}));
    let bare = json!({"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v1"});
    assert_eq!(converted(bare, "autoscaling/v2")["spec"]["metrics"], json!([cpu(80)]));
}

/// A metric of v2 and the annotation that keeps it in v1, letter by letter as Go writes it.
#[test]
fn other_metrics_are_kept_in_an_annotation() {
    for (metric, kept) in [
        (
            json!({"type": "Resource", "resource": {"name": "memory",
                "target": {"type": "Utilization", "averageUtilization": 70}}}),
            r#"{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":70}}"#,
        ),
        (
            json!({"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "AverageValue", "averageValue": "500m"}}}),
            r#"{"type":"Resource","resource":{"name":"cpu","targetAverageValue":"500m"}}"#,
        ),
        (
            json!({"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "app",
                "target": {"type": "Utilization", "averageUtilization": 0}}}),
            r#"{"type":"ContainerResource","containerResource":{"name":"cpu","targetAverageUtilization":0,"container":"app"}}"#,
        ),
        (
            json!({"type": "Pods", "pods": {"target": {"type": "AverageValue", "averageValue": "1k"},
                "metric": {"name": "hits", "selector": {"matchLabels": {"b": "2", "a": "<1>"},
                    "matchExpressions": [{"key": "k", "operator": "In", "values": ["x", "y"]}]}}}}),
            r#"{"type":"Pods","pods":{"metricName":"hits","targetAverageValue":"1k","selector":{"matchLabels":{"a":"\u003c1\u003e","b":"2"},"matchExpressions":[{"key":"k","operator":"In","values":["x","y"]}]}}}"#,
        ),
        (
            json!({"type": "Object", "object": {"metric": {"name": "hits"}, "target": {"type": "Value", "value": "2k"},
                "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "web"}}}),
            r#"{"type":"Object","object":{"target":{"kind":"Service","name":"web","apiVersion":"v1"},"metricName":"hits","targetValue":"2k"}}"#,
        ),
        (
            json!({"type": "Object", "object": {"metric": {"name": "hits"},
                "target": {"type": "AverageValue", "averageValue": "2k"},
                "describedObject": {"kind": "Service", "name": "web"}}}),
            r#"{"type":"Object","object":{"target":{"kind":"Service","name":"web"},"metricName":"hits","targetValue":"0","averageValue":"2k"}}"#,
        ),
        (
            json!({"type": "External", "external": {"metric": {"name": "queue"},
                "target": {"type": "Value", "value": "30"}}}),
            r#"{"type":"External","external":{"metricName":"queue","targetValue":"30"}}"#,
        ),
    ] {
        let v1 = to_v1(json!({"maxReplicas": 1, "metrics": [cpu(50), metric]}), json!({}));
        assert_eq!(annotation(&v1, "metrics"), Some(format!("[{kept}]").as_str()));
        assert_eq!(v1["spec"]["targetCPUUtilizationPercentage"], 50);
        let v2 = converted(v1, "autoscaling/v2");
        // As upstream, the utilization of CPU comes last afterwards.
        assert_eq!(v2["spec"]["metrics"], json!([metric, cpu(50)]));
        assert_eq!(v2["metadata"], json!({"name": "a"}));
    }
}

#[test]
fn behavior_is_kept_as_go_writes_untagged_structs() {
    let behavior = json!({"scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}], "tolerance": "50m"}});
    let v1 = to_v1(json!({"metrics": [cpu(1)], "behavior": behavior}), json!({}));
    assert_eq!(
        annotation(&v1, "behavior"),
        Some(
            r#"{"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":"50m"},"ScaleDown":null}"#
        )
    );
    assert_eq!(converted(v1, "autoscaling/v2")["spec"]["behavior"], behavior);
}

#[test]
fn the_status_is_kept_in_annotations() {
    let seen = json!([{"type": "Resource", "resource": {"name": "cpu",
        "current": {"averageUtilization": 33, "averageValue": "330m"}}}]);
    let conditions = json!([{"type": "AbleToScale", "status": "True", "reason": "Ready",
        "lastTransitionTime": "2024-01-02T03:04:05Z"}]);
    let status = json!({"currentReplicas": 2, "currentMetrics": seen, "conditions": conditions});
    let v1 = to_v1(json!({"metrics": [cpu(1)]}), status.clone());
    assert_eq!(v1["status"], json!({"currentReplicas": 2, "currentCPUUtilizationPercentage": 33}));
    assert_eq!(
        annotation(&v1, "current-metrics"),
        Some(
            r#"[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":33,"currentAverageValue":"330m"}}]"#
        )
    );
    assert_eq!(
        annotation(&v1, "conditions"),
        Some(
            r#"[{"type":"AbleToScale","status":"True","lastTransitionTime":"2024-01-02T03:04:05Z","reason":"Ready"}]"#
        )
    );
    assert_eq!(converted(v1, "autoscaling/v2")["status"], status);
}

#[test]
fn what_a_client_wrote_into_the_annotations_counts_if_it_can_be_read() {
    let with = |text: &str| {
        let mut v1 = autoscaler("autoscaling/v1", json!({"maxReplicas": 1}), json!({}));
        v1["metadata"]["annotations"] =
            json!({"autoscaling.alpha.kubernetes.io/metrics": text, "mine": "stays"});
        let v2 = converted(v1, "autoscaling/v2");
        assert_eq!(v2["metadata"]["annotations"], json!({"mine": "stays"}));
        v2["spec"]["metrics"].clone()
    };
    for unreadable in
        ["", "{}", "[1]", "nonsense", r#"[{"type":"Pods","pods":{"targetAverageValue":"lots"}}]"#]
    {
        assert_eq!(with(unreadable), json!([cpu(80)]), "{unreadable}");
    }
    assert_eq!(
        with(r#"[{"Type":"Pods","pods":{"MetricName":"hits","targetAverageValue":0.5}}]"#),
        json!([{"type": "Pods", "pods": {"metric": {"name": "hits"},
            "target": {"type": "AverageValue", "averageValue": "500m"}}}])
    );
    // They never count in v2.
    let mut v2 = autoscaler("autoscaling/v2", json!({"metrics": [cpu(5)]}), json!({}));
    v2["metadata"]["annotations"] = json!({"autoscaling.alpha.kubernetes.io/behavior": "{}"});
    assert_eq!(converted(v2, "autoscaling/v1")["metadata"], json!({"name": "a"}));
}

#[test]
fn reading_settles_what_v1_means_and_what_v2_does_not_know() {
    let settled = |mut object: Value| {
        settle(object.as_object_mut().expect("an object"));
        object
    };
    let v1 = settled(autoscaler("autoscaling/v1", json!({"maxReplicas": 1}), json!({})));
    assert_eq!(v1["spec"], json!({"maxReplicas": 1, "targetCPUUtilizationPercentage": 80}));
    assert_eq!((&v1["apiVersion"], settled(v1.clone())), (&json!("autoscaling/v1"), v1.clone()));
    let mut v2 = autoscaler("autoscaling/v2", json!({"maxReplicas": 1}), json!({}));
    let before = v2.clone();
    v2["metadata"]["annotations"] = json!({"autoscaling.alpha.kubernetes.io/conditions": "[]"});
    assert_eq!(settled(v2), before);
}

#[test]
fn what_is_not_the_kind_does_no_harm() {
    for odd in [json!(null), json!([]), json!("x"), json!({"metrics": {}, "behavior": 1, "conditions": "x"})]
    {
        let v1 = to_v1(odd.clone(), odd.clone());
        converted(v1, "autoscaling/v2");
        converted(autoscaler("autoscaling/v1", odd.clone(), odd), "autoscaling/v2");
    }
}

fn quantity() -> impl Strategy<Value = Value> {
    (1..5000_u32, prop_oneof!["", "m", "k", "Mi"]).prop_map(|(number, suffix)| {
        let quantity: concord_meta::Quantity = format!("{number}{suffix}").parse().expect("a quantity");
        quantity.to_string().into()
    })
}

fn identifier() -> impl Strategy<Value = Value> {
    ("[a-z<>&\\\\\"é\n]{1,8}", prop::option::of("[a-z]{1,4}")).prop_map(|(name, label)| match label {
        None => json!({"name": name}),
        Some(label) => json!({"name": name, "selector": {"matchLabels": {label: "v"}}}),
    })
}

/// A metric that says in its type which of its values is given, as validation wants it.
fn metric() -> impl Strategy<Value = Value> {
    let average = quantity().prop_map(|value| json!({"type": "AverageValue", "averageValue": value})).boxed();
    let value = quantity().prop_map(|value| json!({"type": "Value", "value": value}));
    let utilization = (1..200).prop_map(|value| json!({"type": "Utilization", "averageUtilization": value}));
    let either = prop_oneof![average.clone(), value.boxed()].boxed();
    let usage = prop_oneof![average.clone(), utilization.boxed()].boxed();
    prop_oneof![
        (identifier(), either.clone()).prop_map(|(metric, target)| json!({"type": "Object", "object":
            {"metric": metric, "target": target, "describedObject": {"kind": "Service", "name": "web"}}})),
        (identifier(), average).prop_map(
            |(metric, target)| json!({"type": "Pods", "pods": {"metric": metric, "target": target}})
        ),
        usage.clone().prop_map(|target| json!({"type": "Resource", "resource":
            {"name": "memory", "target": target}})),
        usage.prop_map(|target| json!({"type": "ContainerResource", "containerResource":
            {"name": "cpu", "container": "app", "target": target}})),
        (identifier(), either).prop_map(|(metric, target)| json!({"type": "External", "external":
            {"metric": metric, "target": target}})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn v2_to_v1_and_back_loses_nothing(
        metrics in prop::collection::vec(metric(), 0..4),
        utilization in prop::option::of(1..100_i32),
        window in prop::option::of(0..3600_i32),
    ) {
        let mut all = metrics;
        all.extend(utilization.map(cpu));
        prop_assume!(!all.is_empty());
        let mut spec = json!({"maxReplicas": 9, "metrics": all});
        if let Some(window) = window {
            spec["behavior"] = json!({"scaleDown": {"stabilizationWindowSeconds": window}});
        }
        let v2 = autoscaler("autoscaling/v2", spec, json!({"desiredReplicas": 1}));
        let back = converted(converted(v2.clone(), "autoscaling/v1"), "autoscaling/v2");
        prop_assert_eq!(back, v2);
    }
}
