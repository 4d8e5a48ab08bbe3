use serde_json::json;

use super::*;

fn object(value: &Value) -> Object {
    value.as_object().expect("an object").clone()
}

fn range(limit: &Value) -> Object {
    object(&json!({"spec": {"limits": [limit]}}))
}

fn pod(resources: &Value) -> Object {
    object(&json!({"metadata": {}, "spec": {"containers": [{"name": "c", "resources": resources}]}}))
}

#[test]
fn containers_get_what_they_do_not_ask_for() {
    let range = range(&json!({
        "type": "Container", "default": {"cpu": "2", "memory": "1Gi"}, "defaultRequest": {"cpu": "1"},
    }));
    let mut pod = pod(&json!({"limits": {"memory": "2Gi"}}));
    set_defaults(&mut pod, &range);
    assert_eq!(
        pod["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "2", "memory": "2Gi"}, "requests": {"cpu": "1"}})
    );
    assert_eq!(
        pod["metadata"]["annotations"][ANNOTATION],
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    );
    let before = pod.clone();
    set_defaults(&mut pod, &range);
    assert_eq!(pod, before);
}

#[test]
fn what_breaks_a_limit_is_told_in_upstreams_words() {
    let asks = |request: &str, limit: &str| json!({"requests": {"cpu": request}, "limits": {"cpu": limit}});
    for (limit, resources, complaint) in [
        (
            json!({"min": {"cpu": "1"}}),
            json!({}),
            "minimum cpu usage per Container is 1.  No request is specified",
        ),
        (
            json!({"min": {"cpu": "1"}}),
            asks("500m", "2"),
            "minimum cpu usage per Container is 1, but request is 500m",
        ),
        (json!({"min": {"cpu": "1"}}), asks("1", "2"), ""),
        (
            json!({"max": {"cpu": "1"}}),
            json!({}),
            "maximum cpu usage per Container is 1.  No limit is specified",
        ),
        (
            json!({"max": {"cpu": "1"}}),
            asks("1", "1500m"),
            "maximum cpu usage per Container is 1, but limit is 1500m",
        ),
        (
            json!({"maxLimitRequestRatio": {"cpu": "2"}}),
            asks("1", "3"),
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            json!({"maxLimitRequestRatio": {"cpu": "2"}}),
            json!({}),
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
        ),
        (
            json!({"min": {"cpu": "2"}, "max": {"cpu": "1"}}),
            asks("1", "2"),
            "[minimum cpu usage per Container is 2, but request is 1, maximum cpu usage per Container is 1, but limit is 2]",
        ),
    ] {
        let mut limit = object(&limit);
        limit.insert("type".to_owned(), "Container".into());
        let errors = constraints::of_pod(&pod(&resources), [&limit].into_iter());
        assert_eq!(aggregate(errors).unwrap_or_default(), complaint);
    }
}

#[test]
fn a_pod_asks_for_its_containers_or_its_greediest_init_container() {
    let asking = |name: &str, cpu: &str, restarts: &Value| json!({"name": name, "restartPolicy": restarts, "resources": {"requests": {"cpu": cpu}}});
    let pod = object(&json!({"spec": {
        "containers": [asking("a", "1", &Value::Null), asking("b", "1", &Value::Null)],
        "initContainers": [asking("s", "1", &"Always".into()), asking("i", "4", &Value::Null)],
    }}));
    // The sidecar runs beside the init container, and both need more than the containers with the sidecar.
    assert_eq!(crate::amounts::of_pod(&pod, "requests")["cpu"].to_string(), "5");
}

#[test]
fn claims_are_judged_by_what_they_request() {
    let limit = object(
        &json!({"type": "PersistentVolumeClaim", "min": {"storage": "2Gi"}, "max": {"storage": "4Gi"}}),
    );
    let errors = |size: &str| {
        let claim = object(&json!({"spec": {"resources": {"requests": {"storage": size}}}}));
        aggregate(constraints::of_claim(&claim, [&limit].into_iter())).unwrap_or_default()
    };
    assert_eq!(errors("3Gi"), "");
    assert_eq!(errors("1Gi"), "minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi");
    assert_eq!(errors("5Gi"), "maximum storage usage per PersistentVolumeClaim is 4Gi, but request is 5Gi");
}
