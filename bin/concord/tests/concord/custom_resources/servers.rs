//! Definitions that one server changes while others serve what they define.

use std::time::Duration;

use concord_testing::etcd::Cluster;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tempfile::tempdir;
use tokio::time::timeout;

use super::{define, gadget, gadgets, kind, refusal};
use crate::support::{Program, SOON, client};

const GROUP: &str = "everywhere.example.com";

/// A version whose schema says by a default which schema it is.
fn version(name: &str, storage: bool, schema: i64) -> Value {
    let spec = json!({"type": "object", "properties": {"schema": {"type": "integer", "default": schema}}});
    json!({
        "name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    })
}

/// The generation of the definition that a client can read, if there is any.
async fn generation(client: &Client) -> Option<i64> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let found = api.get_opt(&format!("gadgets.{GROUP}")).await.expect("an answer");
    found.and_then(|definition| definition.metadata.generation)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_several_servers() {
    let etcd = Cluster::single().await.expect("an etcd");
    let servers = format!("--etcd-servers={}", etcd.endpoints().join(","));
    let data = [tempdir().expect("a directory"), tempdir().expect("a directory")];
    let mut running = Vec::new();
    for (data, id) in data.iter().zip(["--server-id=here", "--server-id=there"]) {
        let server = Program::start_with(data.path(), &[&servers, id]).await;
        server.ready(200).await;
        running.push(server);
    }
    let (here, there) = (client(data[0].path()).await, client(data[1].path()).await);
    tokio::join!(
        a_change_is_in_force_wherever_it_can_be_read(&here, &there),
        a_name_is_given_once(&here, &there)
    );
}

/// What a server shows of a change is what it acts by: no request that begins after somebody could have read of it there
/// meets what was before.
async fn a_change_is_in_force_wherever_it_can_be_read(here: &Client, there: &Client) {
    define(here, &gadgets(GROUP, &json!([version("v1", true, 0)]))).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(here.clone());
    let name = format!("gadgets.{GROUP}");
    for schema in 1..=20 {
        let added = format!("v{}", schema + 1);
        let versions =
            json!([version("v1", schema % 2 == 0, schema), version(&added, schema % 2 == 1, schema)]);
        let stored = json!({"status": {"storedVersions": ["v1"]}});
        let patch = Patch::Merge(json!({"spec": {"versions": versions}}));
        let changed = definitions.patch(&name, &PatchParams::default(), &patch).await.expect("changed");
        // A get is never older than what was acknowledged before it was asked for.
        assert_eq!(generation(there).await, changed.metadata.generation);
        for version in ["v1", added.as_str()] {
            let resource = kind(GROUP, version, "Gadget");
            let api: Api<DynamicObject> = Api::namespaced_with(there.clone(), "default", &resource);
            let object = gadget(&resource, &format!("{version}-{schema}"), &json!({}));
            let made = api.create(&PostParams::default(), &object).await.expect("served");
            assert_eq!(made.data["spec"]["schema"], schema, "{version}");
        }
        if schema > 1 {
            let resource = kind(GROUP, &format!("v{schema}"), "Gadget");
            let api: Api<DynamicObject> = Api::namespaced_with(there.clone(), "default", &resource);
            assert_eq!(
                refusal(api.list(&ListParams::default()).await.expect_err("it was taken away")).code,
                404
            );
        }
        // So that the version can be taken away next time.
        if schema % 2 == 1 {
            let back = json!([version("v1", true, schema), version(&added, false, schema)]);
            let patch = Patch::Merge(json!({"spec": {"versions": back}}));
            definitions.patch(&name, &PatchParams::default(), &patch).await.expect("changed");
            let params = PatchParams::default();
            definitions.patch_status(&name, &params, &Patch::Merge(stored)).await.expect("changed");
        }
    }
    definitions.delete(&name, &DeleteParams::default()).await.expect("being deleted");
    let gone = async {
        while generation(there).await.is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, gone).await.expect("it goes");
    let api: Api<DynamicObject> =
        Api::namespaced_with(there.clone(), "default", &kind(GROUP, "v1", "Gadget"));
    assert_eq!(refusal(api.list(&ListParams::default()).await.expect_err("it is gone")).code, 404);
}

/// Who was told of a conflict, and who was not.
fn is_accepted(definition: &CustomResourceDefinition) -> Option<bool> {
    let conditions = definition.status.as_ref()?.conditions.as_ref()?;
    let names = conditions.iter().find(|condition| condition.type_ == "NamesAccepted")?;
    Some(names.status == "True")
}

/// Two servers are asked at the same time for the same kind, by definitions that do not know of each other.
async fn a_name_is_given_once(here: &Client, there: &Client) {
    let group = "contended.example.com";
    let definitions: [Api<CustomResourceDefinition>; 2] = [Api::all(here.clone()), Api::all(there.clone())];
    for round in 0..5 {
        let wanted = ["one", "two"].map(|plural| {
            let mut definition = gadgets(group, &json!([version("v1", true, round)]));
            definition.metadata.name = Some(format!("{plural}{round}.{group}"));
            definition.spec.names.plural = format!("{plural}{round}");
            definition.spec.names.short_names = None;
            definition
        });
        let params = PostParams::default();
        let (one, two) = tokio::join!(
            definitions[0].create(&params, &wanted[0]),
            definitions[1].create(&params, &wanted[1])
        );
        one.and(two).expect("both are made");
        let decided = async {
            loop {
                let mut told = Vec::new();
                for (api, definition) in definitions.iter().zip(&wanted) {
                    told.push(is_accepted(&api.get(&definition.name_any()).await.expect("there")));
                }
                told.sort();
                if told == [Some(false), Some(true)] {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(SOON, decided).await.expect("one of them gets the name");
        for definition in &wanted {
            definitions[0]
                .delete(&definition.name_any(), &DeleteParams::default())
                .await
                .expect("being deleted");
        }
        let gone = async {
            while !definitions[0]
                .list(&ListParams::default())
                .await
                .expect("a list")
                .items
                .iter()
                .all(|definition| definition.spec.group != group)
            {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(SOON, gone).await.expect("both go");
    }
}
