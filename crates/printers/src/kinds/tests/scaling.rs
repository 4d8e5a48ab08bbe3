//! Autoscalers in both versions.

use super::*;

const V1: Kind = ("autoscaling", "v1", "HorizontalPodAutoscaler");

const V2: Kind = ("autoscaling", "v2", "HorizontalPodAutoscaler");

/// The cell Targets.
fn targets(metrics: Value, current: Value) -> Value {
    cell(V2, 2, json!({"spec": {"metrics": metrics}, "status": {"currentMetrics": current}}))
}

#[test]
fn autoscalers() {
    let target = json!({"type": "Utilization", "averageUtilization": 50});
    let current = json!({"averageUtilization": 37, "averageValue": "1Gi"});
    let resource = json!({"name": "memory", "current": current});
    let object = json!({
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "minReplicas": 2, "maxReplicas": 10,
                 "metrics": [{"type": "Resource", "resource": {"name": "memory", "target": target}}]},
        "status": {"currentReplicas": 3, "currentMetrics": [{"type": "Resource", "resource": resource}]},
    });
    check(V2, object, json!(["x", "Deployment/web", "memory: 37%/50%", "2", 10, 3, "2d5h"]));
    for kind in [V1, V2] {
        check(kind, json!({}), json!(["x", "/", "cpu: <unknown>/80%", "1", 0, 0, "2d5h"]));
    }
}

#[test]
fn resources_are_compared_by_part_or_amount() {
    for (name, field) in [("Resource", "resource"), ("ContainerResource", "containerResource")] {
        let metric = |target: Value| json!([{"type": name, field: {"name": "cpu", "target": target}}]);
        let status = |current: Value| json!([{"type": name, field: {"name": "cpu", "current": current}}]);
        let value = json!({"averageValue": "0.5"});
        assert_eq!(targets(metric(value.clone()), json!([])), "cpu: <unknown>/500m");
        assert_eq!(targets(metric(value.clone()), status(json!({"averageValue": "100m"}))), "cpu: 100m/500m");
        assert_eq!(targets(metric(value), status(json!({}))), "cpu: <nil>/500m");
        assert_eq!(targets(metric(json!({})), status(json!({"averageUtilization": 7}))), "cpu: 7%/<auto>");
    }
}

#[test]
fn other_metrics_are_compared_by_value_or_average() {
    let pods = json!([{"type": "Pods", "pods": {"target": {"averageValue": "10"}}}]);
    assert_eq!(targets(pods.clone(), json!(null)), "<unknown>/10");
    assert_eq!(targets(pods, json!([{"pods": {"current": {"averageValue": "5"}}}])), "5/10");
    for (name, field) in [("Object", "object"), ("External", "external")] {
        let metric = |target: Value| json!([{"type": name, field: {"target": target}}]);
        let status = json!([{"type": name, field: {"current": {"value": "5", "averageValue": "2"}}}]);
        assert_eq!(targets(metric(json!({"value": "10"})), status.clone()), "5/10");
        assert_eq!(targets(metric(json!({"averageValue": "4"})), status), "2/4 (avg)");
        assert_eq!(targets(metric(json!({"averageValue": "4"})), json!([{field: {}}])), "<unknown>/4 (avg)");
        assert_eq!(targets(metric(json!({"value": "10"})), json!([{field: {}}])), "<nil>/10");
        assert_eq!(targets(metric(json!({})), json!(null)), "<unknown>/<nil>");
    }
}

#[test]
fn two_metrics_are_shown() {
    let pods = json!({"type": "Pods", "pods": {"target": {"averageValue": "10"}}});
    assert_eq!(targets(json!([pods, {"type": "Guess"}]), json!(null)), "<unknown>/10, <unknown type>");
    assert_eq!(
        targets(json!([pods, pods, pods, pods]), json!(null)),
        "<unknown>/10, <unknown>/10 + 2 more..."
    );
}

/// The cell Targets in version 1.
fn targets_v1(metrics: &str, current: &str, cpu: Value, current_cpu: Value) -> Value {
    let annotations = json!({
        "autoscaling.alpha.kubernetes.io/metrics": metrics,
        "autoscaling.alpha.kubernetes.io/current-metrics": current,
    });
    cell(
        V1,
        2,
        json!({
            "metadata": {"annotations": annotations},
            "spec": {"targetCPUUtilizationPercentage": cpu},
            "status": {"currentCPUUtilizationPercentage": current_cpu},
        }),
    )
}

#[test]
fn version_1_has_a_field_for_cpu() {
    assert_eq!(targets_v1("", "", json!(60), json!(40)), "cpu: 40%/60%");
    assert_eq!(targets_v1("", "", json!(null), json!(40)), "cpu: 40%/80%");
    // Nothing says which status a metric in an annotation has, so the first is the first.
    let pods = r#"[{"type":"Pods","pods":{"metricName":"qps","targetAverageValue":"10"}}]"#;
    assert_eq!(targets_v1(pods, "", json!(60), json!(40)), "<unknown>/10, cpu: <unknown>/60%");
    assert_eq!(targets_v1(pods, "", json!(null), json!(null)), "<unknown>/10");
}

#[test]
fn version_1_has_annotations_for_other_metrics() {
    let metrics = r#"[{"type":"Object","object":{"target":{"kind":"S"},"targetValue":"10"}},
        {"type":"External","external":{"metricName":"q","targetAverageValue":"4"}}]"#;
    let current = r#"[{"type":"Object","object":{"currentValue":"5"}},
        {"type":"External","external":{"currentValue":"8","currentAverageValue":"2"}}]"#;
    assert_eq!(targets_v1(metrics, current, json!(null), json!(null)), "5/10, 2/4 (avg)");
    let metrics = r#"[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}}]"#;
    let current = r#"[{"type":"Resource","resource":{"name":"memory","currentAverageValue":"512Mi"}},
        {"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":7}}]"#;
    assert_eq!(targets_v1(metrics, current, json!(60), json!(99)), "memory: 512Mi/1Gi, cpu: 7%/60%");
    assert_eq!(targets_v1("[1]", "{", json!(60), json!(40)), "cpu: 40%/60%");
}

#[test]
fn scales() {
    let object = json!({"spec": {"replicas": 3}, "status": {"replicas": 2}});
    check(("autoscaling", "v1", "Scale"), object, json!(["x", 3, 2, "2d5h"]));
}
