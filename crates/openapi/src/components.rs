//! The types that a document refers to.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, LazyLock},
};

use concord_merge::strategic::PatchStrategy;
use concord_meta::{GroupVersion, GroupVersionKind};
use concord_registry::{Resource, SubresourceKind};
use concord_schema::{Field, ListType, MAX_DEPTH, Place, Scalar, Schema, Shape};
use serde_json::{Map, Value, json};

use crate::operation::group_version_kind;

/// Where the types that all APIs share are.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const SCHEMAS: &str = "#/components/schemas/";

/// The types that all APIs share, by their full names.
static SHARED: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("meta.json")).expect("the file is part of the program and tested")
});

/// Which types are whole kinds.
pub(crate) struct Kinds(HashMap<String, GroupVersionKind>);

impl Kinds {
    /// The kinds of these resources and of their subresources.
    pub(crate) fn new(resources: &[Arc<Resource>]) -> Self {
        let mut kinds = HashMap::new();
        for resource in resources {
            let of_subresources = resource
                .subresources
                .iter()
                .map(|sub| (subresource_schema(&sub.behaviour), sub.kind.clone()));
            let all = of_subresources.chain([(resource.schema(), resource.kind())]);
            for (schema, kind) in all {
                if let Some(definition) = schema.as_ref().and_then(|schema| schema.place().definition()) {
                    kinds.insert(definition.to_owned(), kind);
                }
            }
        }
        Self(kinds)
    }
}

/// The schema of what a subresource takes, if that is something else than the resource itself.
pub(crate) fn subresource_schema(behaviour: &SubresourceKind) -> Option<Arc<Schema>> {
    match behaviour {
        SubresourceKind::Scale(scaling) => Some(scaling.schema.clone()),
        SubresourceKind::Virtual(of) => Some(of.schema()),
        SubresourceKind::Part | SubresourceKind::Unreachable(_) => None,
    }
}

/// Collects the types that are referred to, and those that they refer to.
pub(crate) struct Components<'a> {
    kinds: &'a Kinds,
    /// Whose document it is: some of the shared types are known as kinds of every version.
    version: Option<&'a GroupVersion>,
    schemas: BTreeMap<String, Value>,
    pending: Vec<Place>,
}

impl<'a> Components<'a> {
    pub(crate) fn new(kinds: &'a Kinds, version: Option<&'a GroupVersion>) -> Self {
        Self { kinds, version, schemas: BTreeMap::new(), pending: Vec::new() }
    }

    /// A reference to one of the types that all APIs share, by its name in the meta group.
    pub(crate) fn meta(&mut self, name: &str) -> Value {
        self.shared(&format!("{META}{name}"))
    }

    /// A reference to a type that all APIs share, by its full name.
    pub(crate) fn shared(&mut self, name: &str) -> Value {
        let mut wanted = vec![name.to_owned()];
        while let Some(name) = wanted.pop() {
            if self.schemas.contains_key(&name) {
                continue;
            }
            let mut schema = SHARED.get(&name).cloned().unwrap_or_default();
            references(&schema, &mut wanted);
            if let Some(kinds) = self.shared_kinds(&name) {
                schema["x-kubernetes-group-version-kind"] = kinds;
            }
            self.schemas.insert(name, schema);
        }
        reference(name)
    }

    fn shared_kinds(&self, name: &str) -> Option<Value> {
        let kind = name.strip_prefix(META)?;
        let core = GroupVersion::new("", "v1");
        let versions = match kind {
            "Status" | "APIResourceList" | "APIGroup" | "APIGroupList" | "APIVersions" => vec![&core],
            "DeleteOptions" | "WatchEvent" => {
                let own = self.version.filter(|version| **version != core);
                [&core].into_iter().chain(own).collect()
            }
            _ => return None,
        };
        Some(versions.into_iter().map(|version| group_version_kind(&version.with_kind(kind))).collect())
    }

    /// A reference to the type of an object. What has no definition is any object.
    pub(crate) fn object(&mut self, schema: Option<&Schema>) -> Value {
        match schema.map(Schema::place) {
            Some(place) if place.definition().is_some() => self.place(place, 0),
            _ => json!({"type": "object"}),
        }
    }

    /// A reference to the type of a list of objects.
    pub(crate) fn list(&mut self, schema: Option<&Schema>, kind: &GroupVersionKind) -> Value {
        let items = self.object(schema);
        let metadata = self.meta("ListMeta");
        let text = json!({"type": "string"});
        let list = json!({
            "type": "object",
            "properties": {
                "apiVersion": text,
                "items": {"type": "array", "items": items},
                "kind": text,
                "metadata": metadata,
            },
            "required": ["items"],
            "x-kubernetes-group-version-kind": [group_version_kind(kind)],
        });
        // A list is defined next to its items.
        let package = schema.and_then(|schema| schema.place().definition()?.rsplit_once('.'));
        let Some((package, _)) = package else { return list };
        let name = format!("{package}.{}", kind.kind);
        let reference = reference(&name);
        self.schemas.insert(name, list);
        reference
    }

    /// All types that were referred to.
    pub(crate) fn finish(mut self) -> BTreeMap<String, Value> {
        while let Some(place) = self.pending.pop() {
            let Some(name) = place.definition() else { continue };
            let mut schema = self.inline(&place, 0);
            if let Some(kind) = self.kinds.0.get(name) {
                schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(kind)]);
            }
            self.schemas.insert(name.to_owned(), schema);
        }
        self.schemas
    }

    /// What stands at a place: a reference to its type, or the type itself if that has no name.
    fn place(&mut self, place: &Place, depth: usize) -> Value {
        let Some(name) = place.definition() else {
            return if depth < MAX_DEPTH { self.inline(place, depth + 1) } else { json!({}) };
        };
        if !self.schemas.contains_key(name) {
            self.schemas.insert(name.to_owned(), Value::Null);
            self.pending.push(place.clone());
        }
        reference(name)
    }

    fn inline(&mut self, place: &Place, depth: usize) -> Value {
        match place.shape() {
            Shape::Struct { fields, atomic } => self.structure(place, fields, *atomic, depth),
            Shape::Map { values, atomic } => {
                let values = self.place(&place.at(*values), depth);
                mark_atomic(json!({"type": "object", "additionalProperties": values}), *atomic)
            }
            Shape::List { items, list_type } => {
                let items = self.place(&place.at(*items), depth);
                list(&items, list_type)
            }
            // No type can be told, nor upstream tells one.
            Shape::Either { .. } => json!({}),
            Shape::Scalar(scalar) => self::scalar(*scalar),
        }
    }

    fn structure(&mut self, place: &Place, fields: &[Field], atomic: bool, depth: usize) -> Value {
        let mut schema = json!({"type": "object"});
        let mut properties = Map::new();
        for field in fields {
            let value = self.place(&place.at(field.ty()), depth);
            properties.insert(field.name().to_owned(), with_strategy(value, field));
        }
        if !properties.is_empty() {
            schema["properties"] = properties.into();
        }
        let required: Vec<&str> =
            fields.iter().filter(|field| field.is_required()).map(Field::name).collect();
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        mark_atomic(schema, atomic)
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("{SCHEMAS}{name}")})
}

/// Finds the names that a shared type refers to. The types are few and shallow.
fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::String(text) => found.extend(text.strip_prefix(SCHEMAS).map(str::to_owned)),
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Object(members) => members.values().for_each(|member| references(member, found)),
        _ => {}
    }
}

fn mark_atomic(mut schema: Value, atomic: bool) -> Value {
    if atomic {
        schema["x-kubernetes-map-type"] = "atomic".into();
    }
    schema
}

fn list(items: &Value, list_type: &ListType) -> Value {
    let mut schema = json!({"type": "array", "items": items});
    let name = match list_type {
        ListType::Atomic => "atomic",
        ListType::Set => "set",
        ListType::Map(keys) => {
            schema["x-kubernetes-list-map-keys"] = json!(keys);
            "map"
        }
    };
    schema["x-kubernetes-list-type"] = name.into();
    schema
}

/// Adds how strategic merge patches merge the field. Nothing may stand beside a reference, which therefore moves
/// into an `allOf`.
fn with_strategy(mut schema: Value, field: &Field) -> Value {
    let strategy = match (field.strategy(), field.retains_keys()) {
        (PatchStrategy::Default, false) => return schema,
        (PatchStrategy::Default, true) => "retainKeys",
        (PatchStrategy::Merge, false) => "merge",
        (PatchStrategy::Merge, true) => "merge,retainKeys",
        (PatchStrategy::Replace, _) => "replace",
    };
    if schema.get("$ref").is_some() {
        schema = json!({"allOf": [schema]});
    }
    schema["x-kubernetes-patch-strategy"] = strategy.into();
    if let Some(key) = field.merge_key() {
        schema["x-kubernetes-patch-merge-key"] = key.into();
    }
    schema
}

fn scalar(scalar: Scalar) -> Value {
    match scalar {
        Scalar::String => json!({"type": "string"}),
        Scalar::Bool => json!({"type": "boolean"}),
        Scalar::Int32 => json!({"type": "integer", "format": "int32"}),
        Scalar::Int64 => json!({"type": "integer", "format": "int64"}),
        Scalar::Float64 => json!({"type": "number", "format": "double"}),
        Scalar::Bytes => json!({"type": "string", "format": "byte"}),
        Scalar::Time | Scalar::MicroTime => json!({"type": "string", "format": "date-time"}),
        Scalar::Quantity => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        Scalar::IntOrString => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
        Scalar::Raw | Scalar::FieldsV1 => json!({"type": "object"}),
        Scalar::FreeForm => json!({}),
    }
}
