//! Version 2: one document about everything, for old clients. It says less than version 3.

use std::collections::BTreeSet;

use concord_meta::GroupVersion;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    components::{Components, Dialect, Sources, is_shared},
    document::Subject,
    member::{Member, Members},
    protobuf,
};

/// What some of the subjects have to say.
#[derive(Default)]
pub(crate) struct Part {
    pub(crate) definitions: Members,
    pub(crate) paths: Members,
    pub(crate) common: Common,
}

/// What many say in the same way.
#[derive(Default, Clone, Serialize)]
pub(crate) struct Common {
    pub(crate) parameters: Map<String, Value>,
    /// The types that all APIs share and that something refers to.
    pub(crate) shared: BTreeSet<String>,
    /// The types of other APIs.
    pub(crate) borrowed: Members,
}

impl Part {
    /// What a subject has to say.
    pub(crate) fn new(subject: &Subject, sources: &Sources<'_>) -> Self {
        let mut components = Components::new(sources, Dialect::V2, Vec::new());
        let (tag, items) = subject.items(&mut components);
        let mut parameters = Map::new();
        let paths = items.into_iter().map(|item| item.swagger(&tag, &mut parameters)).collect();
        let mut definitions = components.finish();
        // What others have, too, is made once, and says which versions there are.
        let shared = definitions.keys().filter(|name| is_shared(name)).cloned().collect();
        definitions.retain(|name, _| !is_shared(name));
        Self { definitions, paths, common: Common { parameters, shared, borrowed: Members::new() } }
    }

    /// The same, with the types that are not of this package as borrowed ones.
    pub(crate) fn of_package(self, package: &str) -> Self {
        let is_own = |(name, _): &(String, Member)| name.starts_with(package);
        let (definitions, borrowed) = self.definitions.into_iter().partition(is_own);
        Self { definitions, common: Common { borrowed, ..self.common }, ..self }
    }

    /// Both parts. What both have is the same in both.
    pub(crate) fn with(mut self, mut other: Self) -> Self {
        self.definitions.append(&mut other.definitions);
        self.paths.append(&mut other.paths);
        self.common.append(other.common);
        self
    }
}

impl Common {
    /// Adds what others have in common.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.parameters.append(&mut other.parameters);
        self.shared.append(&mut other.shared);
        self.borrowed.append(&mut other.borrowed);
    }

    /// The types that all APIs share, for a document about these versions.
    pub(crate) fn shared_types(&self, versions: Vec<GroupVersion>, sources: &Sources<'_>) -> Members {
        let mut components = Components::new(sources, Dialect::V2, versions);
        for name in &self.shared {
            components.shared(name);
        }
        components.finish()
    }
}

/// What the document says besides definitions and paths, its members in the order of their names.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Frame {
    info: Value,
    parameters: Map<String, Value>,
    security: Value,
    security_definitions: Value,
    swagger: &'static str,
}

impl Frame {
    /// `release` is the version of the API as a whole, such as `1.36`.
    pub(crate) fn new(release: &str, parameters: Map<String, Value>) -> Self {
        Self {
            info: json!({"title": "Kubernetes", "version": release}),
            parameters,
            security: json!([{"BearerToken": []}]),
            security_definitions: json!({
                "BearerToken": {
                    "description": "Bearer Token authentication",
                    "in": "header",
                    "name": "authorization",
                    "type": "apiKey",
                },
            }),
            swagger: "2.0",
        }
    }

    /// The text before the definitions, between them and the paths, and after these.
    pub(crate) fn json(&self) -> [String; 3] {
        let Self { info, security, security_definitions, swagger, .. } = self;
        let parameters = Value::Object(self.parameters.clone());
        [
            r#"{"definitions":{"#.to_owned(),
            format!(r#"}},"info":{info},"parameters":{parameters},"paths":{{"#),
            format!(
                r#"}},"security":{security},"securityDefinitions":{security_definitions},"swagger":"{swagger}"}}"#
            ),
        ]
    }

    /// The message without definitions and paths, which follow it.
    pub(crate) fn protobuf(&self) -> Vec<u8> {
        let rest = json!({
            "definitions": {}, "info": self.info, "parameters": self.parameters, "paths": {}, "security": self.security,
            "securityDefinitions": self.security_definitions, "swagger": self.swagger,
        });
        protobuf::encode(&rest, Dialect::V2)
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
