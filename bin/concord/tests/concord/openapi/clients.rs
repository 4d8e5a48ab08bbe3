//! What kubectl makes of the documents, of kinds that are built in, defined and another server's.

use std::{path::Path, process::Command, thread};

use concord_server::test_client::Protocol;
use serde_json::Value;
use tempfile::tempdir;

use super::{GROUP, definition};
use crate::{
    aggregation::{bookshelf::World, until},
    kubectl::{Engine, Kubectl, assert_has},
};

/// How many kubectls run at a time.
const AT_ONCE: usize = 4;

/// All resources that are served, with their versions.
fn resources(kubectl: &Kubectl) -> Vec<(String, String)> {
    let get =
        |path: &str| -> Value { serde_json::from_str(&kubectl.ok(&["get", "--raw", path])).expect("JSON") };
    let groups = get("/apis");
    let groups = groups["groups"].as_array().expect("groups").iter();
    let versions = groups.flat_map(|group| group["versions"].as_array().expect("versions"));
    let versions = versions.filter_map(|version| version["groupVersion"].as_str());
    let mut found = Vec::new();
    for version in versions.chain(["v1"]) {
        let place = if version.contains('/') { "apis" } else { "api" };
        let list = get(&format!("/{place}/{version}"));
        let names = list["resources"].as_array().expect("resources").iter();
        let names = names.filter_map(|resource| resource["name"].as_str()).filter(|name| !name.contains('/'));
        found.extend(names.map(|name| (name.to_owned(), version.to_owned())));
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn every_served_version_is_explained() {
    let data = tempdir().expect("a directory");
    let flags = ["--runtime-config=api/all=true".to_owned()];
    let Some(kubectl) = Kubectl::start_in(data, Engine::Embedded, &flags).await else { return };
    let file = kubectl.file("crd.json", &definition().to_string());
    kubectl.ok(&["create", "-f", &file]);
    kubectl.ok(&["wait", "--for=condition=Established", "--timeout=30s", &format!("crd/gadgets.{GROUP}")]);
    let all = resources(&kubectl);
    assert!(all.len() > 90, "only {}", all.len());
    let explain = |(name, version): &(String, String)| {
        let told = kubectl.ok(&["explain", name, "--recursive", &format!("--api-version={version}")]);
        assert_has(&told, &["KIND:", "VERSION:", "FIELDS:", "apiVersion\t<string>"]);
    };
    thread::scope(|scope| {
        for part in all.chunks(all.len().div_ceil(AT_ONCE)) {
            scope.spawn(move || part.iter().for_each(explain));
        }
    });
}

/// kubectl with a kubeconfig, and files beside it.
struct Client<'a>(&'a Path);

impl Client<'_> {
    fn run(&self, arguments: &[&str]) -> (bool, String) {
        let mut command = Command::new("kubectl");
        command.arg("--kubeconfig").arg(self.0.join("admin.kubeconfig")).env("HOME", self.0).args(arguments);
        let out = command.output().expect("kubectl runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (out.status.success(), text(&out.stdout) + &text(&out.stderr))
    }

    fn ok(&self, arguments: &[&str], says: &str) {
        let (done, said) = self.run(arguments);
        assert!(done && said.contains(says), "kubectl {arguments:?}: {said}");
    }

    fn fails(&self, arguments: &[&str], says: &str) {
        let (done, said) = self.run(arguments);
        assert!(!done && said.contains(says), "kubectl {arguments:?}: {said}");
    }

    /// Writes an object with this in its `spec`, or in its root if it has none.
    fn file(&self, kind: &Kind, members: &str) -> String {
        let members = if kind.has_spec { format!("\"spec\": {{{members}}}") } else { members.to_owned() };
        let text = format!(
            r#"{{"apiVersion": "{}", "kind": "{}", "metadata": {{"name": "a", "namespace": "default"}}, {members}}}"#,
            kind.version, kind.kind
        );
        let path = self.0.join(format!("{}.json", kind.kind));
        std::fs::write(&path, text).expect("written");
        path.to_str().expect("text").to_owned()
    }
}

/// A kind to try everything with.
struct Kind {
    version: &'static str,
    kind: &'static str,
    resource: &'static str,
    has_spec: bool,
    /// Members that are right, with one that is left out later.
    first: &'static str,
    second: &'static str,
    /// What the field that is left out is called, for JSONPath.
    left_out: &'static str,
    /// Another member, which no such object has, and where.
    unknown: (&'static str, &'static str),
}

const CONFIG_MAP: Kind = Kind {
    version: "v1",
    kind: "ConfigMap",
    resource: "configmap",
    has_spec: false,
    first: r#""data": {"a": "1", "b": "2"}"#,
    second: r#""data": {"a": "3"}"#,
    left_out: "{.data.b}",
    unknown: (r#""dada": {}"#, "dada"),
};
const GADGET: Kind = Kind {
    version: "docs.example.com/v1",
    kind: "Gadget",
    resource: "gadget",
    has_spec: true,
    first: r#""size": 1, "mode": "a""#,
    second: r#""size": 2"#,
    left_out: "{.spec.mode}",
    unknown: (r#""size": 1, "weight": 2"#, "spec.weight"),
};
const BOOK: Kind = Kind {
    version: "library.example.com/v1",
    kind: "Book",
    resource: "book",
    has_spec: true,
    first: r#""title": "Emma", "author": "Austen""#,
    second: r#""title": "Emma""#,
    left_out: "{.spec.author}",
    unknown: (r#""title": "Emma", "titel": "Emma""#, "spec.titel"),
};

/// Everything that kubectl does with the documents when it creates and applies.
fn create_and_apply(client: &Client<'_>, kind: &Kind) {
    let unknown = format!("unknown field \"{}\"", kind.unknown.1);
    for verb in ["create", "apply"] {
        let file = client.file(kind, kind.unknown.0);
        client.fails(&[verb, "--validate=strict", "-f", &file], &unknown);
        client.ok(&[verb, "--validate=warn", "-f", &file], &unknown);
        client.ok(&["delete", "-f", &file], "deleted");
        let ignored = client.run(&[verb, "--validate=ignore", "-f", &file]);
        assert!(ignored.0 && !ignored.1.contains(&unknown), "{verb}: {}", ignored.1);
        client.ok(&["delete", "-f", &file], "deleted");
    }
    // What was applied once and is not any more is taken away, and what others wrote stays.
    client.ok(&["apply", "-f", &client.file(kind, kind.first)], "created");
    client.ok(&["apply", "-f", &client.file(kind, kind.first)], "unchanged");
    client.ok(&["label", kind.resource, "a", "by=hand"], "labeled");
    client.ok(&["apply", "-f", &client.file(kind, kind.second)], "configured");
    let left = client.run(&[
        "get",
        kind.resource,
        "a",
        "-o",
        &format!("jsonpath={}/{{.metadata.labels.by}}", kind.left_out),
    ]);
    assert_eq!(left, (true, "/hand".to_owned()), "{}", kind.kind);
    client.ok(&["explain", kind.resource, "--recursive"], "metadata\t<ObjectMeta>");
    client.fails(&["explain", &format!("{}.nothing", kind.resource)], "field \"nothing\" does not exist");
}

/// A deployment whose first container has these variables and this image.
fn deployment(client: &Client<'_>, image: &str, variables: &str) -> String {
    let container = format!(r#"{{"name": "c", "image": "{image}", "env": [{variables}]}}"#);
    let text = format!(
        r#"{{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {{"name": "d", "namespace": "default"}}, "spec": {{
            "selector": {{"matchLabels": {{"a": "b"}}}}, "template": {{"metadata": {{"labels": {{"a": "b"}}}}, "spec": {{"containers": [{container}]}}}}}}}}"#
    );
    let path = client.0.join("deployment.json");
    std::fs::write(&path, text).expect("written");
    path.to_str().expect("text").to_owned()
}

/// Lists whose elements have names are merged by them, which kubectl knows from the documents or from its own types.
fn lists_are_merged(client: &Client<'_>) {
    let (one, two) = (r#"{"name": "ONE", "value": "1"}"#, r#"{"name": "TWO", "value": "2"}"#);
    client.ok(&["apply", "-f", &deployment(client, "x:1", &format!("{one}, {two}"))], "created");
    let sidecar = r#"{"spec": {"template": {"spec": {"containers": [{"name": "sidecar", "image": "y"}]}}}}"#;
    client.ok(&["patch", "deployment", "d", "-p", sidecar], "patched");
    let three = r#"{"spec": {"template": {"spec": {"containers": [{"name": "c", "env": [{"name": "THREE", "value": "3"}]}]}}}}"#;
    client.ok(&["patch", "deployment", "d", "-p", three], "patched");
    client.ok(&["apply", "-f", &deployment(client, "x:2", one)], "configured");
    let path = "{range .spec.template.spec.containers[*]}{.name}={.image} {range .env[*]}{.name} {end}{end}";
    let (done, left) = client.run(&["get", "deployment", "d", "-o", &format!("jsonpath={path}")]);
    let mut left: Vec<&str> = left.split_whitespace().collect();
    left.sort_unstable();
    assert!(done && left == ["ONE", "THREE", "c=x:2", "sidecar=y"], "{left:?}");
}

/// kubectl reads what it is given before it sends it, so that the server hears of no field twice unless it is sent as it is.
fn what_is_there_twice_is_found(client: &Client<'_>) {
    let path = client.0.join("twice.json");
    let text = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "twice", "namespace": "default"}, "data": {"a": "1", "a": "2"}}"#;
    std::fs::write(&path, text).expect("written");
    let file = path.to_str().expect("text");
    let place = |validation: &str| {
        format!("/api/v1/namespaces/default/configmaps?dryRun=All&fieldValidation={validation}")
    };
    let complaint = "duplicate field \"data.a\"";
    client.fails(&["create", "--raw", &place("Strict"), "-f", file], complaint);
    client.ok(&["create", "--raw", &place("Warn"), "-f", file], "\"a\":\"2\"");
    client.ok(&["create", "--raw", &place("Ignore"), "-f", file], "\"a\":\"2\"");
    for verb in ["create", "apply"] {
        client.ok(&[verb, "--validate=strict", "-f", file], "created");
        let (_, last) = client.run(&["get", "configmap", "twice", "-o", "jsonpath={.data.a}"]);
        assert_eq!(last, "2", "{verb}");
        client.ok(&["delete", "-f", file], "deleted");
    }
}

/// The bookshelf runs in this process, and must while kubectl is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_created_and_applied_is_validated_and_merged() {
    if !Command::new("kubectl").args(["version", "--client"]).output().is_ok_and(|out| out.status.success()) {
        eprintln!("skipped: there is no kubectl on PATH");
        return;
    }
    let world = World::start().await;
    let mut admin = world.program.admin(Protocol::Http2).await;
    let is_shown = |_, body: &str| body.contains("apis/library.example.com/v1");
    until(&mut admin, "/openapi/v3", "its document is published", is_shown).await;
    let client = Client(world.data.path());
    let file = world.data.path().join("crd.json");
    std::fs::write(&file, definition().to_string()).expect("written");
    client.ok(&["create", "-f", file.to_str().expect("text")], "created");
    client.ok(&["wait", "--for=condition=Established", "crd/gadgets.docs.example.com"], "met");
    for kind in [&CONFIG_MAP, &GADGET, &BOOK] {
        create_and_apply(&client, kind);
    }
    lists_are_merged(&client);
    what_is_there_twice_is_found(&client);
}
