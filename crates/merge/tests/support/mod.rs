//! A schema small enough to write down in a test.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

pub mod versions;

use std::{collections::BTreeMap, sync::Arc};

use concord_merge::{
    strategic::{PatchField, PatchSchema, PatchStrategy},
    typed::{Kinds, ListKind, MapKind, Scalar, Type},
};
use serde_json::{Value, json};

#[derive(Clone, Debug)]
enum List {
    Atomic,
    Set,
    Map(Vec<String>),
}

#[derive(Clone, Debug, Default)]
struct Node {
    scalar: Option<Scalar>,
    list: Option<List>,
    map: Option<MapKind>,
    fields: BTreeMap<&'static str, Schema>,
    values: Option<Schema>,
    items: Option<Schema>,
    defaults: BTreeMap<&'static str, Value>,
    free_form: bool,
    replace: bool,
}

/// A place in the schema.
#[derive(Clone, Debug)]
pub struct Schema(Arc<Node>);

fn schema(node: Node) -> Schema {
    Schema(Arc::new(node))
}

pub fn text() -> Schema {
    schema(Node { scalar: Some(Scalar::String), ..Node::default() })
}

pub fn number() -> Schema {
    schema(Node { scalar: Some(Scalar::Numeric), ..Node::default() })
}

pub fn boolean() -> Schema {
    schema(Node { scalar: Some(Scalar::Boolean), ..Node::default() })
}

/// A struct.
pub fn object<const N: usize>(fields: [(&'static str, Schema); N]) -> Schema {
    let fields = BTreeMap::from(fields);
    schema(Node { map: Some(MapKind::Granular), fields, ..Node::default() })
}

/// A map with any keys.
pub fn map(values: Schema) -> Schema {
    schema(Node { map: Some(MapKind::Granular), values: Some(values), ..Node::default() })
}

pub fn list(items: Schema) -> Schema {
    schema(Node { list: Some(List::Atomic), items: Some(items), ..Node::default() })
}

pub fn set(items: Schema) -> Schema {
    schema(Node { list: Some(List::Set), items: Some(items), ..Node::default() })
}

pub fn map_list<const N: usize>(keys: [&str; N], items: Schema) -> Schema {
    let keys = keys.map(str::to_owned).to_vec();
    schema(Node { list: Some(List::Map(keys)), items: Some(items), ..Node::default() })
}

/// Any JSON.
pub fn free_form() -> Schema {
    schema(Node {
        scalar: Some(Scalar::Untyped),
        list: Some(List::Atomic),
        map: Some(MapKind::Granular),
        free_form: true,
        ..Node::default()
    })
}

impl Schema {
    pub fn atomic(self) -> Self {
        let mut node = (*self.0).clone();
        node.map = node.map.map(|_| MapKind::Atomic);
        node.list = node.list.map(|_| List::Atomic);
        schema(node)
    }

    pub fn default(self, field: &'static str, value: Value) -> Self {
        let mut node = (*self.0).clone();
        node.defaults.insert(field, value);
        schema(node)
    }

    /// A field whose patchStrategy is replace.
    pub fn replaced(self) -> Self {
        let mut node = (*self.0).clone();
        node.replace = true;
        schema(node)
    }
}

impl Type for Schema {
    fn kinds(&self) -> Kinds<'_> {
        let list = self.0.list.as_ref().map(|list| match list {
            List::Atomic => ListKind::Atomic,
            List::Set => ListKind::Set,
            List::Map(keys) => ListKind::Map(keys),
        });
        Kinds { scalar: self.0.scalar, list, map: self.0.map }
    }

    fn field(&self, name: &str) -> Option<Self> {
        self.0.fields.get(name).cloned()
    }

    fn values(&self) -> Option<Self> {
        if self.0.free_form { Some(self.clone()) } else { self.0.values.clone() }
    }

    fn items(&self) -> Option<Self> {
        if self.0.free_form { Some(self.clone()) } else { self.0.items.clone() }
    }

    fn default_of(&self, field: &str) -> Option<Value> {
        self.0.defaults.get(field).cloned()
    }

    fn is_free_form(&self) -> bool {
        self.0.free_form
    }
}

impl PatchSchema for Schema {
    fn name(&self) -> &str {
        "Thing"
    }

    fn field(&self, name: &str) -> Option<PatchField<Self>> {
        let field = self.0.fields.get(name)?.clone();
        let strategy = match &field.0.list {
            Some(List::Set | List::Map(_)) => PatchStrategy::Merge,
            _ if field.0.replace => PatchStrategy::Replace,
            _ => PatchStrategy::Default,
        };
        let merge_key = match &field.0.list {
            Some(List::Map(keys)) => keys.first().cloned(),
            _ => None,
        };
        Some(PatchField {
            schema: field.0.items.clone().unwrap_or_else(|| field.clone()),
            strategy,
            merge_key,
        })
    }
}

/// A kind with one field of each sort.
pub fn thing() -> Schema {
    let port = object([("port", number()), ("protocol", text()), ("name", text())])
        .default("protocol", json!("TCP"));
    let container = object([
        ("name", text()),
        ("image", text()),
        ("args", list(text())),
        ("ports", map_list(["port", "protocol"], port)),
    ]);
    let metadata = object([
        ("name", text()),
        ("namespace", text()),
        ("uid", text()),
        ("resourceVersion", text()),
        ("labels", map(text())),
        ("annotations", map(text())),
        ("finalizers", set(text())),
    ]);
    let spec = object([
        ("replicas", number()),
        ("paused", boolean()),
        ("selector", map(text()).atomic()),
        ("strategy", object([("type", text()), ("rolling", text())])),
        ("containers", map_list(["name"], container)),
        ("tags", set(text())),
        ("order", list(text())),
        ("extra", free_form()),
        ("swapped", object([("a", text()), ("b", text())]).replaced()),
    ]);
    let status = object([("ready", number())]);
    object([
        ("apiVersion", text()),
        ("kind", text()),
        ("metadata", metadata),
        ("spec", spec),
        ("status", status),
    ])
}
