//! What tells releases apart besides their APIs, and what admission makes of pods.

use bytes::Bytes;
use concord_server::test_client::{Protocol, TestClient};
use http::Method;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::support::{Program, refused};

async fn post(client: &mut TestClient, path: &str, object: &Value) -> (u16, Value) {
    let headers = [("content-type", "application/json")];
    let body = Bytes::from(object.to_string());
    let answer = client.exchange(Method::POST, path, &headers, body).await.expect("an answer");
    (answer.status, serde_json::from_str(&answer.body).unwrap_or_default())
}

#[tokio::test]
async fn fields_and_features_are_those_of_the_release() {
    let template = json!({
        "metadata": {"name": "a"},
        "template": {"spec": {"hostnameOverride": "b", "containers": [{"name": "c", "image": "d"}]}},
    });
    let path = "/api/v1/namespaces/default/podtemplates?fieldValidation=Strict";
    // It came with 1.34, where the feature was off, and is on since 1.35.
    for (flags, status, kept) in [
        (&["--emulated-version=1.33"][..], 400, None),
        (&["--emulated-version=1.34"], 201, Some(&Value::Null)),
        (&["--emulated-version=1.34", "--feature-gates=HostnameOverride=true"], 201, Some(&json!("b"))),
        (&["--feature-gates=HostnameOverride=false"], 201, Some(&Value::Null)),
        (&[], 201, Some(&json!("b"))),
    ] {
        let data = tempdir().expect("a directory");
        let server = Program::start_with(data.path(), flags).await;
        server.ready(200).await;
        let mut client = server.admin(Protocol::Http2).await;
        let (answered, object) = post(&mut client, path, &template).await;
        assert_eq!(answered, status, "{flags:?}: {object}");
        match kept {
            Some(kept) => assert_eq!(&object["template"]["spec"]["hostnameOverride"], kept, "{flags:?}"),
            None => {
                let message = object["message"].as_str().unwrap_or_default();
                assert!(message.contains("unknown field \"template.spec.hostnameOverride\""), "{message}");
            }
        }
    }
}

/// What servers that emulate a release answer to objects that only features of later ones take, or change.
#[tokio::test]
async fn rules_and_fields_are_those_of_the_features_of_the_release() {
    let service = json!({"metadata": {"name": "1abc"}, "spec": {"ports": [{"port": 80}]}});
    let container = json!({
        "name": "a", "image": "b", "restartPolicy": "Never", "resources": {"claims": [{"name": "c"}]},
    });
    let spec = json!({
        "containers": [container], "resourceClaims": [{"name": "c", "resourceClaimName": "d"}],
    });
    let template = json!({"metadata": {"name": "a"}, "template": {"spec": spec}});
    let claim = json!({"metadata": {"name": "a"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        "volumeAttributesClassName": "gold",
    }});
    // The newest release has all of it; the oldest takes neither the name nor the fields.
    for (flags, is_newest) in [(&["--emulated-version=1.33"][..], false), (&[], true)] {
        let data = tempdir().expect("a directory");
        let server = Program::start_with(data.path(), flags).await;
        server.ready(200).await;
        let mut client = server.admin(Protocol::Http2).await;
        let namespace = "/api/v1/namespaces/default";
        let (status, answer) = post(&mut client, &format!("{namespace}/services"), &service).await;
        assert_eq!(status, if is_newest { 201 } else { 422 }, "{answer}");
        let (status, made) = post(&mut client, &format!("{namespace}/podtemplates"), &template).await;
        assert_eq!(status, 201, "{made}");
        let spec = &made["template"]["spec"];
        let container = &spec["containers"][0];
        for field in [&spec["resourceClaims"], &container["resources"]["claims"], &container["restartPolicy"]]
        {
            assert_eq!(field.is_null(), !is_newest, "{flags:?}: {made}");
        }
        let (status, made) = post(&mut client, &format!("{namespace}/persistentvolumeclaims"), &claim).await;
        assert_eq!(status, 201, "{made}");
        assert_eq!(made["spec"]["volumeAttributesClassName"].is_null(), !is_newest, "{made}");
    }
}

#[tokio::test]
async fn features_that_do_not_exist_are_refused() {
    let data = tempdir().expect("a directory");
    let ended = refused(data.path(), &["--feature-gates=Nonsense=true"]).await;
    assert!(ended.stderr.contains("unrecognized feature gate: Nonsense"), "{}", ended.stderr);
}

#[tokio::test]
async fn pods_get_what_their_namespace_and_their_class_say() {
    let data = tempdir().expect("a directory");
    let server = Program::start(data.path()).await;
    server.ready(200).await;
    let mut client = server.admin(Protocol::Http2).await;
    let class = json!({"metadata": {"name": "high"}, "value": 7, "globalDefault": true});
    let (status, answer) = post(&mut client, "/apis/scheduling.k8s.io/v1/priorityclasses", &class).await;
    assert_eq!(status, 201, "{answer}");
    let limits = json!([{"type": "Container", "default": {"cpu": "2"}, "max": {"cpu": "2"}}]);
    let range = json!({"metadata": {"name": "limits"}, "spec": {"limits": limits}});
    let (status, answer) = post(&mut client, "/api/v1/namespaces/default/limitranges", &range).await;
    assert_eq!(status, 201, "{answer}");

    let pod = |name: &str, cpu: &Value| {
        let container = json!({"name": "a", "image": "b", "resources": cpu});
        json!({"metadata": {"name": name}, "spec": {"containers": [container]}})
    };
    let pods = "/api/v1/namespaces/default/pods";
    let (status, made) = post(&mut client, pods, &pod("a", &json!({}))).await;
    assert_eq!(status, 201, "{made}");
    let spec = &made["spec"];
    assert_eq!([&spec["priority"], &spec["priorityClassName"]], [&json!(7), &json!("high")]);
    assert_eq!(spec["containers"][0]["resources"]["limits"], json!({"cpu": "2"}));
    assert_eq!(spec["tolerations"].as_array().map(Vec::len), Some(2));
    assert_eq!(made["status"]["qosClass"], "Burstable");
    let (status, refused) = post(&mut client, pods, &pod("b", &json!({"limits": {"cpu": "3"}}))).await;
    assert_eq!(status, 403);
    assert_eq!(
        refused["message"],
        "pods \"b\" is forbidden: maximum cpu usage per Container is 2, but limit is 3"
    );
}
