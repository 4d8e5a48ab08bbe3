//! StorageVersions and identity leases as clients see them.

use bytes::Bytes;
use concord_server::test_client::Protocol;
use futures_util::TryStreamExt as _;
use http::Method;
use http_body_util::BodyExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client, Error,
    api::{
        ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams, WatchEvent,
        WatchParams,
    },
};
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::support::{Program, client, refused};

const NAME: &str = "test.things";

fn versions(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("internal.apiserver.k8s.io", "v1alpha1", "StorageVersion");
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

fn says(id: &str, version: &str) -> Value {
    json!({"apiServerID": id, "encodingVersion": version, "decodableVersions": [version]})
}

/// An object with this status, as somebody who has read it sends it back.
fn with_status(object: &DynamicObject, status: Value) -> DynamicObject {
    let mut object = object.clone();
    object.data["status"] = status;
    object
}

fn message(error: Error) -> (u16, String) {
    match error {
        Error::Api(status) => (status.code, status.message),
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storage_version_is_written_as_upstreams() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &["--server-id=me"]).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    let api = versions(&client);
    identity(&client, "other").await;
    let options = PostParams::default();
    let new = json!({"apiVersion": "internal.apiserver.k8s.io/v1alpha1", "kind": "StorageVersion",
        "metadata": {"name": NAME}, "spec": {}, "status": {"commonEncodingVersion": "v1"}});
    let new: DynamicObject = serde_json::from_value(new).expect("an object");
    let made = api.create(&options, &new).await.expect("created");
    assert_eq!(made.data["status"], json!({}), "a new one has no status");

    let one = json!({"storageVersions": [says("other", "test/v1")], "commonEncodingVersion": "test/v1"});
    let filled = api.replace_status(NAME, &options, &with_status(&made, one.clone())).await.expect("filled");
    assert_eq!(filled.data["status"], one);
    let same =
        api.replace_status(NAME, &options, &with_status(&filled, one.clone())).await.expect("the same");
    assert_eq!(same.metadata.resource_version, filled.metadata.resource_version, "nothing changed");
    let mut emptied = same.clone();
    emptied.data["status"] = json!({});
    let kept = api.replace(NAME, &options, &emptied).await.expect("replaced");
    assert_eq!(kept.data["status"], one, "only its own door changes the status");
    let mut labelled = with_status(&kept, one.clone());
    labelled.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    let unlabelled = api.replace_status(NAME, &options, &labelled).await.expect("replaced");
    assert_eq!(unlabelled.metadata, kept.metadata, "which changes nothing else");
    let mut missing = kept.clone();
    missing.metadata.name = Some("test.missing".to_owned());
    for answer in [
        api.replace("test.missing", &options, &missing).await,
        api.replace_status("test.missing", &options, &missing).await,
    ] {
        assert_eq!(message(answer.expect_err("there is none")).0, 404);
    }

    let stale = api.replace_status(NAME, &options, &with_status(&made, json!({}))).await;
    assert_eq!(message(stale.expect_err("stale")).0, 409);
    let mut anyhow = kept.clone();
    anyhow.metadata.resource_version = None;
    let refused = api.replace_status(NAME, &options, &with_status(&anyhow, one)).await;
    let required = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    let (code, text) = message(refused.expect_err("without a resource version"));
    assert!(code == 422 && text.contains(required), "{code} {text}");
    wrong_statuses_are_refused(&api, &kept).await;
    let applied = entries_are_applied_by_their_server(&api).await;
    each_change_is_one_event(&api, &made, &[&filled, &applied]).await;
    the_table_is_upstreams(&server).await;
    the_api_is_described_as_upstreams(&server).await;
    for name in ["apiregistration.k8s.io.apiservices", "apiextensions.k8s.io.customresourcedefinitions"] {
        let registered = api.get(name).await.expect("registered");
        assert_eq!(registered.data["status"]["storageVersions"][0]["apiServerID"], "me");
    }
    each_form_says_the_same(&server).await;
}

/// Row 1: discovery and schemas.
async fn the_api_is_described_as_upstreams(server: &Program) {
    let group = "apis/internal.apiserver.k8s.io/v1alpha1";
    let mut client = server.admin(Protocol::Http2).await;
    let mut get = async |path: String| -> Value {
        serde_json::from_str(&client.get(&path).await.expect("an answer").body).expect("JSON")
    };
    let list = get(format!("/{group}")).await;
    let all = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let main = json!({"name": "storageversions", "singularName": "storageversion", "namespaced": false,
        "kind": "StorageVersion", "verbs": all, "storageVersionHash": "c8YZt5U0nPk="});
    let status = json!({"name": "storageversions/status", "singularName": "", "namespaced": false,
        "kind": "StorageVersion", "verbs": ["get", "patch", "update"]});
    assert_eq!(list["resources"], json!([main, status]));
    let document = get(format!("/openapi/v3/{group}")).await;
    let schemas = &document["components"]["schemas"];
    let status = &schemas["io.k8s.api.apiserverinternal.v1alpha1.StorageVersionStatus"]["properties"];
    assert_eq!(status["storageVersions"]["x-kubernetes-list-map-keys"], json!(["apiServerID"]));
    assert_eq!(status["conditions"]["x-kubernetes-list-map-keys"], json!(["type"]));
}

/// Rows 10 and 11: what is read in any form can be sent back in it, and names are made up where that is asked for.
async fn each_form_says_the_same(server: &Program) {
    let mut client = server.admin(Protocol::Http2).await;
    let all = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions";
    let (one, status) = (format!("{all}/{NAME}"), format!("{all}/{NAME}/status"));
    let before = client.get(&one).await.expect("an answer").body;
    for form in ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"] {
        let read =
            client.send(Method::GET, &one, &[("accept", form)], Bytes::new()).await.expect("an answer");
        assert_eq!(read.headers()["content-type"], form);
        let read = read.into_body().collect().await.expect("a body").to_bytes();
        for path in [&one, &status] {
            let sent = client.exchange(Method::PUT, path, &[("content-type", form)], read.clone()).await;
            let sent = sent.expect("an answer");
            assert_eq!((sent.status, &sent.body), (200, &before), "{form}: nothing changed");
        }
        let headers = [("content-type", form), ("accept", "application/json")];
        let made = client.exchange(Method::POST, all, &headers, unnamed(form)).await.expect("an answer");
        let made: (u16, Value) = (made.status, serde_json::from_str(&made.body).expect("JSON"));
        let name = made.1["metadata"]["name"].as_str().unwrap_or_default();
        assert!(made.0 == 201 && name.starts_with("test.r") && name.len() == 11, "{form}: {made:?}");
    }
}

/// A new object whose name is to be made up, in one of the forms.
fn unnamed(form: &str) -> Bytes {
    let (version, kind) = ("internal.apiserver.k8s.io/v1alpha1", "StorageVersion");
    match form {
        "application/yaml" => {
            format!("apiVersion: {version}\nkind: {kind}\nmetadata:\n  generateName: test.r\n").into()
        }
        "application/json" => {
            json!({"apiVersion": version, "kind": kind, "metadata": {"generateName": "test.r"}})
                .to_string()
                .into()
        }
        _ => {
            let field = |tag: u8, value: &[u8]| {
                [&[tag << 3 | 2, u8::try_from(value.len()).expect("short")], value].concat()
            };
            let type_meta = [field(1, version.as_bytes()), field(2, kind.as_bytes())].concat();
            let object = field(1, &field(2, b"test.r"));
            [b"k8s\0".to_vec(), field(1, &type_meta), field(2, &object)].concat().into()
        }
    }
}

async fn identity(client: &Client, id: &str) {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    let lease = json!({"metadata": {"name": id, "labels": {"apiserver.kubernetes.io/identity": "kube-apiserver"}},
        "spec": {"holderIdentity": id, "leaseDurationSeconds": 3600, "renewTime": "2100-01-01T00:00:00.000000Z"}});
    let lease: Lease = serde_json::from_value(lease).expect("a lease");
    leases.create(&PostParams::default(), &lease).await.expect("created");
}

async fn wrong_statuses_are_refused(api: &Api<DynamicObject>, object: &DynamicObject) {
    let condition =
        json!({"type": "A", "status": "True", "lastTransitionTime": null, "reason": "R", "message": ""});
    for (status, complaint) in [
        (
            json!({"storageVersions": [says("other", "v1")]}),
            "status.commonEncodingVersion: Invalid value: null: the common encoding version is v1",
        ),
        (
            json!({"storageVersions": [says("Other", "v1")], "commonEncodingVersion": "v1"}),
            "status.storageVersions[0].apiServerID: Invalid value: \"Other\": a lowercase RFC 1123 subdomain",
        ),
        (json!({"conditions": [condition]}), "status[0].message: Required value"),
    ] {
        let refused = api.replace_status(NAME, &PostParams::default(), &with_status(object, status)).await;
        let (code, text) = message(refused.expect_err(complaint));
        assert!(code == 422 && text.contains(complaint), "{code} {text}");
    }
}

async fn entries_are_applied_by_their_server(api: &Api<DynamicObject>) -> DynamicObject {
    let config = json!({"apiVersion": "internal.apiserver.k8s.io/v1alpha1", "kind": "StorageVersion",
        "metadata": {"name": NAME}, "status": {"storageVersions": [says("me", "test/v1")]}});
    let applied = api.patch_status(NAME, &PatchParams::apply("me").force(), &Patch::Apply(&config)).await;
    let applied = applied.expect("applied");
    let ids: Vec<&Value> = applied.data["status"]["storageVersions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| &entry["apiServerID"])
        .collect();
    assert_eq!(ids, ["other", "me"]);
    applied
}

/// Whatever was asked for and changed nothing is not seen by anybody.
async fn each_change_is_one_event(
    api: &Api<DynamicObject>,
    since: &DynamicObject,
    changes: &[&DynamicObject],
) {
    let revision = |object: &DynamicObject| object.metadata.resource_version.clone().expect("a revision");
    let only = WatchParams::default().fields(&format!("metadata.name={NAME}"));
    let mut events = Box::pin(api.watch(&only, &revision(since)).await.expect("a watch"));
    for change in changes {
        match events.try_next().await.expect("readable").expect("an event") {
            WatchEvent::Modified(object) => assert_eq!(revision(&object), revision(change)),
            other => panic!("{other:?}"),
        }
    }
}

async fn the_table_is_upstreams(server: &Program) {
    let mut client = server.admin(Protocol::Http2).await;
    let path = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions/core.pods";
    let accept = ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let answer = client.exchange(Method::GET, path, &[accept], Bytes::new()).await.expect("an answer");
    let table: Value = serde_json::from_str(&answer.body).expect("JSON");
    let cells = table["rows"][0]["cells"].as_array().expect("cells");
    assert_eq!(cells[..3], [json!("core.pods"), json!("v1"), json!("me=v1")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_known_by_its_lease_and_leaves_none_behind() {
    let data = tempdir().expect("a directory");
    let label = ListParams::default().labels("apiserver.kubernetes.io/identity=kube-apiserver");
    let mut holders = Vec::new();
    for signal in ["KILL", "TERM"] {
        let server = Program::start(data.path()).await;
        server.ready(200).await;
        let leases: Api<Lease> = Api::namespaced(client(data.path()).await, "kube-system");
        let found = leases.list(&label).await.expect("a list").items;
        assert_eq!(found.len(), 1, "one server, one lease");
        let name = found[0].metadata.name.clone().expect("a name");
        assert!(name.starts_with("apiserver-") && name.len() == 36, "{name}");
        let holder = found[0].spec.as_ref().and_then(|spec| spec.holder_identity.clone()).expect("a holder");
        assert!(holder.starts_with(&format!("{name}_")), "{holder}");
        holders.push((name, holder));
        server.signal(signal);
        server.ended().await;
    }
    assert_eq!(holders[0].0, holders[1].0, "the server is the same");
    assert_ne!(holders[0].1, holders[1].1, "the process is another one");
}

#[tokio::test]
async fn a_server_that_could_not_register_anything_does_not_start() {
    let data = tempdir().expect("a directory");
    let ended = refused(data.path(), &["--runtime-config=internal.apiserver.k8s.io/v1alpha1=false"]).await;
    assert!(ended.stderr.contains("StorageVersionAPI"), "{}", ended.stderr);
    let ended = refused(data.path(), &["--server-id=Not_A_Name"]).await;
    assert!(ended.stderr.contains("Not_A_Name"), "{}", ended.stderr);
}
