//! What is wrong with documents of other servers, put right: clients read all documents with the same eyes.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::legacy::references;

const COMPONENTS: &str = "#/components/";
const SCHEMAS: &str = "#/components/schemas/";

/// What stands for a component, by its name.
type Stub = fn(&str) -> Value;

/// What stands for a component that a document refers to and does not have: whatever it may be.
const SECTIONS: [(&str, Stub); 8] = [
    ("callbacks", |_| json!({})),
    ("examples", |_| json!({})),
    ("headers", |_| json!({"schema": {}})),
    ("links", |_| json!({})),
    ("parameters", |name| json!({"in": "query", "name": name, "schema": {}})),
    ("requestBodies", |_| json!({"content": {}})),
    ("responses", |_| json!({"description": ""})),
    ("schemas", |_| json!({})),
];

/// The keys of values in which nothing is a reference, whatever it looks like.
const OPAQUE: [&str; 4] = ["default", "enum", "example", "examples"];
/// The keys of values whose own keys are names that somebody gave.
const NAMED: [&str; 4] = ["headers", "properties", "responses", "schemas"];

/// Makes a document of version 3 whole: it says what it is, refers only to what it has, has only what it refers to, and
/// each of its operations has a name of its own.
pub(crate) fn mend(document: &mut Map<String, Value>) {
    let info = document.get("info").and_then(Value::as_object).cloned();
    document.insert("info".to_owned(), complete(info.unwrap_or_default()).into());
    let whole = Value::Object(document.clone());
    for part in ["components", "paths"] {
        document.entry(part).or_insert_with(|| json!({}));
        if let Some(part) = document.get_mut(part) {
            straighten(part, &whole, false);
        }
    }
    rename_operations(document);
    keep_used(document);
}

/// The title and the version that every document has.
pub(crate) fn complete(mut info: Map<String, Value>) -> Map<String, Value> {
    for name in ["title", "version"] {
        if !info.get(name).is_some_and(Value::is_string) {
            info.insert(name.to_owned(), "unknown".into());
        }
    }
    info
}

/// Leaves nothing beside references, and no references to nowhere.
fn straighten(value: &mut Value, whole: &Value, is_named: bool) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                if is_named || !OPAQUE.contains(&name.as_str()) {
                    straighten(member, whole, !is_named && NAMED.contains(&name.as_str()));
                }
            }
            let Some(Value::String(to)) = members.get("$ref").cloned() else { return };
            if !leads_somewhere(&to, whole) {
                members.remove("$ref");
            } else if members.len() > 1 && to.starts_with(SCHEMAS) {
                members.remove("$ref");
                let all = members.entry("allOf").or_insert_with(|| json!([]));
                if let Value::Array(all) = all {
                    all.insert(0, json!({"$ref": to}));
                }
            } else {
                members.retain(|name, _| name == "$ref");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| straighten(item, whole, false)),
        _ => {}
    }
}

/// Whether there is something at the end of a reference, or can be put there.
fn leads_somewhere(reference: &str, whole: &Value) -> bool {
    let component = reference.strip_prefix(COMPONENTS).and_then(|rest| rest.split_once('/'));
    let is_component = component.is_some_and(|(section, name)| {
        SECTIONS.iter().any(|(known, _)| *known == section) && !name.contains('/')
    });
    is_component || reference.strip_prefix('#').is_some_and(|pointer| whole.pointer(pointer).is_some())
}

/// Numbers the names of operations that another one has.
fn rename_operations(document: &mut Map<String, Value>) {
    let mut known = BTreeSet::new();
    let items = document.get_mut("paths").and_then(Value::as_object_mut).into_iter().flatten();
    for operation in items.filter_map(|(_, item)| item.as_object_mut()).flat_map(|item| item.values_mut()) {
        let Some(Value::String(id)) = operation.get_mut("operationId") else { continue };
        let numbered = (2_u32..).map(|number| format!("{id}_{number}"));
        let mut names = std::iter::once(id.clone()).chain(numbered);
        // There are never more names than operations.
        *id = names.find(|name| !known.contains(name)).unwrap_or_default();
        known.insert(id.clone());
    }
}

/// Keeps the components that something refers to, and what they refer to. Those that are missing are anything.
fn keep_used(document: &mut Map<String, Value>) {
    let Some(Value::Object(mut from)) = document.remove("components") else { return };
    let mut kept: Map<String, Value> = Map::new();
    let mut wanted = BTreeSet::new();
    references(document.get("paths").unwrap_or(&Value::Null), COMPONENTS, &mut wanted);
    while let Some(path) = wanted.pop_first() {
        let Some((section, rest)) = path.split_once('/') else { continue };
        let Some((_, stub)) = SECTIONS.iter().find(|(known, _)| *known == section) else { continue };
        let all = from.get(section).and_then(Value::as_object);
        // Something within a component needs all of it. Names may have slashes themselves.
        let is_known = |name: &str| all.is_some_and(|all| all.contains_key(name));
        let name = if is_known(rest) {
            rest
        } else {
            rest.split('/').next().filter(|name| is_known(name)).unwrap_or(rest)
        };
        let value = all.and_then(|all| all.get(name)).cloned().unwrap_or_else(|| stub(name));
        let section = kept.entry(section).or_insert_with(|| json!({}));
        if let Value::Object(section) = section
            && !section.contains_key(name)
        {
            references(&value, COMPONENTS, &mut wanted);
            section.insert(name.to_owned(), value);
        }
    }
    if from.contains_key("schemas") {
        kept.entry("schemas").or_insert_with(|| json!({}));
    }
    // Those are not referred to but named.
    kept.extend(from.remove("securitySchemes").map(|schemes| ("securitySchemes".to_owned(), schemes)));
    document.insert("components".to_owned(), kept.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_stubbed_and_what_is_unused_goes() {
        let document = json!({
            "paths": {"/a": {
                "get": {"operationId": "x", "parameters": [{"$ref": "#/components/parameters/p", "description": "no"}]},
                "put": {"operationId": "x", "schema": {"$ref": "#/components/schemas/A", "description": "d"}},
                "post": {"operationId": "x_2", "schema": {"$ref": "other.json#/B", "type": "object"},
                         "example": {"$ref": "#/nowhere", "beside": 1}},
            }},
            "components": {
                "schemas": {
                    "A": {"properties": {"a~b": {"$ref": "#/components/schemas/a~1b"}, "$ref": {"type": "string"},
                                         "default": {"$ref": "#/components/schemas/Gone", "title": "t"}}},
                    "a/b": {"items": {"$ref": "#/components/schemas/Gone"}},
                    "Unused": {"$ref": "#/components/schemas/A"},
                },
                "securitySchemes": {"Token": {"type": "http", "scheme": "bearer"}},
            },
        });
        let Value::Object(mut document) = document else { unreachable!("an object") };
        mend(&mut document);
        let expected = json!({
            "info": {"title": "unknown", "version": "unknown"},
            "paths": {"/a": {
                "get": {"operationId": "x", "parameters": [{"$ref": "#/components/parameters/p"}]},
                "post": {"operationId": "x_2", "schema": {"type": "object"},
                         "example": {"$ref": "#/nowhere", "beside": 1}},
                "put": {"operationId": "x_3", "schema": {"allOf": [{"$ref": "#/components/schemas/A"}], "description": "d"}},
            }},
            "components": {
                "parameters": {"p": {"in": "query", "name": "p", "schema": {}}},
                "schemas": {
                    "A": {"properties": {"a~b": {"$ref": "#/components/schemas/a~1b"}, "$ref": {"type": "string"},
                                         "default": {"allOf": [{"$ref": "#/components/schemas/Gone"}], "title": "t"}}},
                    "a/b": {"items": {"$ref": "#/components/schemas/Gone"}},
                    "Gone": {},
                },
                "securitySchemes": {"Token": {"type": "http", "scheme": "bearer"}},
            },
        });
        assert_eq!(Value::Object(document), expected);
    }
}
