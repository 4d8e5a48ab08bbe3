//! Definitions with several versions, and schemas that change.

use http::{Request, header::WARNING};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{define, gadget, gadgets, kind, version};

fn with_size(mut version: Value, default: &str) -> Value {
    // As upstream, what all versions have in common needs a schema that they have in common, too.
    version["selectableFields"] = json!([]);
    let size = json!({"type": "string", "default": default});
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"] = size;
    version
}

/// Objects of an old version, and of an old schema, are read as the definition says now. Defaults are those of the version
/// that an object is stored in.
pub(super) async fn a_definition_changes(client: &Client) {
    let group = "changing.example.com";
    define(client, &gadgets(group, &json!([version("v1alpha1", true)]))).await;
    let alpha = kind(group, "v1alpha1", "Gadget");
    let old: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &alpha);
    let one = gadget(&alpha, "one", &json!({"color": "green"}));
    old.create(&PostParams::default(), &one).await.expect("created");

    let versions = [with_size(version("v1alpha1", false), "tiny"), with_size(version("v1", true), "small")];
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let patch = Patch::Merge(json!({"spec": {"versions": versions}}));
    let name = format!("gadgets.{group}");
    let changed = definitions.patch(&name, &PatchParams::default(), &patch).await.expect("changed");
    let stored = changed.status.and_then(|status| status.stored_versions).unwrap_or_default();
    assert_eq!(stored, ["v1alpha1", "v1"]);

    let v1 = kind(group, "v1", "Gadget");
    let new: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &v1);
    // A client that has read of a change finds it served.
    let object = new.get("one").await.expect("served");
    assert_eq!(object.types.expect("typed").api_version, format!("{group}/v1"));
    assert_eq!(object.data["spec"]["size"], "tiny", "it was stored as v1alpha1");

    let two = gadget(&alpha, "two", &json!({"color": "red", "size": "huge"}));
    let made = old.create(&PostParams::default(), &two).await.expect("created");
    assert_eq!(made.types.expect("typed").api_version, format!("{group}/v1alpha1"));
    assert_eq!(new.get("two").await.expect("there").data["spec"]["size"], "huge");
}

pub(super) async fn a_status_has_its_default_from_the_start(client: &Client) {
    let group = "statuses.example.com";
    let mut with_default = version("v1", true);
    with_default["schema"]["openAPIV3Schema"]["properties"]["status"]["default"] = json!({"replicas": 0});
    define(client, &gadgets(group, &json!([with_default]))).await;
    let resource = kind(group, "v1", "Gadget");
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    let mut one = gadget(&resource, "one", &json!({"color": "red"}));
    one.data["status"] = json!({"replicas": 9});
    let made = api.create(&PostParams::default(), &one).await.expect("created");
    assert_eq!(made.data["status"], json!({"replicas": 0}), "what the client says of it does not count");
    assert_eq!(api.get("one").await.expect("there").data["status"], json!({"replicas": 0}));
}

pub(super) async fn clients_of_old_versions_are_warned(client: &Client) {
    let group = "deprecated.example.com";
    let mut beta = version("v1beta1", false);
    beta["deprecated"] = json!(true);
    let mut custom = version("v1alpha1", false);
    custom["deprecated"] = json!(true);
    custom["deprecationWarning"] = json!("do not");
    define(client, &gadgets(group, &json!([custom, beta, version("v1", true)]))).await;
    let instead = format!("299 - \"{group}/v1beta1 Gadget is deprecated; use {group}/v1 Gadget\"");
    for (version, expected) in
        [("v1", None), ("v1beta1", Some(&*instead)), ("v1alpha1", Some("299 - \"do not\""))]
    {
        let path = format!("/apis/{group}/{version}/namespaces/default/gadgets");
        let request = Request::get(path).body(kube::client::Body::empty()).expect("a request");
        let answer = client.send(request).await.expect("an answer");
        let warning = answer.headers().get(WARNING).map(|value| value.to_str().expect("text"));
        assert_eq!((answer.status().as_u16(), warning), (200, expected), "{version}");
    }
}
