//! Definitions and objects that are large, deep or expensive: answered as kube-apiserver does, in bounded time.

use std::time::Duration;

use http::{Request, header::CONTENT_TYPE};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{DynamicObject, PostParams},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{define, gadget, gadgets, kind, refusal};
use crate::support::SOON;

fn definition(group: &str, spec: &Value) -> CustomResourceDefinition {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    gadgets(group, &json!([version]))
}

/// What a definition is refused with.
async fn refused(client: &Client, group: &str, spec: &Value) -> String {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let refused = api.create(&PostParams::default(), &definition(group, spec)).await;
    refusal(refused.expect_err("refused")).message
}

/// Defines a kind and makes an object of it.
async fn made(client: &Client, group: &str, schema: &Value, spec: &Value) -> Result<DynamicObject, String> {
    define(client, &definition(group, schema)).await;
    let resource = kind(group, "v1", "Gadget");
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    let made = api.create(&PostParams::default(), &gadget(&resource, "one", spec)).await;
    made.map_err(|error| refusal(error).message)
}

/// 200 of these, one in another.
fn levels(innermost: &str, begin: &str, end: &str) -> String {
    format!("{}{innermost}{}", begin.repeat(200), end.repeat(200))
}

async fn post(client: &Client, path: &str, body: String) -> Result<String, kube::Error> {
    let request = Request::post(path).header(CONTENT_TYPE, "application/json").body(body.into_bytes());
    client.request_text(request.expect("a request")).await
}

/// As text: clients of this language do not read what is so deep.
async fn deep_schemas_are_taken(client: &Client) {
    let schema = levels(r#"{"type":"string"}"#, r#"{"type":"object","properties":{"a":"#, "}}");
    let version = format!(
        r#"{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{{"type":"object","properties":{{"spec":{schema}}}}}}}}}"#
    );
    let definition = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"gadgets.deep.example.com"}},"spec":{{"group":"deep.example.com","scope":"Namespaced","names":{{"plural":"gadgets","kind":"Gadget"}},"versions":[{version}]}}}}"#
    );
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    post(client, definitions, definition).await.expect("200 levels are taken");
    let spec = levels(r#""x""#, r#"{"a":"#, "}");
    let object = format!(
        r#"{{"apiVersion":"deep.example.com/v1","kind":"Gadget","metadata":{{"name":"one"}},"spec":{spec}}}"#
    );
    let made = async {
        loop {
            match post(client, "/apis/deep.example.com/v1/namespaces/default/gadgets", object.clone()).await {
                Ok(made) => return made,
                Err(error) => assert_eq!(refusal(error).code, 404, "its names are not accepted yet"),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let made = timeout(SOON, made).await.expect("served");
    assert!(made.contains(&spec));
}

/// The record of who owns what is deeper than the object itself.
async fn the_deepest_object_can_be_shown(client: &Client) {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    made(client, "deepest.example.com", &anything, &json!({})).await.expect("nothing special");
    let path = "/apis/deepest.example.com/v1/namespaces/default/gadgets";
    let spec = format!("{}1{}", r#"{"a":"#.repeat(499), "}".repeat(499));
    let object = format!(
        r#"{{"apiVersion":"deepest.example.com/v1","kind":"Gadget","metadata":{{"name":"deep"}},"spec":{spec}}}"#
    );
    post(client, path, object).await.expect("500 levels are taken");
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let request = Request::get(format!("{path}?includeObject=None")).header("accept", table).body(Vec::new());
    let shown = client.request_text(request.expect("a request")).await.expect("a table");
    assert!(shown.contains(r#""deep""#), "{shown}");
}

pub(super) async fn what_is_too_much_is_refused_in_time(client: &Client) {
    let long = json!({"type": "object", "description": "d".repeat(1_400_000)});
    made(client, "long.example.com", &long, &json!({})).await.expect("1.4 MiB are taken");

    deep_schemas_are_taken(client).await;
    the_deepest_object_can_be_shown(client).await;

    let names: Vec<String> = (0..5000).map(|number| format!("p{number}")).collect();
    let of = |value: Value| -> Value { names.iter().map(|name| (name.clone(), value.clone())).collect() };
    let wide = json!({"type": "object", "properties": of(json!({"type": "string"}))});
    made(client, "wide.example.com", &wide, &of(json!("v"))).await.expect("5,000 properties are taken");

    let pattern = json!({"type": "string", "pattern": "^(a*)*(a|aa)+$"});
    let text = format!("{}b", "a".repeat(50_000));
    let message = made(client, "patterns.example.com", &pattern, &json!(text)).await.expect_err("no match");
    assert!(message.ends_with("should match '^(a*)*(a|aa)+$'"), "{}", &message[message.len() - 80..]);
    let repeated = json!({"type": "string", "pattern": "((a{100}){100}){100}"});
    let message = refused(client, "repeated.example.com", &repeated).await;
    assert!(message.ends_with("error parsing regexp: invalid repeat count: `{100}`"), "{message}");
    let message = refused(client, "references.example.com", &json!({"$ref": "#/properties/spec"})).await;
    assert!(message.contains("$ref: Forbidden: $ref is not supported"), "{message}");

    let rule = "self.l.all(x, self.l.all(y, x <= y || y <= x))";
    let with_rule = |list: Value| json!({"type": "object", "properties": {"l": list}, "x-kubernetes-validations": [{"rule": rule}]});
    let list = json!({"type": "array", "items": {"type": "integer"}});
    let message = refused(client, "unbounded.example.com", &with_rule(list)).await;
    assert!(message.contains("estimated rule cost exceeds budget by factor of more than 100x"), "{message}");
    let list = json!({"type": "array", "maxItems": 1000, "items": {"type": "integer"}});
    let numbers: Vec<u32> = (0..1000).collect();
    let message = made(client, "costly.example.com", &with_rule(list), &json!({"l": numbers})).await;
    let expected =
        format!("no further validation rules will be run due to call cost exceeds limit for rule: {rule}");
    assert!(message.expect_err("too expensive").ends_with(&expected));

    let text = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let message = made(client, "large.example.com", &text, &json!({"a": "x".repeat(3 << 20)})).await;
    assert_eq!(message.expect_err("too large"), "Request entity too large: limit is 3145728");
}

/// A thousand patterns, each of which would be an automaton of ten megabytes.
pub(super) async fn large_patterns_keep_nobody_waiting(client: &Client) {
    let names: Vec<String> = (0..1000).map(|number| format!("p{number}")).collect();
    let pattern =
        |number: usize| json!({"type": "string", "pattern": format!("^\\pL{{200,{}}}$", 201 + number % 700)});
    let properties = names.iter().enumerate().map(|(number, name)| (name.clone(), pattern(number)));
    let schema = json!({"type": "object", "properties": properties.collect::<Value>()});
    let letters = "é".repeat(200);
    let object: Value = names.iter().map(|name| (name.clone(), json!(letters))).collect();
    let work = made(client, "large-patterns.example.com", &schema, &object);
    let other = async {
        let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(client.clone(), "default");
        loop {
            // The automata would take minutes.
            timeout(Duration::from_secs(20), pods.list(&kube::api::ListParams::default()))
                .await
                .expect("others are answered meanwhile")
                .expect("a list");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        made = timeout(SOON, work) => drop(made.expect("in time").expect("all of them match")),
        () = other => {}
    }
}
