//! What any server serves, each of them serves.

use bytes::Bytes;
use concord_server::test_client::Protocol;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::{Fleet, Member, agreed, eventually, freshness, resources, traffic::listed};
use crate::support::send;

const EVERYTHING: &str = "--runtime-config=api/all=true";
const CLASSES: &str = "/apis/storage.k8s.io/v1/volumeattributesclasses";

/// Reads and writes everything in the document through a server.
async fn everything_works(member: &Member, document: &Value) -> usize {
    let mut admin = member.admin().await;
    let all = listed(document);
    for resource in &all {
        let path = resource.path.as_str();
        if resource.has("list") {
            let answer = admin.get(path).await.expect("an answer");
            assert_eq!(answer.status, 200, "list {path}: {}", answer.body);
        }
        if resource.has("create") {
            // It lacks everything, and whoever knows the resource says so.
            let headers = [("content-type", "application/json")];
            let created = admin.exchange(Method::POST, path, &headers, Bytes::from_static(b"{}")).await;
            let created = created.expect("an answer");
            assert!(
                !matches!(created.status, 404 | 405 | 500..),
                "create {path}: {} {}",
                created.status,
                created.body
            );
        }
        if resource.has("delete") {
            let deleted = admin.request(Method::DELETE, &format!("{path}/none")).await.expect("an answer");
            assert_eq!(deleted.status, 404, "delete {path}: {}", deleted.body);
            assert!(deleted.body.contains(r#"\"none\" not found"#), "delete {path}: {}", deleted.body);
        }
    }
    all.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_server_serves_what_any_of_them_serves() {
    let fleet = Fleet::new().await;
    let old = fleet.start("apiserver-old", &["--emulated-version=1.33", EVERYTHING]).await;
    let new = fleet.start("apiserver-new", &[EVERYTHING]).await;
    let document = agreed(&[&old, &new]).await;
    for (member, lacks) in [
        (&old, "storage.k8s.io/v1/volumeattributesclasses"),
        (&new, "admissionregistration.k8s.io/v1beta1/validatingadmissionpolicies"),
    ] {
        let own = resources(&member.discovery(";profile=nopeer").await.0);
        assert!(!own.contains(lacks) && resources(&document).contains(lacks), "{lacks}");
        // The KEP's own word means the same.
        assert_eq!(resources(&member.discovery(";profile=local").await.0), own);
        let count = everything_works(member, &document).await;
        assert!(count > own.len());
    }
    assert_eq!(freshness(&document, "storage.k8s.io", "v1").as_deref(), Some("Current"));
    discovery_is_the_same_in_every_form(&old, &new).await;
    objects_are_everybodys(&old, &new).await;
    skew_inside_a_version(&old).await;
    upgrades_are_carried(&old).await;
    schemas_are_reachable(&old).await;
    custom_resources_stay_at_home(&old, &new).await;
    let metrics = old.metrics().await;
    let line = r#"apiserver_rerouted_request_total{code="200",group="storage.k8s.io",resource="volumeattributesclasses",version="v1"}"#;
    assert!(metrics.contains(line), "{metrics}");
    assert!(metrics.contains("concord_peers{state=\"fresh\"} 1\n"), "{metrics}");
}

/// Both documents are merged, whatever they are written in, and say who said so to nobody.
async fn discovery_is_the_same_in_every_form(old: &Member, new: &Member) {
    for path in ["/api", "/apis"] {
        let (_, tag) = old.aggregated(path, "application/json").await;
        for media_type in ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"] {
            let (here, there) =
                (old.aggregated(path, media_type).await, new.aggregated(path, media_type).await);
            assert_eq!((&here.1, here == there), (&tag, true), "{path} {media_type}");
            let lists_what_only_the_other_has =
                here.0.windows(23).any(|text| text == b"volumeattributesclasses");
            assert_eq!(lists_what_only_the_other_has, path == "/apis", "{path} {media_type}");
        }
    }
}

/// Written through one server, seen through the other.
async fn objects_are_everybodys(old: &Member, new: &Member) {
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass",
        "metadata": {"name": "gold"}, "driverName": "example.com", "parameters": {"a": "b"}});
    let (mut here, mut there) = (old.admin().await, new.admin().await);
    let mut watcher = old.admin().await;
    let watch =
        watcher.send(Method::GET, &format!("{CLASSES}?watch=1&timeoutSeconds=30"), &[], Bytes::new()).await;
    let mut events = watch.expect("a watch").into_body();
    let (status, created, _) = send(&mut here, Method::POST, CLASSES, &class).await;
    assert_eq!(status, 201, "{created}");
    let path = format!("{CLASSES}/gold");
    let seen: Value = serde_json::from_str(&there.get(&path).await.expect("an answer").body).expect("JSON");
    assert_eq!(seen["metadata"]["uid"], created["metadata"]["uid"]);
    let patch = json!({"metadata": {"labels": {"c": "d"}}});
    assert_eq!(send(&mut here, Method::PATCH, &path, &patch).await.0, 200);
    let mut text = String::new();
    while !(text.contains("ADDED") && text.contains("MODIFIED")) {
        let frame = events.frame().await.expect("more events").expect("a frame");
        text.push_str(&String::from_utf8_lossy(frame.data_ref().expect("data")));
    }
    // Another user is another user there, too.
    let headers = [("impersonate-user", "alice")];
    let denied = here.exchange(Method::GET, &path, &headers, Bytes::new()).await.expect("an answer");
    assert_eq!(denied.status, 403, "{}", denied.body);
    assert_eq!(here.request(Method::DELETE, &path).await.expect("an answer").status, 200);
    // What is protected goes when a controller has seen that nothing uses it.
    let gone = eventually("the class is gone", || async {
        let answer = new.admin().await.get(&path).await.expect("an answer");
        (answer.status == 404).then_some(answer)
    });
    let gone = gone.await;
    // An object that is not there is not found, by whomever it is asked for.
    let missing = here.get(&path).await.expect("an answer");
    assert_eq!((missing.status, missing.body), (404, gone.body));
}

/// A subresource that came with 1.35, in a version that 1.33 has.
async fn skew_inside_a_version(old: &Member) {
    let rules = "/apis/resource.k8s.io/v1alpha3/devicetaintrules";
    assert_eq!(old.get(rules).await.status, 200);
    let answer = old.get(&format!("{rules}/none/status")).await;
    assert!(
        answer.body.contains(r#"devicetaintrules.resource.k8s.io \"none\" not found"#),
        "{}",
        answer.body
    );
    // Who reads one page after the other finds what only others serve, too.
    let page = old.get("/apis/resource.k8s.io/v1").await;
    assert!(page.body.contains("deviceclasses"), "{}", page.body);
    // One that nobody has is nobody's.
    let nobody = old.get(&format!("{rules}/none/nothing")).await;
    assert_eq!(nobody.status, 404);
    assert!(nobody.body.contains("could not find the requested resource"), "{}", nobody.body);
}

/// A watch over a WebSocket, by the user who asks for it.
async fn upgrades_are_carried(old: &Member) {
    let mut admin = old.program.admin(Protocol::Http1).await;
    let headers = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let path = format!("{CLASSES}?watch=1");
    let answer = admin.send(Method::GET, &path, &headers, Bytes::new()).await.expect("a head");
    assert_eq!(answer.status(), 101);
    assert_eq!(answer.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    // One that is refused is refused there, and the answer comes back.
    let mut admin = old.program.admin(Protocol::Http1).await;
    let headers = [&headers[..], &[("impersonate-user", "alice")]].concat();
    let refused = admin.send(Method::GET, &path, &headers, Bytes::new()).await.expect("a head");
    assert_eq!(refused.status(), 403);
}

async fn schemas_are_reachable(old: &Member) {
    let index: Value = serde_json::from_str(&old.get("/openapi/v3").await.body).expect("JSON");
    let address =
        index["paths"]["apis/resource.k8s.io/v1"]["serverRelativeURL"].as_str().expect("an address");
    let document = old.get(address).await;
    assert_eq!(document.status, 200, "{}", document.body);
    assert!(document.body.contains("io.k8s.api.resource.v1.DeviceClass"));
    assert!(index["paths"]["api/v1"].is_object());
}

/// Definitions are in the log: they are everybody's own, and gone everywhere when they are gone.
async fn custom_resources_stay_at_home(old: &Member, new: &Member) {
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"}, "spec": {"group": "example.com", "scope": "Cluster",
        "names": {"plural": "foos", "kind": "Foo"}, "versions": [{"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(send(&mut old.admin().await, Method::POST, definitions, &definition).await.0, 201);
    for member in [old, new] {
        eventually("the custom resource is served", || async {
            (member.get("/apis/example.com/v1/foos").await.status == 200).then_some(())
        })
        .await;
        assert!(resources(&member.discovery("").await.0).contains("example.com/v1/foos"));
        let rerouted = r#"rerouted_request_total{code="200",group="example.com""#;
        assert!(!member.metrics().await.contains(rerouted));
    }
    let path = format!("{definitions}/foos.example.com");
    assert_eq!(old.admin().await.request(Method::DELETE, &path).await.expect("an answer").status, 200);
    for member in [old, new] {
        eventually("the custom resource is gone", || async {
            let listed = resources(&member.discovery("").await.0).contains("example.com/v1/foos");
            (!listed && member.get("/apis/example.com/v1/foos").await.status == 404).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn without_the_feature_each_server_is_alone() {
    let fleet = Fleet::new().await;
    let one = fleet.start("apiserver-one", &["--runtime-config=batch/v1=false"]).await;
    let data = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::symlink(fleet.pki.path(), data.path().join("pki")).expect("a link");
    let etcd = format!("--etcd-servers={}", fleet.etcd.endpoints()[0]);
    let gate = "--feature-gates=UnknownVersionInteroperabilityProxy=false";
    let flags = [etcd.as_str(), "--server-id=two", gate, "--runtime-config=apps/v1=false"];
    let program = crate::support::Program::start_with(data.path(), &flags).await;
    program.ready(200).await;
    let two = Member { data, program };
    // It does not say where it is, so nobody knows what it serves: it may be what is asked for. (It is.)
    let unproved = one.get("/apis/batch/v1/jobs").await;
    assert_eq!(unproved.status, 503, "{}", unproved.body);
    assert_eq!(two.get("/apis/apps/v1/deployments").await.status, 404);
    let (_, own) = two.discovery(";profile=nopeer").await;
    assert_eq!(two.discovery("").await.1, own);
    // One that has the feature and no authority says where it is: others ask it, and it asks nobody.
    let data = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::symlink(fleet.pki.path(), data.path().join("pki")).expect("a link");
    let flags = [etcd.as_str(), "--server-id=apiserver-three", "--runtime-config=apps/v1=false"];
    let program = crate::support::Program::start_with(data.path(), &flags).await;
    program.ready(200).await;
    let three = Member { data, program };
    eventually("jobs are served by the third", || async {
        let answer = one.get("/apis/batch/v1/jobs").await;
        assert!(matches!(answer.status, 200 | 503), "{}: {}", answer.status, answer.body);
        (answer.status == 200).then_some(())
    })
    .await;
    assert_eq!(three.get("/apis/apps/v1/deployments").await.status, 404);
    let (_, own) = three.discovery(";profile=nopeer").await;
    assert_eq!(three.discovery("").await.1, own);
    let refused = crate::support::refused(two.data.path(), &[gate, "--peer-ca-file=none"]).await;
    let complaint = "--peer-ca-file requires UnknownVersionInteroperabilityProxy feature to be turned on";
    assert!(refused.stderr.contains(complaint), "{}", refused.stderr);
}
