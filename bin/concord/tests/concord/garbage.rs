//! The garbage collector as clients meet it, on both engines.

use std::{path::Path, time::Duration};

use concord_server::test_client::Protocol;
use concord_testing::etcd::Cluster;
use futures_util::{StreamExt as _, stream};
use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace};
use kube::{
    Api, Client, ResourceExt as _,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams, PropagationPolicy,
    },
    core::NamespaceResourceScope,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::support::{Program, SOON, client, refused};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_the_embedded_store() {
    let data = tempdir().expect("a directory");
    let server = Program::start(data.path()).await;
    server.ready(200).await;
    Box::pin(all(&client(data.path()).await)).await;
    Box::pin(a_crash_is_no_end(data.path(), server, &[])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_etcd() {
    let etcd = Cluster::single().await.expect("an etcd");
    let data = tempdir().expect("a directory");
    let servers = format!("--etcd-servers={}", etcd.endpoints().join(","));
    let server = Program::start_with(data.path(), &[&servers]).await;
    server.ready(200).await;
    Box::pin(all(&client(data.path()).await)).await;
    Box::pin(a_crash_is_no_end(data.path(), server, &[&servers])).await;
}

async fn all(client: &Client) {
    tokio::join!(
        a_chain_goes(client, "background", PropagationPolicy::Background),
        a_chain_goes(client, "foreground", PropagationPolicy::Foreground),
        an_owner_goes_alone(client),
        custom_objects_own_and_are_owned(client),
        strays_are_told_of(client),
    );
}

/// One kind of objects in one namespace.
struct Objects {
    api: Api<DynamicObject>,
    resource: ApiResource,
}

impl Objects {
    fn new(client: &Client, namespace: &str, group: &str, version: &str, kind: &str) -> Self {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Self { api: Api::namespaced_with(client.clone(), namespace, &resource), resource }
    }

    async fn create(&self, name: &str, owner: Option<&Value>, data: Value) -> DynamicObject {
        let mut object = DynamicObject::new(name, &self.resource).data(data);
        let owner = owner.map(|owner| serde_json::from_value(owner.clone()).expect("a reference"));
        object.metadata.owner_references = owner.map(|owner| vec![owner]);
        self.api.create(&PostParams::default(), &object).await.expect("created")
    }

    /// A reference to an object, which has to wait for whoever refers to it.
    fn owner(&self, object: &DynamicObject) -> Value {
        json!({
            "apiVersion": self.resource.api_version, "kind": self.resource.kind, "name": object.name_any(),
            "uid": object.uid(), "controller": true, "blockOwnerDeletion": true,
        })
    }

    async fn delete(&self, name: &str, policy: PropagationPolicy) {
        let how = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
        self.api.delete(name, &how).await.expect("deleted");
    }

    async fn names(&self) -> Vec<String> {
        let all = self.api.list(&ListParams::default()).await.expect("a list");
        all.items.iter().map(|object| object.name_any()).collect()
    }

    async fn gone(&self, name: &str) {
        until(&format!("{name} goes"), async || self.api.get_opt(name).await.expect("an answer").is_none())
            .await;
    }

    async fn left(&self, expected: &[&str]) {
        until(&format!("{expected:?} are left"), async || self.names().await == expected).await;
    }
}

async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let seen = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, seen).await.unwrap_or_else(|_| panic!("not in time: {what}"));
}

async fn namespace(client: &Client, name: &str) {
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}})).expect("one");
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.expect("a namespace");
}

/// What a Deployment makes, without the controllers that would make it.
struct Chain {
    deployments: Objects,
    sets: Objects,
    pods: Objects,
}

impl Chain {
    async fn new(client: &Client, namespace: &str) -> Self {
        self::namespace(client, namespace).await;
        let chain = Self {
            deployments: Objects::new(client, namespace, "apps", "v1", "Deployment"),
            sets: Objects::new(client, namespace, "apps", "v1", "ReplicaSet"),
            pods: Objects::new(client, namespace, "", "v1", "Pod"),
        };
        let pod = json!({"containers": [{"name": "c", "image": "i"}]});
        let labels = json!({"app": "web"});
        let spec = json!({
            "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod},
        });
        let deployment = chain.deployments.create("web", None, json!({"spec": spec})).await;
        let owner = chain.deployments.owner(&deployment);
        let set = chain.sets.create("web-1", Some(&owner), json!({"spec": spec})).await;
        for name in ["web-1-a", "web-1-b"] {
            chain.pods.create(name, Some(&chain.sets.owner(&set)), json!({"spec": pod})).await;
        }
        chain
    }
}

async fn a_chain_goes(client: &Client, namespace: &str, policy: PropagationPolicy) {
    let chain = Chain::new(client, namespace).await;
    let in_order = matches!(policy, PropagationPolicy::Foreground);
    chain.deployments.delete("web", policy).await;
    chain.deployments.gone("web").await;
    if in_order {
        assert!(chain.sets.names().await.is_empty(), "the owner went before its dependents");
        assert!(chain.pods.names().await.is_empty(), "the owner went before its dependents");
    }
    chain.sets.left(&[]).await;
    chain.pods.left(&[]).await;
}

async fn an_owner_goes_alone(client: &Client) {
    let chain = Chain::new(client, "orphan").await;
    chain.deployments.delete("web", PropagationPolicy::Orphan).await;
    chain.deployments.gone("web").await;
    let set = chain.sets.api.get("web-1").await.expect("it stays");
    assert!(set.owner_references().is_empty());
    assert_eq!(chain.pods.names().await, ["web-1-a", "web-1-b"]);
    chain.sets.delete("web-1", PropagationPolicy::Background).await;
    chain.pods.left(&[]).await;
}

async fn custom_objects_own_and_are_owned(client: &Client) {
    let definition: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "owners.garbage.example.com"},
        "spec": {
            "group": "garbage.example.com", "scope": "Namespaced", "names": {"plural": "owners", "kind": "Owner"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    }))
    .expect("a definition");
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    definitions.create(&PostParams::default(), &definition).await.expect("a definition");
    let owners = Objects::new(client, "custom", "garbage.example.com", "v1", "Owner");
    until("it is served", async || owners.api.list(&ListParams::default()).await.is_ok()).await;
    namespace(client, "custom").await;
    let maps = Objects::new(client, "custom", "", "v1", "ConfigMap");
    let trusted = "kube-root-ca.crt";

    let root = owners.create("root", None, json!({})).await;
    let child = owners.create("child", Some(&owners.owner(&root)), json!({})).await;
    maps.create("map", Some(&owners.owner(&child)), json!({})).await;
    owners.delete("root", PropagationPolicy::Foreground).await;
    owners.gone("root").await;
    assert_eq!(owners.names().await, [""; 0]);
    maps.left(&[trusted]).await;

    // With the definition its objects go, and with those what they own.
    let root = owners.create("root", None, json!({})).await;
    maps.create("map", Some(&owners.owner(&root)), json!({})).await;
    definitions.delete("owners.garbage.example.com", &DeleteParams::default()).await.expect("deleted");
    maps.left(&[trusted]).await;
}

async fn strays_are_told_of(client: &Client) {
    namespace(client, "here").await;
    namespace(client, "there").await;
    let (here, there) = (
        Objects::new(client, "here", "", "v1", "ConfigMap"),
        Objects::new(client, "there", "", "v1", "ConfigMap"),
    );
    let owner = here.create("owner", None, json!({})).await;
    there.create("stray", Some(&here.owner(&owner)), json!({})).await;
    there.gone("stray").await;
    assert!(here.api.get_opt("owner").await.expect("an answer").is_some());
    let events: Api<Event> = Api::namespaced(client.clone(), "there");
    let events = events.list(&ListParams::default()).await.expect("a list");
    let event = events.iter().find(|event| event.involved_object.name.as_deref() == Some("stray"));
    let event = event.expect("an event");
    assert_eq!(event.reason.as_deref(), Some("OwnerRefInvalidNamespace"));
    let uid = owner.uid().expect("a uid");
    let text = format!(
        "ownerRef [v1/ConfigMap, namespace: there, name: owner, uid: {uid}] does not exist in namespace \"there\""
    );
    assert_eq!(event.message.as_deref(), Some(text.as_str()));
}

/// How many objects go at once where something happens meanwhile.
const MANY: usize = 300;

async fn fill(maps: &Objects, owner: &Value) {
    let all = stream::iter(0..MANY).map(|at| async move {
        maps.create(&format!("map-{at}"), Some(owner), json!({})).await;
    });
    all.buffer_unordered(16).collect::<()>().await;
}

async fn count<K>(api: &Api<K>) -> usize
where
    K: kube::Resource<Scope = NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug,
{
    api.list(&ListParams::default()).await.expect("a list").items.len()
}

/// The server is killed while objects go; the next one goes on.
async fn a_crash_is_no_end(data: &Path, server: Program, more: &[&str]) {
    let first = client(data).await;
    namespace(&first, "crash").await;
    let (secrets, maps) = (
        Objects::new(&first, "crash", "", "v1", "Secret"),
        Objects::new(&first, "crash", "", "v1", "ConfigMap"),
    );
    let root = secrets.create("root", None, json!({})).await;
    fill(&maps, &secrets.owner(&root)).await;
    secrets.delete("root", PropagationPolicy::Foreground).await;
    until("some are gone", async || maps.names().await.len() < MANY).await;
    server.signal("KILL");
    server.ended().await;
    let next = Program::start_with(data, more).await;
    next.ready(200).await;
    let second = client(data).await;
    Objects::new(&second, "crash", "", "v1", "Secret").gone("root").await;
    // All that is left is what every namespace has.
    let maps: Api<ConfigMap> = Api::namespaced(second, "crash");
    assert!(count(&maps).await <= 1);
}

/// A server of an older release does not know a kind that a newer one serves: what it owns is left alone by both until the
/// owner goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_that_only_another_server_knows_are_respected() {
    let etcd = Cluster::single().await.expect("an etcd");
    let servers = format!("--etcd-servers={}", etcd.endpoints().join(","));
    let places = [tempdir().expect("a directory"), tempdir().expect("a directory")];
    let old = ["--server-id=old", "--emulated-version=1.33", &servers];
    let old = Program::start_with(places[0].path(), &old).await;
    let new = Program::start_with(places[1].path(), &["--server-id=new", &servers]).await;
    old.ready(200).await;
    new.ready(200).await;
    let (old, new) = (client(places[0].path()).await, client(places[1].path()).await);
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("resource.k8s.io", "v1", "DeviceClass"));
    let classes: Api<DynamicObject> = Api::all_with(new.clone(), &kind);
    let class = DynamicObject::new("class", &kind).data(json!({"spec": {}}));
    let class = classes.create(&PostParams::default(), &class).await.expect("created");
    let owner = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "name": "class", "uid": class.uid(),
    });
    let maps = [&old, &new].map(|client| Objects::new(client, "default", "", "v1", "ConfigMap"));
    maps[0].create("kept-by-old", Some(&owner), json!({})).await;
    maps[1].create("kept-by-new", Some(&owner), json!({})).await;
    let nobody = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "nobody"});
    for (at, objects) in maps.iter().enumerate() {
        objects.create(&format!("canary-{at}"), Some(&nobody), json!({})).await;
        objects.gone(&format!("canary-{at}")).await;
    }
    maps[0].left(&["kept-by-new", "kept-by-old", "kube-root-ca.crt"]).await;
    classes.delete("class", &DeleteParams::default()).await.expect("deleted");
    maps[0].left(&["kube-root-ca.crt"]).await;
}

const ENFORCED: &str = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement,LimitRanger";

/// Bob may write ConfigMaps, but not delete them.
async fn let_bob_write(client: &Client) {
    let rbac =
        |kind: &str| ApiResource::from_gvk(&GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", kind));
    for (kind, data) in [
        (
            "ClusterRole",
            json!({"rules": [
                {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get", "patch"]},
            ]}),
        ),
        (
            "ClusterRoleBinding",
            json!({
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bob"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}],
            }),
        ),
    ] {
        let object = DynamicObject::new("bob", &rbac(kind)).data(data);
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &rbac(kind));
        api.create(&PostParams::default(), &object).await.expect("created");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_are_named_by_those_who_may() {
    let data = tempdir().expect("a directory");
    let ended = refused(data.path(), &["--enable-admission-plugins=NoSuchPlugin"]).await;
    assert!(
        ended.stderr.contains("enable-admission-plugins plugin \"NoSuchPlugin\" is unknown"),
        "{}",
        ended.stderr
    );
    let server = Program::start_with(data.path(), &[ENFORCED]).await;
    server.ready(200).await;
    let kube = client(data.path()).await;
    let_bob_write(&kube).await;
    let maps = Objects::new(&kube, "default", "", "v1", "ConfigMap");
    let root = maps.create("root", None, json!({})).await;
    maps.create("map", None, json!({})).await;
    let mut admin = server.admin(Protocol::Http2).await;
    let mut bob = async |method: Method, path: &str, kind: &str, references: Value| {
        let name = path.rsplit('/').next().unwrap_or_default();
        let name = if name == "configmaps" { "new" } else { name };
        let body = json!({"metadata": {"name": name, "ownerReferences": references}}).to_string();
        let path = format!("/api/v1/namespaces/default/{path}");
        let headers = [("content-type", kind), ("impersonate-user", "bob")];
        let answer = admin.exchange(method, &path, &headers, body.into()).await.expect("an answer");
        let body: Value = serde_json::from_str(&answer.body).expect("JSON");
        (answer.status, body["message"].as_str().unwrap_or_default().to_owned())
    };
    let (merge, json) = ("application/merge-patch+json", "application/json");
    let blocking = maps.owner(&root);
    let mut loose = blocking.clone();
    loose["blockOwnerDeletion"] = false.into();
    let unknown = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "w", "blockOwnerDeletion": true,
    });
    let text =
        "configmaps \"map\" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>";
    assert_eq!(bob(Method::PATCH, "configmaps/map", merge, json!([loose])).await, (403, text.to_owned()));
    assert_eq!(bob(Method::PATCH, "configmaps/map", merge, Value::Null).await.0, 200, "nothing changes");
    let text = "configmaps \"new\" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource \
                you can't set finalizers on: , <nil>";
    assert_eq!(bob(Method::POST, "configmaps", json, json!([blocking])).await, (403, text.to_owned()));
    let text = "configmaps \"new\" is forbidden: cannot set blockOwnerDeletion in this case because cannot find \
                RESTMapping for APIVersion example.com/v1 Kind Widget: no matches for kind \"Widget\" in version \
                \"example.com/v1\"";
    assert_eq!(bob(Method::POST, "configmaps", json, json!([unknown])).await, (403, text.to_owned()));
    assert_eq!(bob(Method::POST, "configmaps", json, json!([loose])).await.0, 201, "his own object");
    // The collector itself may do what it has to.
    maps.delete("root", PropagationPolicy::Orphan).await;
    maps.gone("root").await;
    assert!(maps.api.get("new").await.expect("it stays").owner_references().is_empty());
}
