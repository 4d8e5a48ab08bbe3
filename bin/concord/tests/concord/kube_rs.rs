//! The kube client, unmodified, on both engines. Each scenario has a namespace of its own.

use std::{collections::BTreeMap, time::Duration};

use crate::support::{CANARY, Program, SOON, client};
use concord_testing::etcd::Cluster;
use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        autoscaling::v1::Scale,
        core::v1::{ConfigMap, Namespace, Secret, Service},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    discovery::Discovery,
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::json;
use tempfile::tempdir;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_the_embedded_store() {
    let data = tempdir().expect("a directory");
    let server = Program::start(data.path()).await;
    server.ready(200).await;
    Box::pin(all(&client(data.path()).await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_etcd() {
    let etcd = Cluster::single().await.expect("an etcd");
    let data = tempdir().expect("a directory");
    let servers = format!("--etcd-servers={}", etcd.endpoints().join(","));
    let server = Program::start_with(data.path(), &[&servers]).await;
    server.ready(200).await;
    Box::pin(all(&client(data.path()).await)).await;
}

async fn all(client: &Client) {
    tokio::join!(
        objects_are_written_and_read(client),
        apply_has_owners(client),
        lists_come_in_pages(client),
        watches_tell_what_happens(client),
        replicas_are_scaled(client),
        services_have_addresses(client),
        a_namespace_ends_with_its_content(client),
        discovery_is_complete(client),
    );
}

async fn namespace(client: &Client, name: &str) {
    let namespace = Namespace {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.expect("a namespace");
    // What every namespace has comes by itself, and is not to come in between.
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), name);
    let trusted = async {
        while maps.get_opt("kube-root-ca.crt").await.expect("an answer").is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, trusted).await.expect("the authority to trust");
}

fn config_map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    let data: BTreeMap<_, _> =
        data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(data),
        ..ConfigMap::default()
    }
}

fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => panic!("not an answer of the server: {other}"),
    }
}

async fn objects_are_written_and_read(client: &Client) {
    namespace(client, "objects").await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "objects");
    let post = PostParams::default();
    let created = maps.create(&post, &config_map("a", &[("k", "1")])).await.expect("created");
    assert_eq!(maps.get("a").await.expect("there"), created);
    assert_eq!(code(&maps.create(&post, &config_map("a", &[])).await.expect_err("there already")), 409);
    assert_eq!(code(&maps.create(&post, &config_map("A b", &[])).await.expect_err("a bad name")), 422);

    let mut changed = created.clone();
    changed.data.get_or_insert_default().insert("k".to_owned(), "2".to_owned());
    let replaced = maps.replace("a", &post, &changed).await.expect("replaced");
    assert_ne!(replaced.resource_version(), created.resource_version());
    assert_eq!(code(&maps.replace("a", &post, &changed).await.expect_err("made from an older state")), 409);

    let merge = Patch::Merge(json!({"data": {"m": "3"}}));
    maps.patch("a", &PatchParams::default(), &merge).await.expect("merged");
    let strategic = Patch::Strategic(json!({"metadata": {"labels": {"l": "v"}}}));
    let patched = maps.patch("a", &PatchParams::default(), &strategic).await.expect("merged");
    assert_eq!(patched.labels().get("l").map(String::as_str), Some("v"));
    assert_eq!(patched.data.unwrap_or_default().len(), 2);

    let secrets: Api<Secret> = Api::namespaced(client.clone(), "objects");
    let secret = serde_json::from_value(json!({"metadata": {"name": "s"}, "stringData": {"p": CANARY}}));
    let secret = secrets.create(&post, &secret.expect("a secret")).await.expect("created");
    assert_eq!(secret.data.unwrap_or_default()["p"].0, CANARY.as_bytes());

    maps.delete("a", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(code(&maps.get("a").await.expect_err("gone")), 404);
}

async fn apply_has_owners(client: &Client) {
    namespace(client, "apply").await;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "apply");
    let of = |image: &str, replicas: Option<i32>| {
        let mut config = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {
                "selector": {"matchLabels": {"app": "d"}},
                "template": {
                    "metadata": {"labels": {"app": "d"}},
                    "spec": {"containers": [{"name": "c", "image": image}]},
                },
            },
        });
        if let Some(replicas) = replicas {
            config["spec"]["replicas"] = replicas.into();
        }
        Patch::Apply(config)
    };
    let one = PatchParams::apply("one");
    let first = deployments.patch("d", &one, &of("a:1", Some(2))).await.expect("created");
    let again = deployments.patch("d", &one, &of("a:1", Some(2))).await.expect("the same");
    assert_eq!(first.resource_version(), again.resource_version(), "applying twice changes nothing");
    let two = PatchParams::apply("two");
    assert_eq!(code(&deployments.patch("d", &two, &of("a:2", None)).await.expect_err("owned by one")), 409);
    let forced = deployments.patch("d", &two.clone().force(), &of("a:2", None)).await.expect("forced");
    let spec = forced.spec.expect("a spec");
    assert_eq!(spec.replicas, Some(2), "what only one said stays");
    let given_up = deployments.patch("d", &one, &of("a:2", None)).await.expect("agrees with two");
    assert_eq!(
        given_up.spec.expect("a spec").replicas,
        Some(1),
        "what only one said is gone: the default is back"
    );
}

async fn lists_come_in_pages(client: &Client) {
    namespace(client, "pages").await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "pages");
    for n in 0..25 {
        let mut map = config_map(&format!("m{n:02}"), &[]);
        map.labels_mut().insert("half".to_owned(), (n % 2).to_string());
        maps.create(&PostParams::default(), &map).await.expect("created");
    }
    let mut names = Vec::new();
    let mut params = ListParams::default().labels("half").limit(10);
    loop {
        let page = maps.list(&params).await.expect("a page");
        names.extend(page.items.iter().map(kube::ResourceExt::name_any));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(names.len(), 25);
    assert!(names.is_sorted(), "{names:?}");
    let odd = maps.list(&ListParams::default().labels("half=1")).await.expect("a list");
    assert_eq!(odd.items.len(), 12);
    let named = maps.list(&ListParams::default().fields("metadata.name=m03")).await.expect("a list");
    assert_eq!(named.items.len(), 1);
    maps.delete_collection(&DeleteParams::default(), &ListParams::default().labels("half=0"))
        .await
        .expect("deleted");
    let left = maps.list(&ListParams::default().labels("half")).await.expect("a list");
    assert_eq!(left.items.len(), 12);
}

async fn watches_tell_what_happens(client: &Client) {
    namespace(client, "watches").await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "watches");
    let list = maps.list(&ListParams::default()).await.expect("a list");
    let version = list.metadata.resource_version.expect("a version");
    let mut events = maps.watch(&WatchParams::default(), &version).await.expect("a watch").boxed();
    let mut reflected =
        watcher(maps.clone(), watcher::Config::default().streaming_lists()).applied_objects().boxed();
    maps.create(&PostParams::default(), &config_map("a", &[])).await.expect("created");
    let patch = Patch::Merge(json!({"data": {"k": "v"}}));
    maps.patch("a", &PatchParams::default(), &patch).await.expect("patched");
    maps.delete("a", &DeleteParams::default()).await.expect("deleted");
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let event = tokio::time::timeout(SOON, events.try_next()).await.expect("in time").expect("a stream");
        match event.expect("not the end") {
            WatchEvent::Added(_) => seen.push("added"),
            WatchEvent::Modified(_) => seen.push("modified"),
            WatchEvent::Deleted(_) => seen.push("deleted"),
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(seen, ["added", "modified", "deleted"]);
    maps.create(&PostParams::default(), &config_map("b", &[])).await.expect("created");
    let found = async {
        while let Some(object) = reflected.try_next().await.expect("a stream") {
            if object.name_any() == "b" {
                return;
            }
        }
    };
    tokio::time::timeout(SOON, found).await.expect("the watcher sees it in time");
}

async fn replicas_are_scaled(client: &Client) {
    namespace(client, "scale").await;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "scale");
    let deployment = json!({
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "a:1"}]},
            },
        },
    });
    let deployment = serde_json::from_value(deployment).expect("a deployment");
    deployments.create(&PostParams::default(), &deployment).await.expect("created");
    let patch = Patch::Merge(json!({"spec": {"replicas": 4}}));
    let scale: Scale = deployments.patch_scale("d", &PatchParams::default(), &patch).await.expect("scaled");
    assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(4));
    assert_eq!(scale.status.and_then(|status| status.selector).as_deref(), Some("a=b"));
    let status =
        Patch::Merge(json!({"spec": {"replicas": 9}, "status": {"replicas": 4, "observedGeneration": 2}}));
    let after = deployments.patch_status("d", &PatchParams::default(), &status).await.expect("a status");
    assert_eq!(after.spec.and_then(|spec| spec.replicas), Some(4), "the status has no say in the spec");
    assert_eq!(
        (after.metadata.generation, after.status.and_then(|status| status.replicas)),
        (Some(2), Some(4))
    );
}

async fn services_have_addresses(client: &Client) {
    namespace(client, "services").await;
    let services: Api<Service> = Api::namespaced(client.clone(), "services");
    let service = |name: &str| {
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}))
    };
    let mut addresses = Vec::new();
    for name in ["a", "b"] {
        let service = services
            .create(&PostParams::default(), &service(name).expect("a service"))
            .await
            .expect("created");
        addresses.push(service.spec.and_then(|spec| spec.cluster_ip).expect("an address"));
    }
    assert_ne!(addresses[0], addresses[1]);
    let of_server: Api<Service> = Api::namespaced(client.clone(), "default");
    let found = async {
        while of_server.get_opt("kubernetes").await.expect("an answer").is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(SOON, found).await.expect("the server has a service of its own");
}

async fn a_namespace_ends_with_its_content(client: &Client) {
    namespace(client, "ending").await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "ending");
    for n in 0..10 {
        maps.create(&PostParams::default(), &config_map(&format!("m{n}"), &[])).await.expect("created");
    }
    let mut held = config_map("held", &[]);
    held.finalizers_mut().push("example.com/hold".to_owned());
    maps.create(&PostParams::default(), &held).await.expect("created");
    namespaces.delete("ending", &DeleteParams::default()).await.expect("begins to end");
    let refused = maps.create(&PostParams::default(), &config_map("late", &[])).await.expect_err("too late");
    assert_eq!(code(&refused), 403);
    let until = |left: usize| {
        let maps = maps.clone();
        async move {
            while maps.list(&ListParams::default()).await.expect("a list").items.len() > left {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    };
    tokio::time::timeout(SOON, until(1)).await.expect("only what is held is left");
    assert_eq!(
        namespaces.get("ending").await.expect("waits").status.and_then(|status| status.phase).as_deref(),
        Some("Terminating")
    );
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps.patch("held", &PatchParams::default(), &release).await.expect("released");
    let gone = async {
        while namespaces.get_opt("ending").await.expect("an answer").is_some() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(SOON, gone).await.expect("it is gone");
}

async fn discovery_is_complete(client: &Client) {
    let discovery = Discovery::new(client.clone()).run().await.expect("discovery");
    let groups: Vec<&str> = discovery.groups().map(kube::discovery::ApiGroup::name).collect();
    for group in ["", "apps", "batch", "networking.k8s.io", "rbac.authorization.k8s.io", "storage.k8s.io"] {
        assert!(groups.contains(&group), "{group} is missing in {groups:?}");
    }
    let version = client.apiserver_version().await.expect("a version");
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"));
}
