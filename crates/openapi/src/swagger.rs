//! Version 2: one document about everything, for old clients. It says less than version 3.

use std::collections::BTreeSet;

use concord_meta::GroupVersion;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    components::{Components, Dialect, Sources, is_shared},
    document::Subject,
    member::Members,
    merge::{self, Whole},
    packed::Packed,
    protobuf,
    publication::to_json,
};

/// A document of version 2, its members in the order of their names.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Swagger {
    definitions: Members,
    info: Value,
    parameters: Map<String, Value>,
    paths: Members,
    security: Value,
    security_definitions: Value,
    swagger: &'static str,
}

/// What some of the subjects have to say.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Part {
    definitions: Members,
    parameters: Map<String, Value>,
    paths: Members,
    /// The types that all APIs share and that something of it refers to.
    shared: BTreeSet<String>,
}

impl Swagger {
    /// The document of all parts, which are about these versions. `release` is the version of the API as a whole, such as
    /// `1.36`.
    pub(crate) fn new(
        mut all: Part,
        versions: Vec<GroupVersion>,
        release: &str,
        sources: &Sources<'_>,
    ) -> Self {
        let mut components = Components::new(sources, Dialect::V2, versions);
        for name in &all.shared {
            components.shared(name);
        }
        all.definitions.append(&mut components.finish());
        Self {
            definitions: all.definitions,
            info: json!({"title": "Kubernetes", "version": release}),
            parameters: all.parameters,
            paths: all.paths,
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

    /// The document as a message. Messages that follow one another are one message, with the members of all of them.
    pub(crate) fn protobuf(&self) -> Vec<u8> {
        let rest = json!({
            "definitions": {}, "info": self.info, "parameters": self.parameters, "paths": {}, "security": self.security,
            "securityDefinitions": self.security_definitions, "swagger": self.swagger,
        });
        let mut out = protobuf::encode(&rest, Dialect::V2);
        for (of, members) in [("definitions", &self.definitions), ("paths", &self.paths)] {
            for (name, member) in members {
                out.extend(protobuf::encode(&json!({of: {name: member.value()}}), Dialect::V2));
            }
        }
        out
    }

    /// Adds what another server says.
    pub(crate) fn add(&mut self, part: Map<String, Value>) {
        let Self { paths, definitions, parameters, .. } = self;
        merge::add(&mut Whole { paths, definitions, parameters }, part);
    }
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
        Self { definitions, parameters, paths, shared }
    }

    /// Both parts. What both have is the same in both.
    pub(crate) fn with(mut self, mut other: Self) -> Self {
        self.definitions.append(&mut other.definitions);
        self.parameters.append(&mut other.parameters);
        self.paths.append(&mut other.paths);
        self.shared.append(&mut other.shared);
        self
    }

    /// The part as it is kept.
    pub(crate) fn pack(&self) -> Packed {
        Packed::quick(&to_json(self))
    }

    /// What [`Self::pack`] packed.
    pub(crate) fn unpack(packed: &Packed) -> Option<Self> {
        serde_json::from_slice(&packed.plain().ok()?).ok()
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
