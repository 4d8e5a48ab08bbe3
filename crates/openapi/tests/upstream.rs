//! The documents about the built-in APIs, compared with those of upstream.
//!
//! Left out of the comparison, because the data is not there yet: descriptions, defaults, enums and unions; the
//! CBOR forms, and protobuf for discovery, which are not served; the query parameters of connections and logs, whose
//! options are no kinds here. `x-kubernetes-list-type: atomic` is told of every such list, while upstream is silent about some: it means the same.
//! `x-kubernetes-map-type: granular`, which upstream says of two fields, is nothing that schemas know. A deleted
//! Namespace is answered with the object, as upstream does without telling.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc};

use concord_apis::{RuntimeConfig, Settings, api_set};
use concord_endpoints::ApiSet;
use concord_openapi::OpenApi;
use concord_server::{Handler as _, full};
use http_body_util::BodyExt as _;
use serde_json::{Map, Value, json};

/// What nothing is known about, wherever it stands in a schema.
const UNKNOWN: [&str; 4] = ["default", "enum", "x-kubernetes-unions", "x-kubernetes-list-type"];

#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn specifications() -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data/kubernetes-v1.36/openapi-spec/v3");
    if !path.is_dir() {
        println!("skipped: there is no ../shared/data");
        return None;
    }
    Some(path)
}

fn everything() -> Arc<ApiSet> {
    let runtime_config = RuntimeConfig::parse(&["api/all=true".to_owned()]).expect("valid");
    Arc::new(api_set(&Settings { runtime_config, ..Settings::default() }))
}

async fn get(openapi: &OpenApi, path: &str) -> (u16, Value) {
    let request = http::Request::get(path).body(full("")).expect("a request");
    let response = openapi.handle(request).await;
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// A schema without what is left out; a reference stands alone, however it was wrapped.
fn schema(value: &Value) -> Value {
    let Value::Object(members) = value else { return value.clone() };
    if let Some([reference]) = members.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        let mut flat = members.clone();
        flat.remove("allOf");
        flat.insert("$ref".to_owned(), reference["$ref"].clone());
        return schema(&flat.into());
    }
    let known = members.iter().filter(|(name, value)| {
        let description = *name == "description" && value.is_string();
        let granular = *name == "x-kubernetes-map-type" && *value == "granular";
        !description && !granular && !UNKNOWN.contains(&name.as_str())
    });
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

fn compare(key: &str, ours: &Value, theirs: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let paths = |of: &Value| -> Value {
        let items = of["paths"].as_object().into_iter().flatten();
        items.map(|(path, item)| (path.clone(), path_item(path, item))).collect::<Map<_, _>>().into()
    };
    differences(key, &paths(ours), &paths(theirs), &mut found);
    let schemas = |of: &Value| -> Value {
        let all = of["components"]["schemas"].as_object().into_iter().flatten();
        all.map(|(name, value)| (name.clone(), schema(value))).collect::<Map<_, _>>().into()
    };
    differences(key, &schemas(ours), &schemas(theirs), &mut found);
    assert_eq!(ours["openapi"], theirs["openapi"]);
    assert_eq!(ours["info"]["title"], theirs["info"]["title"]);
    found
}

#[tokio::test]
async fn documents_have_the_structure_of_upstreams() {
    let Some(directory) = specifications() else { return };
    let set = everything();
    let openapi = OpenApi::new(move || set.clone(), "1.36");
    let (_, index) = get(&openapi, "/openapi/v3").await;
    let mut found = Vec::new();
    let mut compared = 0;
    for key in index["paths"].as_object().expect("the index").keys() {
        let name = key.replace('/', "__");
        let text = fs::read_to_string(directory.join(format!("{name}_openapi.json")));
        let text = text.unwrap_or_else(|error| panic!("upstream has no {key}: {error}"));
        let theirs = serde_json::from_str(&text).expect("JSON");
        let (status, ours) = get(&openapi, &format!("/openapi/v3/{key}")).await;
        assert_eq!(status, 200, "{key}");
        found.extend(compare(key, &ours, &theirs));
        compared += 1;
    }
    assert!(compared > 50, "only {compared} documents");
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}

#[tokio::test]
async fn documents_refer_to_all_they_contain_and_contain_all_they_refer_to() {
    let set = everything();
    let openapi = OpenApi::new(move || set.clone(), "1.36");
    let (_, index) = get(&openapi, "/openapi/v3").await;
    for key in index["paths"].as_object().expect("the index").keys() {
        let (_, document) = get(&openapi, &format!("/openapi/v3/{key}")).await;
        let text = document.to_string();
        let references = text.split("\"#/components/schemas/").skip(1);
        let mut references: Vec<&str> =
            references.map(|rest| rest.split('"').next().unwrap_or_default()).collect();
        references.sort_unstable();
        references.dedup();
        let schemas = document["components"]["schemas"].as_object().expect("schemas");
        assert_eq!(schemas.keys().collect::<Vec<_>>(), references, "{key}");
        assert!(schemas.values().all(Value::is_object), "{key}");
    }
}
