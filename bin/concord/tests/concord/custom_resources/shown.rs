//! How discovery shows a custom resource.

use http::Request;
use kube::Client;
use serde_json::{Value, json};

use super::{define, gadgets, version};

pub(super) async fn a_kind_is_shown_by_all_its_names(client: &Client) {
    let group = "shown.example.com";
    let mut definition = gadgets(group, &json!([version("v1", true)]));
    definition.spec.names.categories = Some(vec!["toys".to_owned()]);
    define(client, &definition).await;
    let request = Request::get(format!("/apis/{group}/v1")).body(Vec::new()).expect("a request");
    let found: Value = client.request(request).await.expect("discovery");
    let expected = json!([
        {
            "name": "gadgets", "singularName": "gadget", "namespaced": true, "kind": "Gadget",
            "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
            "shortNames": ["gd"], "categories": ["toys"], "storageVersionHash": "OvnsO8rsX9A=",
        },
        {
            "name": "gadgets/status", "singularName": "", "namespaced": true, "kind": "Gadget",
            "verbs": ["get", "patch", "update"],
        },
        {
            "name": "gadgets/scale", "singularName": "", "namespaced": true, "group": "autoscaling", "version": "v1",
            "kind": "Scale", "verbs": ["get", "patch", "update"],
        },
    ]);
    assert_eq!(found["resources"], expected);
}
