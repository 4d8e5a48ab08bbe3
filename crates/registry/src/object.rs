//! The parts of an object's metadata that the verbs read and write.

use std::sync::LazyLock;

use concord_merge::apply::Time;
use serde_json::{Map, Value};

/// An object: what stands between the outermost braces.
pub type Object = Map<String, Value>;

/// An object's metadata, to be read. Members of a wrong type read as absent: the schema has refused them
/// where they come from a client.
#[derive(Clone, Copy, Debug)]
pub struct Metadata<'a>(Option<&'a Object>);

/// The metadata of an object; empty if it has none.
pub fn metadata(object: &Object) -> Metadata<'_> {
    Metadata(object.get("metadata").and_then(Value::as_object))
}

/// The metadata of an object, made if it has none.
pub fn metadata_mut(object: &mut Object) -> &mut Object {
    let slot = object.entry("metadata").or_insert_with(|| Value::Object(Object::new()));
    if !slot.is_object() {
        *slot = Value::Object(Object::new());
    }
    match slot {
        Value::Object(metadata) => metadata,
        _ => unreachable!("made an object above"),
    }
}

impl<'a> Metadata<'a> {
    /// A member.
    pub fn get(self, name: &str) -> Option<&'a Value> {
        self.0?.get(name).filter(|value| !value.is_null())
    }

    /// A text; empty if absent.
    pub fn text(self, name: &str) -> &'a str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// The name.
    pub fn name(self) -> &'a str {
        self.text("name")
    }

    /// The namespace.
    pub fn namespace(self) -> &'a str {
        self.text("namespace")
    }

    /// The uid.
    pub fn uid(self) -> &'a str {
        self.text("uid")
    }

    /// The resource version as the client wrote it.
    pub fn resource_version(self) -> &'a str {
        self.text("resourceVersion")
    }

    /// The generation; 0 if the kind has none.
    pub fn generation(self) -> i64 {
        self.get("generation").and_then(Value::as_i64).unwrap_or_default()
    }

    /// When the deletion began, or will be carried out.
    pub fn deletion_timestamp(self) -> Option<Time> {
        self.get("deletionTimestamp").and_then(Value::as_str).and_then(Time::parse)
    }

    /// Whether the object is being deleted.
    pub fn is_terminating(self) -> bool {
        self.get("deletionTimestamp").is_some()
    }

    /// How long the deletion may take.
    pub fn deletion_grace_period(self) -> Option<i64> {
        self.get("deletionGracePeriodSeconds").and_then(Value::as_i64)
    }

    /// The finalizers.
    pub fn finalizers(self) -> Vec<&'a str> {
        let items = self.get("finalizers").and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The labels, if there are any.
    pub fn labels(self) -> Option<&'a Object> {
        self.get("labels").and_then(Value::as_object)
    }
}

/// Sets a member, or removes it.
pub(crate) fn set(metadata: &mut Object, name: &str, value: Option<Value>) {
    match value {
        Some(value) => drop(metadata.insert(name.to_owned(), value)),
        None => drop(metadata.remove(name)),
    }
}

/// The empty object that stands in for metadata that is missing.
pub(crate) fn members(object: &Object) -> &Object {
    static NONE: LazyLock<Object> = LazyLock::new(Object::new);
    object.get("metadata").and_then(Value::as_object).unwrap_or(&NONE)
}
