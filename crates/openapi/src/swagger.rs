//! Version 2: one document about everything, for old clients. It says less than version 3.

use std::{panic::resume_unwind, thread};

use concord_meta::GroupVersion;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    components::{Components, Dialect, Sources},
    document::Subject,
    member::Members,
    merge::{self, Whole},
    protobuf,
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
#[derive(Default)]
struct Part {
    definitions: Members,
    parameters: Map<String, Value>,
    paths: Members,
}

/// How many threads make the document: few, so that something is left for requests.
const THREADS: usize = 2;

impl Swagger {
    /// The document about all subjects. `release` is the version of the API as a whole, such as `1.36`.
    pub(crate) fn new(subjects: &[&Subject], release: &str, sources: &Sources<'_>) -> Self {
        let versions: Vec<GroupVersion> =
            subjects.iter().filter_map(|subject| subject.version()).cloned().collect();
        let versions = &versions;
        let share = subjects.len().div_ceil(THREADS).max(1);
        let mut all = Part::default();
        thread::scope(|scope| {
            let write = |share| scope.spawn(move || Part::new(share, versions.clone(), sources));
            let threads: Vec<_> = subjects.chunks(share).map(write).collect();
            for thread in threads {
                all.append(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
        });
        Self {
            definitions: all.definitions,
            info: json!({"title": "Kubernetes", "version": release}),
            parameters: all.parameters,
            paths: all.paths,
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
    fn new(subjects: &[&Subject], versions: Vec<GroupVersion>, sources: &Sources<'_>) -> Self {
        let mut components = Components::new(sources, Dialect::V2, versions);
        let (mut parameters, mut paths) = (Map::new(), Members::new());
        for subject in subjects {
            let (tag, items) = subject.items(&mut components);
            paths.extend(items.into_iter().map(|item| item.swagger(&tag, &mut parameters)));
        }
        Self { definitions: components.finish(), parameters, paths }
    }

    /// What both parts have is the same in both.
    fn append(&mut self, mut other: Self) {
        self.definitions.append(&mut other.definitions);
        self.parameters.append(&mut other.parameters);
        self.paths.append(&mut other.paths);
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
