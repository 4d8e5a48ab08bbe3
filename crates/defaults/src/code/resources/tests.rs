use serde_json::{Value, json};

use super::*;

#[test]
fn amounts_are_rounded_up_to_a_thousandth() {
    let rows = [
        ("1", "1"),
        ("1m", "1m"),
        ("1n", "1m"),
        ("1500u", "2m"),
        ("999999u", "1"),
        ("-1u", "-1m"),
        ("15e-4", "2e-3"),
        ("1Gi", "1Gi"),
        ("1e3", "1e3"),
    ];
    for (given, expected) in rows {
        let mut list = json!({"cpu": given});
        round_up(list.as_object_mut().expect("an object"));
        assert_eq!(list, json!({"cpu": expected}), "{given}");
    }
}

fn pod_level(spec: &Value) -> Value {
    let mut pod = json!({"spec": spec});
    pod_level_resources(pod.as_object_mut().expect("an object"));
    pod["spec"]["resources"].take()
}

fn container(resources: &Value) -> Value {
    json!({"resources": resources})
}

#[test]
fn without_resources_of_the_pod_nothing_happens() {
    let containers = json!([container(&json!({"limits": {"hugepages-2Mi": "2Mi"}}))]);
    assert_eq!(pod_level(&json!({"containers": containers})), Value::Null);
    assert_eq!(pod_level(&json!({"containers": containers, "resources": {}})), json!({}));
}

#[test]
fn requests_are_those_of_the_containers_or_else_the_limits() {
    let containers =
        [json!({"requests": {"cpu": "1", "example.com/a": "1"}}), json!({"requests": {"cpu": "500m"}})];
    let given = json!({"containers": containers.each_ref().map(container), "resources": {"limits": {"cpu": "4", "memory": "1Gi", "example.com/a": "2"}}});
    assert_eq!(pod_level(&given)["requests"], json!({"cpu": "1500m", "memory": "1Gi"}));
    let given = json!({"resources": {"limits": {"cpu": "4", "memory": "1Gi"}, "requests": {"cpu": "2"}}});
    assert_eq!(pod_level(&given)["requests"], json!({"cpu": "2", "memory": "1Gi"}));
}

#[test]
fn huge_pages_of_the_containers_are_limits_of_the_pod() {
    let containers = [
        container(&json!({"limits": {"hugepages-2Mi": "2Mi"}})),
        container(&json!({"limits": {"hugepages-2Mi": "2Mi"}})),
    ];
    let given = json!({"containers": containers, "resources": {"requests": {"cpu": "1"}}});
    let expected =
        json!({"limits": {"hugepages-2Mi": "4Mi"}, "requests": {"cpu": "1", "hugepages-2Mi": "4Mi"}});
    assert_eq!(pod_level(&given), expected);
    let given = json!({"containers": containers, "resources": {"requests": {"hugepages-2Mi": "8Mi"}}});
    assert_eq!(pod_level(&given), json!({"requests": {"hugepages-2Mi": "8Mi"}}));
}

#[test]
fn init_containers_count_alone_unless_they_stay() {
    let request = |cpu: &str| container(&json!({"requests": {"cpu": cpu}}));
    let mut staying = request("2");
    staying["restartPolicy"] = "Always".into();
    let pod = |init: Value| {
        let limits = json!({"limits": {"cpu": "64"}});
        pod_level(&json!({"containers": [request("3")], "initContainers": init, "resources": limits}))["requests"].take()
    };
    assert_eq!(pod(json!([request("1")])), json!({"cpu": "3"}));
    assert_eq!(pod(json!([request("4")])), json!({"cpu": "4"}));
    assert_eq!(pod(json!([staying, request("1")])), json!({"cpu": "5"}));
    assert_eq!(pod(json!([staying, request("4")])), json!({"cpu": "6"}));
    assert_eq!(pod(json!([request("9"), staying])), json!({"cpu": "9"}));
}
