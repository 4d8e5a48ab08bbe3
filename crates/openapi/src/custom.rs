//! The types of custom resources, from what their definitions say.
//!
//! Version 3 says all that the author said; what every object has is added. Version 2 cannot, and says what upstream's
//! does.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use crate::annotations::{Texts, add};

const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// A version of a definition: what it says of the fields.
pub(crate) struct Defined {
    schema: Option<Value>,
    /// `x-kubernetes-selectable-fields`, if there are any.
    selectable: Option<Value>,
    preserves_unknown_fields: bool,
}

impl Defined {
    /// What the `spec` of a CustomResourceDefinition says of a version.
    pub(crate) fn read(spec: &mut Value, version: &str) -> Option<Self> {
        let preserves_unknown_fields = spec["preserveUnknownFields"] == true;
        let versions = spec.get_mut("versions")?.as_array_mut()?;
        let version = versions.iter_mut().find(|given| given["name"] == version)?;
        let fields = version["selectableFields"].as_array().into_iter().flatten();
        let paths = fields.filter_map(|field| field["jsonPath"].as_str());
        let selectable: Vec<Value> =
            paths.map(|path| json!({"fieldPath": path.strip_prefix('.').unwrap_or(path)})).collect();
        let schema = version.get_mut("schema").and_then(|schema| schema.get_mut("openAPIV3Schema"));
        Some(Self {
            schema: schema.map(Value::take).filter(Value::is_object),
            selectable: (!selectable.is_empty()).then(|| selectable.into()),
            preserves_unknown_fields,
        })
    }

    /// The schema of version 3.
    pub(crate) fn lossless(&self, envelope: &Envelope) -> Value {
        let Some(mut schema) = self.schema.clone() else { return json!({"type": "object"}) };
        walk(&mut schema, &mut |node| {
            unfold(node);
            if node.get(EMBEDDED) == Some(&Value::Bool(true)) {
                envelope.around_embedded(node, true);
            }
        });
        if let Value::Object(root) = &mut schema {
            envelope.around(root, true);
        }
        self.mark(&mut schema);
        schema
    }

    /// The schema of version 2: without all that old clients cannot read.
    pub(crate) fn lossy(&self, envelope: &Envelope) -> Value {
        let readable = |schema: &&Value| !self.preserves_unknown_fields && schema[PRESERVE] != true;
        let Some(mut schema) = self.schema.as_ref().filter(readable).cloned() else {
            return json!({"type": "object"});
        };
        walk(&mut schema, &mut |node| {
            reduce(node);
            let is = |name: &str| node.get(name) == Some(&Value::Bool(true));
            if is(EMBEDDED) && !is(PRESERVE) {
                envelope.around_embedded(node, false);
            }
        });
        if let Value::Object(root) = &mut schema {
            envelope.around(root, false);
        }
        self.mark(&mut schema);
        schema
    }

    /// Says by which fields objects can be selected.
    pub(crate) fn mark(&self, schema: &mut Value) {
        if let Some(selectable) = &self.selectable {
            add(schema, "x-kubernetes-selectable-fields", selectable.clone());
        }
    }
}

/// What every object has: its kind and version, and metadata.
pub(crate) struct Envelope {
    api_version: Value,
    kind: Value,
    metadata: Value,
    list_metadata: Value,
}

impl Envelope {
    /// For version 3.
    pub(crate) fn lossless(texts: &Texts) -> Self {
        Self::new(texts, |name| json!({"allOf": [{"$ref": format!("#/components/schemas/{META}{name}")}]}))
    }

    /// For version 2, where something may stand beside a reference.
    pub(crate) fn lossy(texts: &Texts) -> Self {
        Self::new(texts, |name| json!({"$ref": format!("#/definitions/{META}{name}")}))
    }

    fn new(texts: &Texts, reference: impl Fn(&str) -> Value) -> Self {
        let text = |name: &str| texts.get(&format!("{META}{name}")).cloned().unwrap_or_default();
        let status = text("Status");
        let field = |mut schema: Value, description: &Value| {
            if description.is_string() {
                schema["description"] = description.clone();
            }
            schema
        };
        Self {
            api_version: field(json!({"type": "string"}), &status["properties"]["apiVersion"]["description"]),
            kind: field(json!({"type": "string"}), &status["properties"]["kind"]["description"]),
            metadata: field(reference("ObjectMeta"), &text("ObjectMeta")["description"]),
            list_metadata: field(reference("ListMeta"), &status["properties"]["metadata"]["description"]),
        }
    }

    /// Adds what every object has. What the author says of it stays if `lossless`, in a way that does not change how
    /// clients see the type: they look for one reference in an `allOf`.
    fn around(&self, node: &mut Map<String, Value>, lossless: bool) {
        let properties = node.entry("properties").or_insert_with(|| json!({}));
        for (name, common) in [("apiVersion", &self.api_version), ("kind", &self.kind)] {
            let mut schema = common.clone();
            let author = properties.get(name).and_then(Value::as_object).filter(|_| lossless);
            for (member, value) in author.into_iter().flatten() {
                add(&mut schema, member, value.clone());
            }
            properties[name] = schema;
        }
        let mut metadata = self.metadata.clone();
        let mut author = properties.get_mut("metadata").map(Value::take).filter(|_| lossless);
        if let Some(Value::Object(author)) = &mut author {
            author.remove("type");
            if let Some(description) = author.remove("description") {
                add(&mut metadata, "description", description);
            }
            if !author.is_empty() {
                metadata["anyOf"] = json!([author]);
            }
        }
        properties["metadata"] = metadata;
    }

    fn around_embedded(&self, node: &mut Map<String, Value>, lossless: bool) {
        self.around(node, lossless);
        let required = node.entry("required").or_insert_with(|| json!([]));
        if let Some(names) = required.as_array_mut() {
            for name in ["kind", "apiVersion"] {
                if !names.iter().any(|given| given == name) {
                    names.push(name.into());
                }
            }
        }
    }

    /// The schema of a list.
    pub(crate) fn list(&self, items: &Value, kind: &str, list_kind: &str) -> Value {
        json!({
            "description": format!("{list_kind} is a list of {kind}"),
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": self.api_version,
                "items": {"type": "array", "items": items, "description": "The objects."},
                "kind": self.kind,
                "metadata": self.list_metadata,
            },
        })
    }
}

/// Calls `change` with every schema, from the root on. Schemas are as deep as definitions can be, which is bounded.
fn walk(schema: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(node) = schema else { return };
    change(node);
    for (name, member) in node.iter_mut() {
        match (name.as_str(), member) {
            ("properties", Value::Object(fields)) => {
                // What was added to an embedded resource stays as it is.
                fields
                    .values_mut()
                    .filter(|field| field.get("allOf").is_none_or(is_nested))
                    .for_each(|field| walk(field, change));
            }
            ("items" | "additionalProperties", member) => walk(member, change),
            _ => {}
        }
    }
}

/// Whether an `allOf` is one of the author's, not a reference.
fn is_nested(all: &Value) -> bool {
    all.get(0).is_none_or(|first| first.get("$ref").is_none())
}

/// Says with words of OpenAPI that a node is an integer or a string.
fn unfold(node: &mut Map<String, Value>) {
    if node.get(INT_OR_STRING) != Some(&Value::Bool(true)) {
        return;
    }
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let said = node.get("anyOf") == Some(&either);
    let said_first = node.get("allOf").is_some_and(|all| all[0]["anyOf"] == either);
    if said || said_first {
        return;
    }
    if node.contains_key("anyOf") {
        let all = node.entry("allOf").or_insert_with(|| json!([]));
        if let Some(all) = all.as_array_mut() {
            all.insert(0, json!({"anyOf": either}));
        }
    } else {
        node.insert("anyOf".to_owned(), either);
    }
}

/// Takes away what version 2 cannot say and what kubectl cannot read there.
fn reduce(node: &mut Map<String, Value>) {
    for name in ["allOf", "anyOf", "oneOf", "not", "default"] {
        node.remove(name);
    }
    let is = |node: &Map<String, Value>, name: &str| node.get(name) == Some(&Value::Bool(true));
    let nullable = node.remove("nullable") == Some(Value::Bool(true));
    let preserving = is(node, PRESERVE);
    if nullable {
        node.remove("type");
    }
    if nullable || preserving {
        node.remove("items");
        node.remove("properties");
    }
    let ty = node.get("type").and_then(Value::as_str).unwrap_or_default();
    if (ty == "array" && !node.contains_key("items")) || (ty == "object" && preserving) {
        node.remove("type");
    }
    relax(node);
    if node.get("properties").and_then(Value::as_object).is_some_and(Map::is_empty) {
        node.remove("properties");
    }
}

/// What may be null need not be given.
fn relax(node: &mut Map<String, Value>) {
    let nullable = |schema: &Value| schema["nullable"] == true;
    if node.get("additionalProperties").is_some_and(nullable) {
        node.remove("required");
    }
    let Some(Value::Array(mut required)) = node.remove("required") else { return };
    let fields = node.get("properties").and_then(Value::as_object);
    required.retain(|name| {
        let field = name.as_str().and_then(|name| fields?.get(name));
        !field.is_some_and(nullable)
    });
    if !required.is_empty() {
        node.insert("required".to_owned(), required.into());
    }
}
