//! The types that rules see, with the sizes that costs are estimated from.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use concord_cel::{Decl, DeclKind, FieldDecl, ListSemantics, MAX_REQUEST_BYTES, ObjectDecl, Type, escape};
use concord_structural::{Kind, ListType, Node};
use serde_json::Value;

/// What the type of `self` is called. Upstream's name has a random number, so that nobody relies on it.
const SELF_TYPE: &str = "selfType";

const MAX_NAME_BYTES: usize = 256;

/// The largest string in a request of nothing else, without its quotes.
const LONGEST_STRING: u64 = MAX_REQUEST_BYTES - 2;
/// Strings of these formats are of their own types; the sizes are those in JSON.
const FORMATS: &[(&str, Type, u64, u64)] = &[
    ("duration", Type::Duration, 32, 3),
    ("date", Type::Timestamp, 12, 12),
    ("date-time", Type::Timestamp, 32, 21),
];
const MIN_STRING: u64 = 2;

/// Whether expressions can see values of a node: they cannot see what has no type.
pub(crate) fn is_visible(node: Node<'_>) -> bool {
    match node.kind() {
        _ if node.is_int_or_string() => true,
        Kind::Any => false,
        Kind::Array => node.items().is_some_and(is_visible),
        Kind::Object => node.additional().schema().is_none_or(is_visible),
        Kind::String | Kind::Number | Kind::Integer | Kind::Boolean => true,
    }
}

/// The declaration of a node, if expressions can see values of it. Of a resource its type and its names are visible
/// even if the schema does not mention them.
pub(crate) fn of(node: Node<'_>, is_resource: bool) -> Option<Decl> {
    declare(node, SELF_TYPE, is_resource)
}

/// The declaration of a property, of the items (`None`) or of the values (`None`) of what was declared.
pub(crate) fn below(decl: &Decl, property: Option<&str>) -> Option<Arc<Decl>> {
    match (&decl.kind, property) {
        (DeclKind::List(element, _) | DeclKind::Map(element), None) => Some(Arc::clone(element)),
        (DeclKind::Object(object), Some(name)) => Some(Arc::clone(&object.fields.get(&escape(name)?)?.decl)),
        _ => None,
    }
}

/// The same, optional.
pub(crate) fn optional(decl: &Arc<Decl>) -> Decl {
    let kind = DeclKind::Optional(Arc::clone(decl));
    Decl { kind, max_elements: decl.max_elements, min_serialized_size: 0 }
}

fn declare(node: Node<'_>, name: &str, is_resource: bool) -> Option<Decl> {
    if node.is_int_or_string() {
        let max_elements = characters(node).unwrap_or(LONGEST_STRING);
        return Some(Decl { max_elements, ..Decl::dynamic() });
    }
    match node.kind() {
        Kind::Array => list(node, name),
        Kind::Object => match node.additional().schema() {
            Some(values) => map(node, values, name),
            None => Some(object(node, name, is_resource)),
        },
        Kind::String => Some(string(node)),
        Kind::Boolean => Some(Decl { min_serialized_size: 4, ..Decl::simple(Type::Bool) }),
        Kind::Number => Some(Decl::simple(Type::Double)),
        Kind::Integer => Some(Decl::simple(Type::Int)),
        Kind::Any => None,
    }
}

/// What the type of a part is called. Names tell types apart and are seen in messages; long ones are shortened, so that
/// the names of a deep schema do not take the square of its depth.
fn type_name(name: &str, part: &str) -> String {
    if name.len() + part.len() < MAX_NAME_BYTES {
        return format!("{name}.{part}");
    }
    let mut hasher = DefaultHasher::new();
    (name, part).hash(&mut hasher);
    format!("{SELF_TYPE}.@{:016x}", hasher.finish())
}

/// A bound; a negative one counts as zero.
fn bound(limit: Option<i64>) -> Option<u64> {
    limit.map(|limit| u64::try_from(limit).unwrap_or(0))
}

/// The bytes of so many characters as are allowed: each takes up to four.
fn characters(node: Node<'_>) -> Option<u64> {
    bound(node.max_length()).map(|max| max.saturating_mul(4))
}

fn list(node: Node<'_>, name: &str) -> Option<Decl> {
    let items = node.items()?;
    let element = declare(items, &type_name(name, "@idx"), items.is_embedded_resource())?;
    let most = (MAX_REQUEST_BYTES - 2) / (element.min_serialized_size + 1);
    let max_elements = bound(node.max_items()).unwrap_or(most);
    let semantics = match node.list_type() {
        ListType::Set => ListSemantics::Set,
        ListType::Map => ListSemantics::Map(node.map_keys().to_vec()),
        ListType::Unset | ListType::Atomic => ListSemantics::Atomic,
    };
    let kind = DeclKind::List(Arc::new(element), semantics);
    Some(Decl { kind, max_elements, min_serialized_size: 2 })
}

fn map(node: Node<'_>, values: Node<'_>, name: &str) -> Option<Decl> {
    let value = declare(values, &type_name(name, "@elem"), values.is_embedded_resource())?;
    let most = (MAX_REQUEST_BYTES - 2) / (value.min_serialized_size + 6);
    let max_elements = bound(node.max_properties()).unwrap_or(most);
    Some(Decl { kind: DeclKind::Map(Arc::new(value)), max_elements, min_serialized_size: 2 })
}

fn object(node: Node<'_>, name: &str, is_resource: bool) -> Decl {
    let mut object = Fields { required: node.required().collect(), size: 2, fields: BTreeMap::new() };
    let adds_meta = is_resource && !has_meta(node);
    for (property, child) in node.properties() {
        if adds_meta && META.contains(&property) {
            continue;
        }
        let decl = declare(child, &type_name(name, property), child.is_embedded_resource());
        if let Some(decl) = decl {
            object.insert(property, decl, child.default_value().is_some());
        }
    }
    if adds_meta {
        let names = ["name", "generateName"].map(|name| (name.to_owned(), any_string()));
        let meta = Decl::object(&type_name(name, "metadata"), names);
        object.insert("metadata", meta, false);
        object.insert("apiVersion", any_string(), false);
        object.insert("kind", any_string(), false);
    }
    let min_serialized_size = object.size;
    let object = ObjectDecl { name: name.to_owned(), fields: object.fields };
    Decl { kind: DeclKind::Object(Arc::new(object)), max_elements: 0, min_serialized_size }
}

struct Fields<'a> {
    required: Vec<&'a str>,
    size: u64,
    fields: BTreeMap<String, FieldDecl>,
}

impl Fields<'_> {
    fn insert(&mut self, property: &str, decl: Decl, has_default: bool) {
        // A default is filled in by the server, so it takes nothing from the request.
        if !has_default && self.required.contains(&property) {
            self.size += property.len() as u64 + decl.min_serialized_size + 4;
        }
        if let Some(field) = escape(property) {
            let decl = FieldDecl { decl: Arc::new(decl), property: property.to_owned() };
            self.fields.insert(field, decl);
        }
    }
}

/// What every resource has.
const META: &[&str] = &["apiVersion", "kind", "metadata"];

/// Whether the schema of a resource declares all of its type and its names.
fn has_meta(node: Node<'_>) -> bool {
    let is = |node: Option<Node<'_>>, kind| node.is_some_and(|node| node.kind() == kind);
    let metadata = node.property("metadata");
    let named = |name| is(metadata.and_then(|metadata| metadata.property(name)), Kind::String);
    is(node.property("kind"), Kind::String)
        && is(node.property("apiVersion"), Kind::String)
        && is(metadata, Kind::Object)
        && named("name")
        && named("generateName")
}

fn any_string() -> Decl {
    let kind = DeclKind::Simple(Type::String);
    Decl { kind, max_elements: LONGEST_STRING, min_serialized_size: MIN_STRING }
}

fn string(node: Node<'_>) -> Decl {
    let format = node.format();
    if format == "byte" {
        let max_elements = bound(node.max_length()).unwrap_or(LONGEST_STRING);
        return Decl { kind: DeclKind::Simple(Type::Bytes), max_elements, min_serialized_size: MIN_STRING };
    }
    if let Some((_, found, most, least)) = FORMATS.iter().find(|(name, ..)| *name == format) {
        let kind = DeclKind::Simple(found.clone());
        return Decl { kind, max_elements: *most, min_serialized_size: *least };
    }
    let values = node.enumeration();
    let longest = values.iter().filter_map(Value::as_str).map(str::len).max().unwrap_or(0) as u64;
    let of_values = (!values.is_empty()).then_some(longest);
    let max_elements = characters(node).or(of_values).unwrap_or(LONGEST_STRING);
    Decl { max_elements, ..any_string() }
}

#[cfg(test)]
mod tests;
