//! One stored object, in every version that is served.

use concord_apis::Release;
use serde_json::{Value, json};

use crate::support::{Answer, Server};

const HPA_V1: &str = "/apis/autoscaling/v1/namespaces/ns/horizontalpodautoscalers";
const HPA_V2: &str = "/apis/autoscaling/v2/namespaces/ns/horizontalpodautoscalers";
const CORE_EVENTS: &str = "/api/v1/namespaces/ns/events";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/ns/events";

async fn send(server: &Server, method: &str, uri: &str, body: &Value) -> Answer {
    server.ask(method, uri, &[("content-type", "application/json")], Some(body)).await
}

async fn create(server: &Server, uri: &str, body: &Value) -> Value {
    let answer = send(server, "POST", uri, body).await;
    assert_eq!(answer.code, 201, "{}", answer.body);
    answer.body
}

async fn apply(server: &Server, uri: &str, manager: &str, body: &Value) -> Answer {
    let uri = format!("{uri}?fieldManager={manager}");
    server.ask("PATCH", &uri, &[("content-type", "application/apply-patch+yaml")], Some(body)).await
}

fn autoscaler(version: &str, spec: &Value) -> Value {
    json!({"kind": "HorizontalPodAutoscaler", "apiVersion": format!("autoscaling/{version}"),
        "metadata": {"name": "a"}, "spec": spec})
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("a list");
    items.iter().filter_map(|item| item["metadata"]["name"].as_str()).collect()
}

#[tokio::test]
async fn an_autoscaler_is_read_and_written_in_both_versions() {
    let server = Server::new(Release::LATEST, &[]).await;
    let target = json!({"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"});
    let spec = json!({"scaleTargetRef": target, "maxReplicas": 5, "targetCPUUtilizationPercentage": 60});
    let made = create(&server, HPA_V1, &autoscaler("v1", &spec)).await;
    assert_eq!(made["apiVersion"], "autoscaling/v1");
    assert_eq!(made["spec"]["targetCPUUtilizationPercentage"], 60);

    let mut v2 = server.get(&format!("{HPA_V2}/a")).await;
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 60}}});
    assert_eq!(v2["spec"]["metrics"], json!([cpu]));
    assert_eq!(v2["metadata"]["uid"], made["metadata"]["uid"]);

    let memory = json!({"type": "Resource", "resource": {"name": "memory",
        "target": {"type": "AverageValue", "averageValue": "100Mi"}}});
    v2["spec"]["metrics"] = json!([memory]);
    let answer = send(&server, "PUT", &format!("{HPA_V2}/a"), &v2).await;
    assert_eq!((answer.code, &answer.body["spec"]["metrics"]), (200, &json!([memory])), "{}", answer.body);

    let mut v1 = server.get(&format!("{HPA_V1}/a")).await;
    assert_eq!(v1["spec"].get("targetCPUUtilizationPercentage"), None);
    assert_eq!(
        v1["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"],
        r#"[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"100Mi"}}]"#
    );
    // What a client of v1 sends back unchanged loses nothing.
    v1["spec"]["maxReplicas"] = 7.into();
    assert_eq!(send(&server, "PUT", &format!("{HPA_V1}/a"), &v1).await.code, 200);
    let v2 = server.get(&format!("{HPA_V2}/a")).await;
    assert_eq!((&v2["spec"]["maxReplicas"], &v2["spec"]["metrics"]), (&json!(7), &json!([memory])));
    assert_eq!(v2["metadata"].get("annotations"), None);

    let list = server.get(HPA_V1).await;
    assert_eq!((&list["apiVersion"], names(&list)), (&json!("autoscaling/v1"), vec!["a"]));
    assert_eq!(list["items"][0]["metadata"]["annotations"].as_object().map(serde_json::Map::len), Some(1));
}

#[tokio::test]
async fn fields_are_owned_in_the_version_that_they_were_applied_in() {
    let server = Server::new(Release::LATEST, &[]).await;
    let target = json!({"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"});
    let spec = json!({"scaleTargetRef": target, "maxReplicas": 5, "targetCPUUtilizationPercentage": 60});
    let answer = apply(&server, &format!("{HPA_V1}/a"), "one", &autoscaler("v1", &spec)).await;
    assert_eq!(answer.code, 201, "{}", answer.body);
    let answer =
        apply(&server, &format!("{HPA_V2}/a"), "two", &autoscaler("v2", &json!({"minReplicas": 2}))).await;
    assert_eq!(answer.code, 200, "{}", answer.body);
    let owners: Vec<(&str, &str)> = answer.body["metadata"]["managedFields"]
        .as_array()
        .expect("owners")
        .iter()
        .filter_map(|entry| Some((entry["manager"].as_str()?, entry["apiVersion"].as_str()?)))
        .collect();
    assert_eq!(owners, [("one", "autoscaling/v1"), ("two", "autoscaling/v2")]);
    // A field of the other version is in conflict, whatever it is called here.
    let conflict =
        apply(&server, &format!("{HPA_V2}/a"), "two", &autoscaler("v2", &json!({"maxReplicas": 9}))).await;
    assert_eq!((conflict.code, &conflict.body["reason"]), (409, &json!("Conflict")), "{}", conflict.body);
    // Who no longer applies a field gives it up, also if the object is stored in another version.
    let spec = json!({"scaleTargetRef": target, "maxReplicas": 5});
    let answer = apply(&server, &format!("{HPA_V1}/a"), "one", &autoscaler("v1", &spec)).await;
    assert_eq!(answer.code, 200, "{}", answer.body);
    assert_eq!(answer.body["spec"]["minReplicas"], 2);
}

#[tokio::test]
async fn who_creates_an_autoscaler_owns_the_metric_that_it_means() {
    let server = Server::new(Release::LATEST, &[]).await;
    let spec = json!({"scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}, "maxReplicas": 5});
    let made = create(&server, HPA_V1, &autoscaler("v1", &spec)).await;
    assert_eq!(made["spec"]["targetCPUUtilizationPercentage"], 80);
    let owned = &made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"];
    assert_eq!(owned["f:targetCPUUtilizationPercentage"], json!({}), "{owned}");
}

fn event(name: &str, about: &str) -> Value {
    json!({"kind": "Event", "apiVersion": "v1", "metadata": {"name": name}, "reason": "Started",
        "involvedObject": {"kind": "Pod", "name": about, "namespace": "ns"}, "message": "it runs", "type": "Normal"})
}

#[tokio::test]
async fn events_are_the_same_in_both_groups() {
    let server = Server::new(Release::LATEST, &[]).await;
    create(&server, CORE_EVENTS, &event("one", "p")).await;
    create(&server, CORE_EVENTS, &event("two", "q")).await;
    let new = json!({"kind": "Event", "apiVersion": "events.k8s.io/v1", "metadata": {"name": "three"},
        "eventTime": "2024-01-01T00:00:00.000000Z", "reason": "Stopped", "action": "Stop", "note": "it ends",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "ns"}, "reportingController": "me",
        "reportingInstance": "me-1", "type": "Normal"});
    create(&server, EVENTS, &new).await;

    let one = server.get(&format!("{EVENTS}/one")).await;
    assert_eq!((&one["note"], &one["regarding"]["name"]), (&json!("it runs"), &json!("p")));
    let three = server.get(&format!("{CORE_EVENTS}/three")).await;
    assert_eq!((&three["message"], &three["reportingComponent"]), (&json!("it ends"), &json!("me")));
    for list in [CORE_EVENTS, EVENTS] {
        assert_eq!(names(&server.get(list).await), ["one", "three", "two"], "{list}");
    }
    for (list, selector, expected) in [
        (EVENTS, "regarding.name=p", &["one", "three"][..]),
        (EVENTS, "reportingController=me", &["three"]),
        (EVENTS, "reason=Started,regarding.name!=p", &["two"]),
        (CORE_EVENTS, "involvedObject.name=p", &["one", "three"]),
        (CORE_EVENTS, "reportingComponent=me", &["three"]),
        (CORE_EVENTS, "source=me", &["three"]),
        (CORE_EVENTS, "metadata.name=two", &["two"]),
    ] {
        assert_eq!(
            names(&server.get(&format!("{list}?fieldSelector={selector}")).await),
            expected,
            "{selector}"
        );
    }
    for (list, field) in [(CORE_EVENTS, "regarding.name"), (EVENTS, "involvedObject.name")] {
        let answer = server.ask("GET", &format!("{list}?fieldSelector={field}=p"), &[], None).await;
        assert_eq!(answer.code, 400, "{field}");
        assert_eq!(answer.body["message"], format!("field label not supported: {field}"));
    }
    // Who owned fields in the other group is forgotten, as upstream forgets it.
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let merge = [("content-type", "application/merge-patch+json")];
    let patched = server.ask("PATCH", &format!("{EVENTS}/one?fieldManager=me"), &merge, Some(&label)).await;
    assert_eq!(patched.code, 200, "{}", patched.body);
    let owners = patched.body["metadata"]["managedFields"].as_array().expect("owners").iter();
    assert_eq!(owners.map(|entry| &entry["manager"]).collect::<Vec<_>>(), ["me"]);
    let missing = server.get(&format!("{EVENTS}/none")).await;
    assert_eq!(missing["message"], "events.events.k8s.io \"none\" not found");
}

fn claims(version: &str) -> String {
    format!("/apis/resource.k8s.io/{version}/namespaces/ns/resourceclaims")
}

#[tokio::test]
async fn claims_are_the_same_in_every_version_of_each_release() {
    for release in Release::all() {
        let server = Server::new(release, &["api/all=true"]).await;
        let flat = json!({"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1beta1", "metadata": {"name": "c"},
            "spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "gpu"}]}}});
        let made = create(&server, &claims("v1beta1"), &flat).await;
        assert_eq!(made["spec"]["devices"]["requests"][0]["deviceClassName"], "gpu", "{made}");
        let group = server.get("/apis/resource.k8s.io").await;
        let mut seen = 0;
        for version in group["versions"].as_array().expect("versions") {
            let version = version["version"].as_str().expect("a version");
            let answer = server.ask("GET", &format!("{}/c", claims(version)), &[], None).await;
            if answer.code == 404 {
                continue;
            }
            let request = &answer.body["spec"]["devices"]["requests"][0];
            let class = if matches!(version, "v1" | "v1beta2") { &request["exactly"] } else { request };
            assert_eq!(class["deviceClassName"], "gpu", "{release} {version}");
            assert_eq!(answer.body["apiVersion"], format!("resource.k8s.io/{version}"));
            seen += 1;
        }
        assert_eq!(seen, 3, "{release}");
    }
}

#[tokio::test]
async fn a_deprecated_version_warns_from_the_release_that_deprecates_it() {
    for (release, warns) in [("1.34", false), ("1.35", true)] {
        let server = Server::new(release.parse().expect("a release"), &["api/all=true"]).await;
        let answer = server.ask("GET", &claims("v1beta1"), &[], None).await;
        let warning = answer.headers.get("warning").map(|value| value.to_str().expect("text").to_owned());
        let text = "resource.k8s.io/v1beta1 ResourceClaim is deprecated in v1.35+, unavailable in v1.38+";
        assert_eq!(warning, warns.then(|| format!("299 - \"{text}\"")), "{release}");
    }
}
