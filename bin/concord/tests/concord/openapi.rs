//! Documents about custom resources, which follow their definitions.

mod changes;
mod clients;
mod heads;
mod lag;
mod many;
mod servers;

use std::{collections::BTreeMap, fs};

use http::{Request, header::ACCEPT};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    runtime::{conditions::is_crd_established, wait::await_condition},
};
use serde_json::{Value, json};
use tempfile::tempdir;
use tokio::time::timeout;

use crate::{
    kubectl::{Engine, Kubectl, assert_has},
    support::{Program, SOON, client},
};

const GROUP: &str = "docs.example.com";

fn definition() -> Value {
    let schema = json!({
        "type": "object",
        "description": "A gadget.",
        "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}}},
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "format": "int64", "minimum": 0, "default": 9_007_199_254_740_993_i64},
                    "port": {"x-kubernetes-int-or-string": true},
                    "mode": {"type": "string", "nullable": true, "oneOf": [{"pattern": "^a"}, {"pattern": "^b"}]},
                },
                "x-kubernetes-validations": [{"rule": "self.size >= 0", "message": "not that small"}],
            },
        },
    });
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage,
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
            "schema": {"openAPIV3Schema": schema},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("gadgets.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [version("v1", true), version("v1beta1", false)],
        },
    })
}

async fn read(client: &Client, path: &str) -> Result<Value, u16> {
    let request = Request::get(path).header(ACCEPT, "application/json").body(Vec::new()).expect("a request");
    match client.request_text(request).await {
        Ok(text) => Ok(serde_json::from_str(&text).expect("JSON")),
        Err(kube::Error::Api(status)) => Err(status.code),
        Err(error) => panic!("{path}: {error}"),
    }
}

/// The addresses of all documents.
async fn index(client: &Client) -> BTreeMap<String, String> {
    let index = read(client, "/openapi/v3").await.expect("the index");
    let paths = index["paths"].as_object().expect("paths");
    let url = |entry: &Value| entry["serverRelativeURL"].as_str().expect("an address").to_owned();
    paths.iter().map(|(key, entry)| (key.clone(), url(entry))).collect()
}

/// The addresses, once they are as they should be.
async fn settled(
    client: &Client,
    wanted: impl Fn(&BTreeMap<String, String>) -> bool,
) -> BTreeMap<String, String> {
    let settle = async {
        loop {
            let index = index(client).await;
            if wanted(&index) {
                return index;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, settle).await.expect("the index as it should be")
}

fn changed(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let differs = |key: &&String| before.get(*key) != after.get(*key);
    let mut keys: Vec<String> = before.keys().chain(after.keys()).filter(differs).cloned().collect();
    keys.sort();
    keys.dedup();
    keys
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_follow_the_definitions() {
    let data = tempdir().expect("a directory");
    let server = Program::start(data.path()).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = format!("gadgets.{GROUP}");
    let (v1, beta) = (format!("apis/{GROUP}/v1"), format!("apis/{GROUP}/v1beta1"));

    let before = index(&client).await;
    assert!(before.contains_key("openid/v1/jwks") && before.contains_key("version"));
    let gadgets = serde_json::from_value(definition()).expect("a definition");
    definitions.create(&PostParams::default(), &gadgets).await.expect("created");
    let established = await_condition(definitions.clone(), &name, is_crd_established());
    timeout(SOON, established).await.expect("in time").expect("established");
    let defined = settled(&client, |index| index.contains_key(&beta)).await;
    assert_eq!(changed(&before, &defined), [v1.as_str(), beta.as_str()]);
    check_documents(&client, &defined[&v1]).await;

    // What is not about the fields changes no document.
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let parameters = PatchParams::default();
    definitions.patch(&name, &parameters, &Patch::Merge(label)).await.expect("patched");
    assert_eq!(index(&client).await, defined);

    let mut versions = definition()["spec"]["versions"].take();
    versions[0]["schema"]["openAPIV3Schema"]["description"] = "Another.".into();
    let patch = Patch::Merge(json!({"spec": {"versions": versions}}));
    definitions.patch(&name, &parameters, &patch).await.expect("patched");
    let described = settled(&client, |index| index[&v1] != defined[&v1]).await;
    assert_eq!(changed(&defined, &described), [v1.as_str()]);
    let (kept, current) = (defined[&v1].as_str(), described[&v1].as_str());
    let text = |document: &Value| {
        document["components"]["schemas"]["com.example.docs.v1.Gadget"]["description"].clone()
    };
    assert_eq!(text(&read(&client, current).await.expect("the document")), "Another.");
    // Whoever has read the index before still finds what it told.
    assert_eq!(text(&read(&client, kept).await.expect("the document")), "A gadget.");

    versions[1]["served"] = false.into();
    let patch = Patch::Merge(json!({"spec": {"versions": versions}}));
    definitions.patch(&name, &parameters, &patch).await.expect("patched");
    let unserved = settled(&client, |index| !index.contains_key(&beta)).await;
    assert_eq!(changed(&described, &unserved), [beta.as_str()]);
    assert_eq!(read(&client, &format!("/openapi/v3/{beta}")).await, Err(404));

    definitions.delete(&name, &DeleteParams::default()).await.expect("deleted");
    let gone = settled(&client, |index| !index.contains_key(&v1)).await;
    assert_eq!(gone, before);
    let v2 = read(&client, "/openapi/v2").await.expect("version 2");
    assert!(v2["definitions"].get("com.example.docs.v1.Gadget").is_none());
}

async fn check_documents(client: &Client, url: &str) {
    let document = read(client, url).await.expect("the document");
    let gadget = &document["components"]["schemas"]["com.example.docs.v1.Gadget"];
    let size =
        json!({"type": "integer", "format": "int64", "minimum": 0, "default": 9_007_199_254_740_993_i64});
    let spec = &gadget["properties"]["spec"];
    assert_eq!(spec["properties"]["size"], size);
    assert_eq!(spec["properties"]["mode"]["oneOf"], json!([{"pattern": "^a"}, {"pattern": "^b"}]));
    assert_eq!(spec["x-kubernetes-validations"][0]["message"], "not that small");
    let name = &gadget["properties"]["metadata"]["anyOf"][0]["properties"]["name"];
    assert_eq!(name["maxLength"], 20);
    let root = format!("/apis/{GROUP}/v1/namespaces/{{namespace}}/gadgets/{{name}}");
    for end in ["", "/status", "/scale"] {
        let item = &document["paths"][format!("{root}{end}")];
        let fields = item["patch"]["parameters"].as_array().expect("parameters");
        assert!(fields.iter().any(|parameter| parameter["name"] == "fieldValidation"), "{end}");
        assert_eq!(item["get"]["x-kubernetes-group-version-kind"]["kind"], "Gadget");
    }
    let v2 = read(client, "/openapi/v2").await.expect("version 2");
    let spec = &v2["definitions"]["com.example.docs.v1.Gadget"]["properties"]["spec"];
    assert_eq!(spec["properties"]["size"], json!({"type": "integer", "format": "int64", "minimum": 0}));
    assert_eq!(spec["properties"]["mode"], json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_explains_and_validates() {
    let Some(kubectl) = Kubectl::start(Engine::Embedded).await else { return };
    let text = kubectl.ok(&["explain", "deployments.spec.replicas"]);
    assert_has(&text, &["FIELD: replicas <integer>", "Number of desired pods."]);
    let text = kubectl.ok(&["explain", "pods", "--recursive"]);
    assert_has(
        &text,
        &["imagePullPolicy\t<string>", "enum: Always, IfNotPresent, Never", "ephemeralContainers"],
    );

    let file = kubectl.file("crd.json", &definition().to_string());
    kubectl.ok(&["create", "-f", &file]);
    kubectl.ok(&["wait", "--for=condition=Established", "--timeout=30s", &format!("crd/gadgets.{GROUP}")]);
    for version in ["v1", "v1beta1"] {
        let api_version = format!("--api-version={GROUP}/{version}");
        let text = kubectl.ok(&["explain", "gadgets", "--recursive", &api_version]);
        assert_has(&text, &["A gadget.", "metadata\t<ObjectMeta>", "port\t<Object>", "size\t<integer>"]);
    }
    let text = kubectl.fails(&["explain", "gadgets.spec.nothing"]);
    assert_has(&text, &["field \"nothing\" does not exist"]);

    let object = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Gadget", "metadata": {"name": "a"},
        "spec": {"size": 1, "weight": 2},
    });
    let file = kubectl.file("gadget.json", &object.to_string());
    let text = kubectl.fails(&["create", "--validate=strict", "-f", &file]);
    assert_has(&text, &["strict decoding error: unknown field \"spec.weight\""]);
    let warned = kubectl.output(&["apply", "--validate=warn", "-f", &file]);
    assert!(warned.status.success());
    assert_has(&String::from_utf8_lossy(&warned.stderr), &["unknown field \"spec.weight\""]);
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "dada": {}});
    let file = kubectl.file("config.json", &object.to_string());
    let text = kubectl.fails(&["apply", "--validate=strict", "-f", &file]);
    assert_has(&text, &["strict decoding error: unknown field \"dada\""]);
}

/// What kubectl has read stays right until the index says otherwise, so that a second look costs one short answer.
#[tokio::test(flavor = "multi_thread")]
async fn kubectl_reads_a_document_once() {
    const POLICY: &str =
        r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}"#;
    let data = tempdir().expect("a directory");
    let path = |name: &str| data.path().join(name).display().to_string();
    fs::write(path("policy.json"), POLICY).expect("written");
    let flags = [
        format!("--audit-policy-file={}", path("policy.json")),
        format!("--audit-log-path={}", path("audit.log")),
    ];
    let Some(kubectl) = Kubectl::start_in(data, Engine::Embedded, &flags).await else { return };
    for _ in 0..2 {
        kubectl.ok(&["explain", "deployments.spec.replicas"]);
    }
    let data = kubectl.stop().await;
    let log = fs::read_to_string(data.path().join("audit.log")).expect("an audit log");
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    let ended = events.filter(|event| event["stage"] == "ResponseComplete");
    let text = |event: Value| {
        let uri = event["requestURI"].as_str().and_then(|uri| uri.split('?').next()).unwrap_or_default();
        format!("{uri} {}", event["responseStatus"]["code"])
    };
    let asked: Vec<String> = ended.map(text).filter(|text| text.starts_with("/openapi")).collect();
    assert_eq!(asked, ["/openapi/v3 200", "/openapi/v3/apis/apps/v1 200", "/openapi/v3 304"]);
}
