//! Custom resources through the kube client: defined, used and gone again.

mod churn;
mod controller;
mod conversion;
mod limits;
mod servers;
mod shown;
mod unreadable;
mod versions;
mod watches;

use std::{path::Path, time::Duration};

use crate::support::{Program, SOON, client, client_that_asks_once};
use concord_testing::etcd::Cluster;
use futures_util::StreamExt as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, Error, ResourceExt as _,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
        PostParams, WatchEvent, WatchParams,
    },
    core::Status,
    runtime::{conditions::is_crd_established, wait::await_condition},
};
use serde_json::{Value, json};
use tempfile::tempdir;
use tokio::time::timeout;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_the_embedded_store() {
    let data = tempdir().expect("a directory");
    let server = Program::start(data.path()).await;
    server.ready(200).await;
    Box::pin(all(data.path())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_etcd() {
    let etcd = Cluster::single().await.expect("an etcd");
    let data = tempdir().expect("a directory");
    let servers = format!("--etcd-servers={}", etcd.endpoints().join(","));
    let server = Program::start_with(data.path(), &[&servers]).await;
    server.ready(200).await;
    Box::pin(all(data.path())).await;
}

async fn all(data: &Path) {
    let (client, once) = (&client(data).await, &client_that_asks_once(data).await);
    tokio::join!(
        a_kind_is_defined_and_used(client),
        controller::a_controller_does_its_work(client),
        churn::nothing_is_lost_while_definitions_change(client),
        limits::what_is_too_much_is_refused_in_time(client),
        conversion::objects_are_converted_by_a_webhook(client, once),
        limits::large_patterns_keep_nobody_waiting(client),
        shown::a_kind_is_shown_by_all_its_names(client),
        versions::a_definition_changes(client),
        versions::a_status_has_its_default_from_the_start(client),
        versions::clients_of_old_versions_are_warned(client),
        watches::watches_end_with_their_definition(client),
        bad_definitions_are_refused(client),
        names_are_given_once(client),
        a_definition_that_waits_keeps_no_other_waiting(client),
        built_in_groups_stay_as_they_are(client),
    );
}

fn kind(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// A definition with a schema that has defaults, limits and a list that is a map.
fn gadgets(group: &str, versions: &Value) -> CustomResourceDefinition {
    serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("gadgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "gadgets", "kind": "Gadget", "shortNames": ["gd"]},
            "versions": versions,
        },
    }))
    .expect("a definition")
}

fn version(name: &str, storage: bool) -> Value {
    json!({
        "name": name, "served": true, "storage": storage,
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
        "additionalPrinterColumns": [{"name": "Color", "type": "string", "jsonPath": ".spec.color"}],
        "selectableFields": [{"jsonPath": ".spec.color"}],
        "schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object", "required": ["color"],
                    "x-kubernetes-validations": [
                        {"rule": "self.color != 'green' || self.replicas < 5", "message": "few may be green"},
                        {"rule": "self.color == oldSelf.color", "message": "color is immutable", "fieldPath": ".color"},
                    ],
                    "properties": {
                        "color": {"type": "string", "enum": ["red", "green"]},
                        "replicas": {"type": "integer", "minimum": 0, "default": 1},
                        "ports": {
                            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                            "items": {
                                "type": "object", "required": ["name"],
                                "properties": {"name": {"type": "string"}, "port": {"type": "integer"}},
                            },
                        },
                    },
                },
                "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
            },
        }},
    })
}

async fn define(client: &Client, definition: &CustomResourceDefinition) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    api.create(&PostParams::default(), definition).await.expect("a definition");
    let name = definition.name_any();
    let established = await_condition(api, &name, is_crd_established());
    timeout(SOON, established).await.expect("in time").expect("established");
}

fn gadget(resource: &ApiResource, name: &str, spec: &Value) -> DynamicObject {
    let mut object = DynamicObject::new(name, resource);
    object.data = json!({"spec": spec});
    object
}

fn refusal(error: Error) -> Box<Status> {
    match error {
        Error::Api(status) => status,
        other => panic!("not a refusal: {other}"),
    }
}

async fn a_kind_is_defined_and_used(client: &Client) {
    let group = "used.example.com";
    define(client, &gadgets(group, &json!([version("v1", true)]))).await;
    let resource = kind(group, "v1", "Gadget");
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    let params = PostParams::default();

    let spec = json!({"color": "red", "unknown": 1, "ports": [{"name": "a", "port": 1}]});
    let mut one = gadget(&resource, "one", &spec);
    one.data["status"] = json!({"replicas": 9});
    let made = api.create(&params, &one).await.expect("created");
    let expected = json!({"color": "red", "replicas": 1, "ports": [{"name": "a", "port": 1}]});
    assert_eq!(made.data, json!({"spec": expected}), "pruned, with defaults, and without a status");
    assert_eq!(made.metadata.generation, Some(1));

    let bad = gadget(&resource, "two", &json!({"color": "blue", "replicas": "many"}));
    let status = refusal(api.create(&params, &bad).await.expect_err("bad"));
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    for text in [
        "spec.color: Unsupported value: \"blue\": supported values: \"red\", \"green\"",
        "spec.replicas: Invalid value: \"string\": spec.replicas in body must be of type integer: \"string\"",
    ] {
        assert!(status.message.contains(text), "{}", status.message);
    }

    let bad = gadget(&resource, "two", &json!({"color": "green", "replicas": 9}));
    let status = refusal(api.create(&params, &bad).await.expect_err("a rule is broken"));
    assert!(status.message.ends_with("spec: Invalid value: few may be green"), "{}", status.message);
    let patch = Patch::Merge(json!({"spec": {"color": "green"}}));
    let status =
        refusal(api.patch("one", &PatchParams::default(), &patch).await.expect_err("a rule is broken"));
    assert!(status.message.ends_with("color is immutable"), "{}", status.message);
    status_and_scale_have_doors_of_their_own(&api).await;
    apply_merges_lists_by_their_keys(&api, &resource).await;

    let red = ListParams::default().fields("spec.color=red");
    assert_eq!(api.list(&red).await.expect("a list").items.len(), 1);
    let green = ListParams::default().fields("spec.color=green");
    assert_eq!(api.list(&green).await.expect("a list").items.len(), 0);
    the_definition_takes_its_objects_along(client, group, &api).await;
}

async fn status_and_scale_have_doors_of_their_own(api: &Api<DynamicObject>) {
    let patch = json!({"status": {"replicas": 3}, "spec": {"color": "green"}});
    let changed =
        api.patch_status("one", &PatchParams::default(), &Patch::Merge(&patch)).await.expect("changed");
    assert_eq!(
        (&changed.data["status"]["replicas"], &changed.data["spec"]["color"]),
        (&json!(3), &json!("red"))
    );
    assert_eq!(changed.metadata.generation, Some(1));
    let patch = json!({"spec": {"replicas": 4}});
    let scale = api.patch_scale("one", &PatchParams::default(), &Patch::Merge(&patch)).await.expect("scaled");
    let replicas = (scale.spec.expect("spec").replicas, scale.status.expect("status").replicas);
    assert_eq!(replicas, (Some(4), 3));
    assert_eq!(api.get("one").await.expect("there").metadata.generation, Some(2));
}

async fn apply_merges_lists_by_their_keys(api: &Api<DynamicObject>, resource: &ApiResource) {
    let config = gadget(resource, "one", &json!({"color": "red", "ports": [{"name": "b", "port": 2}]}));
    let params = PatchParams::apply("tests");
    let applied = api.patch("one", &params, &Patch::Apply(&config)).await.expect("applied");
    let ports = json!([{"name": "a", "port": 1}, {"name": "b", "port": 2}]);
    assert_eq!(applied.data["spec"]["ports"], ports);
    let again = api.patch("one", &params, &Patch::Apply(&config)).await.expect("applied");
    assert_eq!(applied.metadata.resource_version, again.metadata.resource_version);
}

async fn the_definition_takes_its_objects_along(client: &Client, group: &str, api: &Api<DynamicObject>) {
    let since = api.list(&ListParams::default()).await.expect("a list").metadata.resource_version;
    let watched = api.watch(&WatchParams::default(), &since.unwrap_or_default()).await.expect("a watch");
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = format!("gadgets.{group}");
    let deleted = definitions.delete(&name, &DeleteParams::default()).await.expect("deleted");
    assert!(
        deleted.left().is_some_and(|object| object.metadata.deletion_timestamp.is_some()),
        "it takes a while"
    );
    let gone = async {
        let mut events = Box::pin(watched);
        while let Some(Ok(event)) = events.next().await {
            if let WatchEvent::Deleted(object) = event {
                return object.name_any();
            }
        }
        String::new()
    };
    assert_eq!(timeout(SOON, gone).await.expect("in time"), "one");
    let ended = async {
        while definitions.get_opt(&name).await.expect("an answer").is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, ended).await.expect("the definition goes last");
    let status = refusal(api.list(&ListParams::default()).await.expect_err("not served"));
    assert_eq!(status.code, 404);
}

async fn bad_definitions_are_refused(client: &Client) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let group = "bad.example.com";
    let mut definition = gadgets(group, &json!([version("v1", true), version("v2", true)]));
    definition.metadata.name = Some("wrong".to_owned());
    let schema =
        definition.spec.versions[0].schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut());
    let spec = schema.and_then(|schema| schema.properties.as_mut()?.get_mut("spec")).expect("a schema");
    spec.x_kubernetes_validations.as_mut().expect("rules")[0].rule = "self.colour == 'red'".to_owned();
    let status = refusal(api.create(&PostParams::default(), &definition).await.expect_err("bad"));
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    for text in [
        "metadata.name: Invalid value: \"wrong\": must be spec.names.plural+\".\"+spec.group",
        "must have exactly one version marked as storage version",
        "compilation failed: ERROR: <input>:1:5: undefined field 'colour'",
    ] {
        assert!(status.message.contains(text), "{}", status.message);
    }
}

async fn names_are_given_once(client: &Client) {
    let group = "names.example.com";
    define(client, &gadgets(group, &json!([version("v1", true)]))).await;
    let mut other = gadgets(group, &json!([version("v1", true)]));
    other.metadata.name = Some(format!("gizmos.{group}"));
    other.spec.names.plural = "gizmos".to_owned();
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    api.create(&PostParams::default(), &other).await.expect("a definition");
    let told = |definition: Option<&CustomResourceDefinition>| {
        let conditions = definition.and_then(|definition| definition.status.as_ref()?.conditions.as_ref());
        conditions.is_some_and(|conditions| {
            conditions.iter().any(|given| given.type_ == "NamesAccepted" && given.status == "False")
        })
    };
    let name = format!("gizmos.{group}");
    timeout(SOON, await_condition(api.clone(), &name, told)).await.expect("in time").expect("told");
    // What the first one leaves is free for the second.
    api.delete(&format!("gadgets.{group}"), &DeleteParams::default()).await.expect("deleted");
    let established = await_condition(api, &name, is_crd_established());
    timeout(SOON, established).await.expect("in time").expect("established");
}

async fn a_definition_that_waits_keeps_no_other_waiting(client: &Client) {
    let group = "waiting.example.com";
    define(client, &gadgets(group, &json!([version("v1", true)]))).await;
    let resource = kind(group, "v1", "Gadget");
    let objects: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    let mut held = gadget(&resource, "held", &json!({"color": "red"}));
    held.metadata.finalizers = Some(vec!["example.com/hold".to_owned()]);
    objects.create(&PostParams::default(), &held).await.expect("created");
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = format!("gadgets.{group}");
    api.delete(&name, &DeleteParams::default()).await.expect("being deleted");

    let mut other = gadgets(group, &json!([version("v1", true)]));
    other.metadata.name = Some(format!("gizmos.{group}"));
    other.spec.names.plural = "gizmos".to_owned();
    other.spec.names.kind = "Gizmo".to_owned();
    other.spec.names.short_names = None;
    define(client, &other).await;
    let status = refusal(
        objects
            .create(&PostParams::default(), &gadget(&resource, "new", &json!({"color": "red"})))
            .await
            .expect_err("late"),
    );
    let refused = format!(
        "gadgets.{group} \"new\" is forbidden: create not allowed while custom resource definition is terminating"
    );
    assert_eq!((status.code, &*status.message), (403, &*refused));
    let told = |definition: Option<&CustomResourceDefinition>| {
        let conditions = definition.and_then(|definition| definition.status.as_ref()?.conditions.as_ref());
        conditions.into_iter().flatten().any(|condition| {
            let said = (&*condition.type_, &*condition.status, condition.reason.as_deref());
            said == ("Terminating", "True", Some("InstanceDeletionInProgress"))
        })
    };
    timeout(SOON, await_condition(api.clone(), &name, told)).await.expect("in time").expect("told");

    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    objects.patch("held", &PatchParams::default(), &release).await.expect("released");
    let ended = async {
        while api.get_opt(&name).await.expect("an answer").is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, ended).await.expect("it goes when its object has gone");
}

async fn built_in_groups_stay_as_they_are(client: &Client) {
    let group = "networking.k8s.io";
    let mut definition = gadgets(group, &json!([version("v1", true)]));
    let approved = ("api-approved.kubernetes.io".to_owned(), "unapproved, a test".to_owned());
    definition.metadata.annotations = Some([approved].into());
    define(client, &definition).await;
    let policies = Api::<DynamicObject>::all_with(client.clone(), &kind(group, "v1", "NetworkPolicy"));
    policies.list(&ListParams::default()).await.expect("still served");
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = definition.name_any();
    api.delete(&name, &DeleteParams::default()).await.expect("being deleted");
    let ended = async {
        while api.get_opt(&name).await.expect("an answer").is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, ended).await.expect("it goes");
    policies.list(&ListParams::default()).await.expect("still served");
}
