//! What holds for every document, whoever wrote it.

use std::collections::BTreeSet;

use serde_json::Value;

/// Checks a document of version 3: that it says what it is, is whole, has nothing that nobody refers to, and no two operations
/// of one name.
pub(crate) fn check(key: &str, document: &Value) {
    for name in ["/info/title", "/info/version", "/openapi"] {
        assert!(document.pointer(name).is_some_and(Value::is_string), "{key} {name}");
    }
    assert!(document["components"].is_object() && document["paths"].is_object(), "{key}");
    check_operations(key, document);
    check_references(key, document);
    check_siblings(key, document);
    let text = document.to_string();
    assert!(!text.contains("#/definitions/") && !text.contains("\"in\":\"body\""), "{key}");
}

/// Checks what this server says of every operation of its own.
pub(crate) fn check_own(key: &str, document: &Value) {
    for (path, method, operation, _) in operations(document) {
        assert!(operation["operationId"].is_string(), "{key} {path} {method}");
        assert!(operation["responses"]["401"].is_object(), "{key} {path} {method}");
        assert_eq!(operation["tags"].as_array().map(Vec::len), Some(1), "{key} {path} {method}");
    }
}

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

pub(crate) fn check_operations(key: &str, document: &Value) {
    let mut ids = BTreeSet::new();
    for (path, method, operation, item) in operations(document) {
        let id = operation["operationId"].as_str();
        assert!(id.is_none_or(|id| ids.insert(id)), "{key}: {id:?} is there twice");
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

pub(crate) fn check_references(key: &str, document: &Value) {
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
            let name = name.replace('~', "~0").replace('/', "~1");
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
