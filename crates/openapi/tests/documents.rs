//! What holds for every document about the built-in APIs.

mod support;

use std::collections::BTreeSet;

use serde_json::Value;

use support::{everything, get, keys};

/// Everything that a document refers to.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                found.insert(reference.clone());
            }
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn operations(document: &Value) -> impl Iterator<Item = (&String, &String, &Value, &Value)> {
    let paths = document["paths"].as_object().expect("paths");
    paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().expect("a path item").iter();
        let methods = methods.filter(|(method, _)| *method != "parameters");
        methods.map(move |(method, operation)| (path, method, operation, item))
    })
}

fn check_operations(key: &str, document: &Value) {
    let mut ids = BTreeSet::new();
    for (path, method, operation, item) in operations(document) {
        let id = operation["operationId"].as_str().expect("an id");
        assert!(ids.insert(id), "{key}: {id} is there twice");
        assert!(operation["responses"]["401"].is_object(), "{key} {path} {method}");
        assert_eq!(operation["tags"].as_array().map(Vec::len), Some(1), "{key} {path} {method}");
        let of = |value: &Value| value["parameters"].as_array().cloned().unwrap_or_default();
        let given: Vec<Value> = of(item).into_iter().chain(of(operation)).collect();
        let named: BTreeSet<(&str, &str)> = given
            .iter()
            .filter_map(|parameter| Some((parameter["in"].as_str()?, parameter["name"].as_str()?)))
            .collect();
        let parts = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        for part in parts {
            // Version 2 refers to what is used in many places.
            let shared = given.iter().any(|parameter| {
                parameter["$ref"].as_str().is_some_and(|name| name.contains(&format!("/{part}-")))
            });
            assert!(shared || named.contains(&("path", part)), "{key} {path} {method}: {part}");
        }
    }
}

fn check_references(key: &str, document: &Value) {
    let mut found = BTreeSet::new();
    references(document, &mut found);
    for reference in &found {
        let path = reference.strip_prefix('#').expect("a reference within the document");
        assert!(document.pointer(path).is_some_and(Value::is_object), "{key}: {reference}");
    }
    for (place, prefix) in [
        ("/components/schemas", "#/components/schemas/"),
        ("/definitions", "#/definitions/"),
        ("/parameters", "#/parameters/"),
    ] {
        let defined = document.pointer(place).and_then(Value::as_object);
        for name in defined.into_iter().flat_map(|defined| defined.keys()) {
            assert!(found.contains(&format!("{prefix}{name}")), "{key}: nothing refers to {name}");
        }
    }
}

/// No member stands beside a reference.
fn check_siblings(key: &str, value: &Value) {
    match value {
        Value::Object(members) => {
            let alone = members.len() == 1 || !members.get("$ref").is_some_and(Value::is_string);
            assert!(alone, "{key}: {value}");
            members.values().for_each(|member| check_siblings(key, member));
        }
        Value::Array(items) => items.iter().for_each(|item| check_siblings(key, item)),
        _ => {}
    }
}

#[tokio::test]
async fn every_document_is_whole() {
    let openapi = everything();
    for key in keys(&openapi).await {
        let document = get(&openapi, &format!("/openapi/v3/{key}")).await;
        assert!(document["components"].is_object(), "{key}");
        check_operations(&key, &document);
        check_references(&key, &document);
        check_siblings(&key, &document);
        let text = document.to_string();
        assert!(!text.contains("#/definitions/") && !text.contains("\"in\":\"body\""), "{key}");
    }
    let document = get(&openapi, "/openapi/v2").await;
    check_operations("v2", &document);
    check_references("v2", &document);
    assert!(!document.to_string().contains("#/components/"));
}

#[tokio::test]
async fn every_field_has_a_description() {
    let openapi = everything();
    let document = get(&openapi, "/openapi/v3/apis/apps/v1").await;
    let deployment = &document["components"]["schemas"]["io.k8s.api.apps.v1.DeploymentSpec"];
    for (name, field) in deployment["properties"].as_object().expect("fields") {
        assert!(field["description"].as_str().is_some_and(|text| text.len() > 20), "{name}: {field}");
    }
    let pull_policy =
        &document["components"]["schemas"]["io.k8s.api.core.v1.Container"]["properties"]["imagePullPolicy"];
    assert_eq!(pull_policy["enum"], serde_json::json!(["Always", "IfNotPresent", "Never"]));
    assert!(pull_policy["description"].as_str().is_some_and(|text| text.contains("\n - `\"Never\"`")));
    let v2 = get(&openapi, "/openapi/v2").await;
    assert_eq!(
        v2["definitions"]["io.k8s.api.core.v1.Container"]["properties"]["imagePullPolicy"],
        *pull_policy
    );
}
