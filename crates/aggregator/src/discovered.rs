//! What another server says about its resources, as the aggregated document lists them.

use std::collections::BTreeMap;

use bytes::Bytes;
use concord_codec::{Options, decode, encode};
use concord_meta::GroupVersion;
use serde_json::{Map, Value, json};

/// What another server answers with is not discovery.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidDiscovery {
    #[error("the answer is not a JSON object: {0}")]
    NotJson(String),
    #[error("the answer has no {0}")]
    Missing(&'static str),
}

/// The resources of a version in an aggregated document; none if it does not have that version.
pub(crate) fn aggregated(document: &[u8], version: &GroupVersion) -> Result<Bytes, InvalidDiscovery> {
    let document = read(document)?;
    let groups = document.get("items").and_then(Value::as_array);
    let groups = groups.ok_or(InvalidDiscovery::Missing("items"))?;
    let group = groups.iter().filter(|group| group["metadata"]["name"] == version.group.as_str());
    let mut versions = group.filter_map(|group| group["versions"].as_array()).flatten();
    let found = versions.rfind(|found| found["version"] == version.version.as_str());
    let resources = found.and_then(|found| found["resources"].as_array()).into_iter().flatten();
    let resources: Vec<Value> = resources.filter_map(complete).collect();
    Ok(encode(&Value::Array(resources)).into())
}

/// Some clients cannot do without a kind.
fn complete(resource: &Value) -> Option<Value> {
    let mut resource = resource.as_object()?.clone();
    resource.entry("responseKind").or_insert_with(no_kind);
    if let Some(Value::Array(subresources)) = resource.get_mut("subresources") {
        for subresource in subresources.iter_mut().filter_map(Value::as_object_mut) {
            subresource.entry("responseKind").or_insert_with(no_kind);
        }
    }
    Some(resource.into())
}

fn no_kind() -> Value {
    json!({"group": "", "version": "", "kind": ""})
}

/// The same from the document of one version, of servers that have no aggregated one.
pub(crate) fn legacy(document: &[u8]) -> Result<Bytes, InvalidDiscovery> {
    let document = read(document)?;
    let list = document.get("resources").and_then(Value::as_array);
    let list = list.ok_or(InvalidDiscovery::Missing("resources"))?;
    let mut resources: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let named = || list.iter().filter_map(|resource| Some((resource["name"].as_str()?, resource)));
    for (name, resource) in named().filter(|(name, _)| !name.contains('/')) {
        resources.insert(name, main(name, resource));
    }
    for (name, resource) in named() {
        let Some((parent, below)) = name.split_once('/') else { continue };
        let parent = resources.entry(parent).or_insert_with(|| orphaned(parent, resource));
        let subresources = parent.entry("subresources").or_insert_with(|| json!([]));
        if let Some(subresources) = subresources.as_array_mut() {
            subresources.push(json!({
                "subresource": below, "responseKind": kind(resource), "verbs": resource["verbs"],
            }));
        }
    }
    let resources: Vec<Value> = resources.into_values().map(Value::Object).collect();
    Ok(encode(&Value::Array(resources)).into())
}

fn main(name: &str, resource: &Value) -> Map<String, Value> {
    let mut converted = orphaned(name, resource);
    converted.insert("responseKind".to_owned(), kind(resource));
    let singular = resource["singularName"].as_str().unwrap_or_default();
    converted.insert("singularResource".to_owned(), singular.into());
    converted.insert("verbs".to_owned(), resource["verbs"].clone());
    for name in ["shortNames", "categories"] {
        if resource[name].is_array() {
            converted.insert(name.to_owned(), resource[name].clone());
        }
    }
    converted
}

/// A resource of which only subresources are known.
fn orphaned(name: &str, resource: &Value) -> Map<String, Value> {
    let scope = if resource["namespaced"] == true { "Namespaced" } else { "Cluster" };
    let mut converted = Map::new();
    for (name, value) in [
        ("resource", name.into()),
        ("responseKind", no_kind()),
        ("scope", scope.into()),
        ("singularResource", "".into()),
        ("verbs", Value::Null),
    ] {
        converted.insert(name.to_owned(), value);
    }
    converted
}

fn kind(resource: &Value) -> Value {
    let text = |name: &str| resource[name].as_str().unwrap_or_default();
    json!({"group": text("group"), "version": text("version"), "kind": text("kind")})
}

fn read(bytes: &[u8]) -> Result<Map<String, Value>, InvalidDiscovery> {
    let decoded = decode(bytes, &Options::default());
    decoded.map(|decoded| decoded.object).map_err(|error| InvalidDiscovery::NotJson(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(bytes: &Bytes) -> Value {
        serde_json::from_slice(bytes).expect("JSON")
    }

    #[test]
    fn only_the_version_that_is_meant_is_taken() {
        let version = |name: &str, resource: &str| json!({"version": name, "resources": [{"resource": resource, "subresources": [{"subresource": "s"}]}, 1]});
        let document = json!({"items": [
            {"metadata": {"name": "apps"}, "versions": [version("v1", "deployments")]},
            {"metadata": {"name": "a.io"}, "versions": [version("v1", "things"), version("v2", "others")]},
        ]});
        let of = |group: &str, version: &str| {
            let found = aggregated(document.to_string().as_bytes(), &GroupVersion::new(group, version));
            value(&found.expect("discovery"))
        };
        let things = json!([{
            "resource": "things", "responseKind": no_kind(),
            "subresources": [{"subresource": "s", "responseKind": no_kind()}],
        }]);
        assert_eq!(of("a.io", "v1"), things);
        assert_eq!(of("a.io", "v2")[0]["resource"], "others");
        assert_eq!(of("a.io", "v3"), json!([]));
        assert_eq!(of("b.io", "v1"), json!([]));
    }

    #[test]
    fn old_documents_say_the_same() {
        let document = json!({"kind": "APIResourceList", "resources": [
            {"name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing", "verbs": ["get"], "shortNames": ["t"]},
            {"name": "things/scale", "namespaced": true, "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get"]},
            {"name": "lost/status", "namespaced": false, "kind": "Lost", "verbs": ["update"]},
        ]});
        let found = legacy(document.to_string().as_bytes()).expect("discovery");
        assert_eq!(
            value(&found),
            json!([
                {"resource": "lost", "responseKind": no_kind(), "scope": "Cluster", "singularResource": "", "verbs": null,
                 "subresources": [{"subresource": "status", "verbs": ["update"],
                    "responseKind": {"group": "", "version": "", "kind": "Lost"}}]},
                {"resource": "things", "responseKind": {"group": "", "version": "", "kind": "Thing"}, "scope": "Namespaced",
                 "singularResource": "thing", "verbs": ["get"], "shortNames": ["t"],
                 "subresources": [{"subresource": "scale", "verbs": ["get"],
                    "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}}]},
            ])
        );
    }

    #[test]
    fn what_is_no_discovery_is_refused() {
        for text in ["", "[]", "{", "garbage"] {
            assert!(matches!(legacy(text.as_bytes()), Err(InvalidDiscovery::NotJson(_))), "{text}");
        }
        assert_eq!(legacy(b"{}"), Err(InvalidDiscovery::Missing("resources")));
        let version = GroupVersion::new("a.io", "v1");
        assert_eq!(aggregated(b"{}", &version), Err(InvalidDiscovery::Missing("items")));
    }
}
