//! The documents about the built-in APIs, compared with those of upstream. What is left out of the comparison is listed in
//! docs/compatibility.md.

mod support;

use std::{collections::BTreeMap, fs};

use serde_json::{Map, Value, json};

use support::{everything, get, keys, specifications};

/// A schema without what is left out; a reference stands alone, however it was wrapped.
fn schema(value: &Value) -> Value {
    let Value::Object(members) = value else { return value.clone() };
    if let Some([reference]) = members.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        let mut flat = members.clone();
        flat.remove("allOf");
        flat.insert("$ref".to_owned(), reference["$ref"].clone());
        return schema(&flat.into());
    }
    // Upstream's files were written without enums, and the texts that list them.
    let known = members.iter().filter(|(name, value)| *name != "enum" || !value.is_array());
    let read = |(name, value): (&String, &Value)| {
        let value = match (name.as_str(), value) {
            ("properties", Value::Object(of)) => {
                of.iter().map(|(name, value)| (name.clone(), schema(value))).collect::<Map<_, _>>().into()
            }
            ("required", Value::Array(names)) => {
                let mut names = names.clone();
                names.sort_by_key(ToString::to_string);
                names.into()
            }
            ("description", Value::String(text)) => {
                text.split("\n\nPossible enum values:").next().unwrap_or_default().trim_end().into()
            }
            ("oneOf", Value::Array(of)) => of.iter().map(schema).collect(),
            _ => schema(value),
        };
        (name.clone(), value)
    };
    known.map(read).collect::<Map<_, _>>().into()
}

fn parameters(value: &Value, open: bool) -> Vec<Value> {
    let all = value.as_array().cloned().unwrap_or_default();
    let told = all.into_iter().filter(|parameter| !open || parameter["in"] == "path");
    told.map(|parameter| {
        json!([parameter["name"], parameter["in"], parameter["schema"], parameter["required"]])
    })
    .collect()
}

/// The schema of each media type, without CBOR and, for discovery, protobuf, which are not served.
fn content(value: &Value, discovery: bool) -> Value {
    let types = value["content"].as_object().into_iter().flatten();
    let unserved = |name: &str| discovery && name == "application/vnd.kubernetes.protobuf";
    let served = types.filter(|(name, _)| !name.contains("cbor") && !unserved(name));
    served.map(|(name, of)| (name.clone(), of["schema"].clone())).collect::<Map<_, _>>().into()
}

/// What is compared of a path.
fn path_item(path: &str, item: &Value) -> Value {
    let open = ["attach", "exec", "log", "portforward", "proxy", "proxy/{path}"];
    let open = open.iter().any(|end| path.ends_with(&format!("/{{name}}/{end}")));
    let untold = path == "/api/v1/namespaces/{name}";
    let mut read = Map::new();
    for (name, operation) in item.as_object().into_iter().flatten() {
        if name == "parameters" {
            continue;
        }
        let discovery = operation.get("x-kubernetes-action").is_none();
        let responses = operation["responses"].as_object().into_iter().flatten();
        let responses = responses.filter(|_| !(untold && name == "delete"));
        let responses: BTreeMap<_, _> = responses
            .map(|(code, response)| (code, json!([response["description"], content(response, discovery)])))
            .collect();
        let body = &operation["requestBody"];
        read.insert(
            name.clone(),
            json!({
                "id": operation["operationId"],
                "tags": operation["tags"],
                "action": operation["x-kubernetes-action"],
                "kind": operation["x-kubernetes-group-version-kind"],
                "parameters": parameters(&operation["parameters"], open),
                "body": [body["required"], content(body, discovery)],
                "responses": responses,
            }),
        );
    }
    read.insert("parameters".to_owned(), parameters(&item["parameters"], open).into());
    read.into()
}

/// Where two values differ, for people.
fn differences(at: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let names: std::collections::BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
            for name in names {
                let get = |of: &Map<String, Value>| of.get(name).cloned().unwrap_or_default();
                differences(&format!("{at} {name}"), &get(ours), &get(theirs), found);
            }
        }
        _ if ours != theirs => found.push(format!("{at}: {ours} instead of {theirs}")),
        _ => {}
    }
}

/// Without descriptions that k8s-openapi does not have, of lists, or has in a form of its own, of watch events.
fn without_own_words(name: &str, mut schema: Value) -> Value {
    let own = (name.ends_with("List") && !name.contains(".meta.v1.")) || name.ends_with(".WatchEvent");
    if own && let Value::Object(members) = &mut schema {
        members.remove("description");
        for field in members["properties"].as_object_mut().into_iter().flat_map(|fields| fields.values_mut())
        {
            field.as_object_mut().map(|field| field.remove("description"));
        }
    }
    schema
}

fn compare(key: &str, ours: &Value, theirs: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let paths = |of: &Value| -> Value {
        let items = of["paths"].as_object().into_iter().flatten();
        items.map(|(path, item)| (path.clone(), path_item(path, item))).collect::<Map<_, _>>().into()
    };
    differences(key, &paths(ours), &paths(theirs), &mut found);
    let schemas = |of: &Value| -> Value {
        let all = of["components"]["schemas"].as_object().into_iter().flatten();
        all.map(|(name, value)| (name.clone(), without_own_words(name, schema(value))))
            .collect::<Map<_, _>>()
            .into()
    };
    differences(key, &schemas(ours), &schemas(theirs), &mut found);
    assert_eq!(ours["openapi"], theirs["openapi"]);
    assert_eq!(ours["info"]["title"], theirs["info"]["title"]);
    found
}

#[tokio::test]
async fn documents_have_the_content_of_upstreams() {
    let Some(directory) = specifications() else { return };
    let openapi = everything();
    let mut found = Vec::new();
    let mut compared = 0;
    for key in keys(&openapi).await {
        let name = key.replace('/', "__");
        let Ok(text) = fs::read_to_string(directory.join(format!("v3/{name}_openapi.json"))) else {
            // A file cannot have a name that begins with a dot there.
            assert!(key.starts_with(".well-known"), "upstream has no {key}");
            continue;
        };
        let theirs = serde_json::from_str(&text).expect("JSON");
        let ours = get(&openapi, &format!("/openapi/v3/{key}")).await;
        found.extend(compare(&key, &ours, &theirs));
        compared += 1;
    }
    assert!(compared > 50, "only {compared} documents");
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}

/// What is compared of the paths of version 2: parameters have names of their own, made from their descriptions.
fn swagger_paths(document: &Value) -> Value {
    let mut read = Map::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in
            item.as_object().into_iter().flatten().filter(|(name, _)| *name != "parameters")
        {
            let untold = path == "/api/v1/namespaces/{name}" && method == "delete";
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let named = parameters.filter_map(|parameter| {
                let reference = parameter["$ref"].as_str().and_then(|name| name.split(['/', '-']).nth(2));
                reference.or_else(|| parameter["name"].as_str())
            });
            let connects = operation["x-kubernetes-action"] == "connect" || path.ends_with("/log");
            let named: Vec<&str> = if connects { Vec::new() } else { named.collect() };
            let read_operation = json!({
                "id": operation["operationId"],
                "tags": operation["tags"],
                "action": operation["x-kubernetes-action"],
                "kind": operation["x-kubernetes-group-version-kind"],
                "parameters": named,
                "schemes": operation["schemes"],
                "responses": if untold { Value::Null } else { operation["responses"].clone() },
            });
            read.insert(format!("{method} {path}"), read_operation);
        }
    }
    read.into()
}

#[tokio::test]
async fn version_2_has_the_content_of_upstreams() {
    let Some(directory) = specifications() else { return };
    let text = fs::read_to_string(directory.join("swagger.json")).expect("upstream's document");
    let mut theirs: Value = serde_json::from_str(&text).expect("JSON");
    let ours = get(&everything(), "/openapi/v2").await;
    let definitions = |of: &Value| -> Value {
        let all = of["definitions"].as_object().into_iter().flatten();
        // Which versions there are, besides those that are served, is of no use here.
        let all = all.filter(|(name, _)| !name.ends_with(".DeleteOptions") && !name.ends_with(".WatchEvent"));
        all.map(|(name, value)| (name.clone(), without_own_words(name, schema(value))))
            .collect::<Map<_, _>>()
            .into()
    };
    // The handler for logs is not there; it is not by default upstream, either.
    let paths = theirs["paths"].as_object_mut().expect("paths");
    paths.retain(|path, _| !path.starts_with("/logs"));
    let mut found = Vec::new();
    differences("definitions", &definitions(&ours), &definitions(&theirs), &mut found);
    differences("paths", &swagger_paths(&ours), &swagger_paths(&theirs), &mut found);
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}
