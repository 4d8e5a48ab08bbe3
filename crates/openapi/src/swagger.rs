//! Version 2: one document about everything, for old clients. It says less than version 3.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    components::{Components, Dialect, Sources},
    document::Subject,
    merge::{self, Whole},
};

/// A document of version 2, its members in the order of their names.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Swagger {
    definitions: BTreeMap<String, Value>,
    info: Value,
    parameters: Map<String, Value>,
    paths: BTreeMap<String, Value>,
    security: Value,
    security_definitions: Value,
    swagger: &'static str,
}

impl Swagger {
    /// The document about all subjects. `release` is the version of the API as a whole, such as `1.36`.
    pub(crate) fn new<'a>(
        subjects: impl Iterator<Item = &'a Subject> + Clone,
        release: &str,
        sources: &Sources<'_>,
    ) -> Self {
        let versions = subjects.clone().filter_map(Subject::version).cloned().collect();
        let mut components = Components::new(sources, Dialect::V2, versions);
        let (mut parameters, mut paths) = (Map::new(), BTreeMap::new());
        for subject in subjects {
            let (tag, items) = subject.items(&mut components);
            paths.extend(items.into_iter().map(|item| item.swagger(&tag, &mut parameters)));
        }
        Self {
            definitions: components.finish(),
            info: json!({"title": "Kubernetes", "version": release}),
            parameters,
            paths,
            security: json!([{"BearerToken": []}]),
            security_definitions: json!({
                "BearerToken": {
                    "description": "A token of the caller.",
                    "in": "header",
                    "name": "authorization",
                    "type": "apiKey",
                },
            }),
            swagger: "2.0",
        }
    }

    /// Adds what another server says.
    pub(crate) fn add(&mut self, part: Map<String, Value>) {
        let Self { paths, definitions, parameters, .. } = self;
        merge::add(&mut Whole { paths, definitions, parameters }, part);
    }
}

/// A reference, or anything else, as version 2 says it.
pub(crate) fn reference(schema: &Value) -> Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => json!({"$ref": reference.replace("#/components/schemas/", "#/definitions/")}),
        None => schema.clone(),
    }
}

/// Rewrites a schema of version 3 for version 2, where something may stand beside a reference, nothing has a default, and
/// what can be of two types is called a string.
pub(crate) fn reduce(schema: &mut Value) {
    if let Some([wrapped]) = schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        let target = reference(wrapped);
        if let (Value::Object(members), Value::Object(target)) = (&mut *schema, target) {
            members.remove("allOf");
            members.extend(target);
        }
    } else if schema.get("$ref").is_some() {
        *schema = reference(schema);
    }
    let Value::Object(members) = schema else { return };
    members.remove("default");
    if members.remove("oneOf").is_some() {
        members.insert("type".to_owned(), "string".into());
    }
    for (name, member) in members {
        match (name.as_str(), member) {
            ("properties", Value::Object(fields)) => fields.values_mut().for_each(reduce),
            ("items" | "additionalProperties", member) => reduce(member),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_2_says_less() {
        let mut schema = json!({
            "type": "object",
            "properties": {
                "a": {"allOf": [{"$ref": "#/components/schemas/A"}], "default": {}, "description": "d"},
                "b": {"items": {"$ref": "#/components/schemas/B"}, "type": "array"},
                "c": {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
                "default": {"type": "string", "default": ""},
            },
        });
        reduce(&mut schema);
        let expected = json!({
            "type": "object",
            "properties": {
                "a": {"$ref": "#/definitions/A", "description": "d"},
                "b": {"items": {"$ref": "#/definitions/B"}, "type": "array"},
                "c": {"format": "int-or-string", "type": "string"},
                "default": {"type": "string"},
            },
        });
        assert_eq!(schema, expected);
    }
}
