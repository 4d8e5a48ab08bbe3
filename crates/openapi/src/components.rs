//! The types that a document refers to.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, LazyLock},
};

use concord_merge::strategic::PatchStrategy;
use concord_meta::{GroupVersion, GroupVersionKind};
use concord_registry::{Resource, SubresourceKind};
use concord_schema::{Field, ListType, MAX_DEPTH, Place, Scalar, Schema, Shape};
use serde_json::{Map, Value, json};

use crate::{
    annotations::{Texts, add, annotate},
    custom::{Defined, Envelope},
    member::{Member, Members},
    names,
    operation::group_version_kind,
    swagger,
};

/// Where the types that all APIs share are.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const SCHEMAS: &str = "#/components/schemas/";

/// The types that all APIs share, by their full names.
static SHARED: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("meta.json")).expect("the file is part of the program and tested")
});

/// Whether a type is one that all APIs share.
pub(crate) fn is_shared(name: &str) -> bool {
    SHARED.contains_key(name)
}

/// Which of the built-in types are whole kinds.
pub(crate) struct Kinds {
    kinds: HashMap<String, GroupVersionKind>,
    /// The names of the types of their lists, about which nothing else is said.
    lists: HashSet<String>,
}

impl Kinds {
    /// The kinds of these resources and of their subresources.
    pub(crate) fn new(resources: &[Arc<Resource>]) -> Self {
        let (mut kinds, mut lists) = (HashMap::new(), HashSet::new());
        for resource in resources {
            let of_subresources = resource
                .subresources
                .iter()
                .map(|sub| (subresource_schema(&sub.behaviour), sub.kind.clone()));
            let schema = resource.schema();
            let package = schema.as_ref().and_then(|schema| schema.place().definition()?.rsplit_once('.'));
            lists.extend(package.map(|(package, _)| format!("{package}.{}", resource.names.list_kind)));
            let all = of_subresources.chain([(resource.schema(), resource.kind())]);
            for (schema, kind) in all {
                if let Some(definition) = schema.as_ref().and_then(|schema| schema.place().definition()) {
                    kinds.insert(definition.to_owned(), kind);
                }
            }
        }
        Self { kinds, lists }
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

/// What documents are made from, besides the resources.
pub(crate) struct Sources<'a> {
    pub(crate) kinds: &'a Kinds,
    /// The names of all definitions that are built in.
    pub(crate) names: &'a HashSet<String>,
    pub(crate) texts: Arc<Texts>,
    pub(crate) definitions: &'a Definitions,
}

impl Sources<'_> {
    /// Whether something built in has this name.
    pub(crate) fn is_taken(&self, name: &str) -> bool {
        self.names.contains(name) || self.kinds.lists.contains(name)
    }
}

/// Gives the `spec` of the CustomResourceDefinition that a resource was made from.
pub type Definitions = dyn Fn(&Resource) -> Option<Value> + Send + Sync;

/// Which OpenAPI a document is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Version 3, which can say everything.
    V3,
    /// Version 2.
    V2,
}

/// Collects the types that are referred to, and those that they refer to.
pub(crate) struct Components<'a> {
    sources: &'a Sources<'a>,
    dialect: Dialect,
    /// Whose document it is: some of the shared types are known as kinds of every version.
    versions: Vec<GroupVersion>,
    schemas: BTreeMap<String, Value>,
    /// Those of custom resources, of which each version has its own.
    custom: Members,
    pending: Vec<Place>,
}

impl<'a> Components<'a> {
    pub(crate) fn new(sources: &'a Sources<'a>, dialect: Dialect, versions: Vec<GroupVersion>) -> Self {
        let (schemas, custom) = (BTreeMap::new(), Members::new());
        Self { sources, dialect, versions, schemas, custom, pending: Vec::new() }
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
            self.annotate(&name, &mut schema);
            if let Some(kinds) = self.shared_kinds(&name) {
                add(&mut schema, "x-kubernetes-group-version-kind", kinds);
            }
            self.schemas.insert(name, schema);
        }
        reference(name)
    }

    fn annotate(&self, name: &str, schema: &mut Value) {
        if let Some(text) = self.sources.texts.get(name) {
            annotate(schema, text);
        }
    }

    fn shared_kinds(&self, name: &str) -> Option<Value> {
        let kind = name.strip_prefix(META)?;
        let core = GroupVersion::new("", "v1");
        let versions = match kind {
            "Status" | "APIResourceList" | "APIGroup" | "APIGroupList" | "APIVersions" => vec![&core],
            "DeleteOptions" | "WatchEvent" => {
                let own = self.versions.iter().filter(|version| **version != core);
                [&core].into_iter().chain(own).collect()
            }
            _ => return None,
        };
        Some(versions.into_iter().map(|version| group_version_kind(&version.with_kind(kind))).collect())
    }

    /// References to the types of a custom resource and of its lists. If it has no definition any more, it is any object.
    pub(crate) fn custom(&mut self, resource: &Resource) -> (Value, Value) {
        let spec = (self.sources.definitions)(resource);
        let defined = spec.and_then(|mut spec| Defined::read(&mut spec, &resource.version.version));
        let Some(defined) = defined else {
            let any = json!({"type": "object"});
            return (any.clone(), any);
        };
        let is_taken = |name: &str| self.sources.is_taken(name);
        let name = |kind: &str| names::definition(&resource.version, kind, is_taken);
        let (object_name, list_name) = (name(&resource.names.kind), name(&resource.names.list_kind));
        let references = (reference(&object_name), reference(&list_name));
        let (object, list) = self.custom_schemas(resource, &defined, &references.0);
        self.meta("ObjectMeta");
        self.meta("ListMeta");
        self.custom.insert(object_name, Member::written(&object));
        self.custom.insert(list_name, Member::written(&list));
        references
    }

    fn custom_schemas(&self, resource: &Resource, defined: &Defined, items: &Value) -> (Value, Value) {
        let (texts, kind, list_kind) = (&self.sources.texts, &resource.names.kind, &resource.names.list_kind);
        let (mut object, mut list) = match self.dialect {
            Dialect::V3 => {
                let envelope = Envelope::lossless(texts);
                (defined.lossless(&envelope), envelope.list(items, kind, list_kind))
            }
            Dialect::V2 => {
                let envelope = Envelope::lossy(texts);
                (defined.lossy(&envelope), envelope.list(&swagger::reference(items), kind, list_kind))
            }
        };
        defined.mark(&mut list);
        for (schema, kind) in [(&mut object, kind), (&mut list, list_kind)] {
            let kind = group_version_kind(&resource.version.with_kind(kind));
            add(schema, "x-kubernetes-group-version-kind", json!([kind]));
        }
        (object, list)
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
        let mut items = self.object(schema);
        add(&mut items, "default", json!({}));
        self.meta("ListMeta");
        let of = kind.kind.strip_suffix("List").unwrap_or(&kind.kind);
        let mut list = Envelope::lossless(&self.sources.texts).list(&items, of, &kind.kind);
        list["properties"]["metadata"]["default"] = json!({});
        add(&mut list, "x-kubernetes-group-version-kind", json!([group_version_kind(kind)]));
        // A list is defined next to its items.
        let package = schema.and_then(|schema| schema.place().definition()?.rsplit_once('.'));
        let Some((package, _)) = package else { return list };
        let name = format!("{package}.{}", kind.kind);
        let reference = reference(&name);
        self.schemas.insert(name, list);
        reference
    }

    /// All types that were referred to.
    pub(crate) fn finish(mut self) -> Members {
        self.define_pending();
        if self.dialect == Dialect::V2 {
            self.schemas.values_mut().for_each(swagger::reduce);
        }
        let schemas = self.schemas.into_iter().map(|(name, schema)| (name, Member::Tree(schema)));
        self.custom.extend(schemas);
        self.custom
    }

    fn define_pending(&mut self) {
        while let Some(place) = self.pending.pop() {
            let Some(name) = place.definition() else { continue };
            let mut schema = self.inline(&place, 0);
            self.annotate(name, &mut schema);
            if let Some(kind) = self.sources.kinds.kinds.get(name) {
                schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(kind)]);
            }
            self.schemas.insert(name.to_owned(), schema);
        }
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
                let mut values = self.place(&place.at(*values), depth);
                if let Value::Object(list) = &mut values {
                    // Where lists are the members of a map, upstream does not say what is so anyway.
                    list.retain(|name, of| name != "x-kubernetes-list-type" || of != "atomic");
                }
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

/// Adds how strategic merge patches merge the field.
fn with_strategy(mut schema: Value, field: &Field) -> Value {
    let strategy = match (field.strategy(), field.retains_keys()) {
        (PatchStrategy::Default, false) => return schema,
        (PatchStrategy::Default, true) => "retainKeys",
        (PatchStrategy::Merge, false) => "merge",
        (PatchStrategy::Merge, true) => "merge,retainKeys",
        (PatchStrategy::Replace, _) => "replace",
    };
    add(&mut schema, "x-kubernetes-patch-strategy", strategy.into());
    if let Some(key) = field.merge_key() {
        add(&mut schema, "x-kubernetes-patch-merge-key", key.into());
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
