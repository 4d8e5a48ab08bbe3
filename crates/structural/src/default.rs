//! Defaults.

use serde_json::Value;

use crate::{
    Object,
    schema::{Node, Schema},
};

impl Schema {
    /// Whether there is any default.
    #[must_use]
    pub fn has_defaults(&self) -> bool {
        self.root().has_defaults_below()
    }

    /// Gives every member that is missing, and every null that is not allowed, its default. Nothing is made for what
    /// is in an absent parent.
    pub fn default(&self, object: &mut Object) {
        members(object, self.root());
    }
}

fn value(value: &mut Value, node: Node<'_>) {
    match value {
        Value::Object(object) => members(object, node),
        Value::Array(items) => {
            if let Some(schema) = node.items() {
                for item in items {
                    replace_null(item, schema);
                    self::value(item, schema);
                }
            }
        }
        _ => {}
    }
}

fn members(object: &mut Object, node: Node<'_>) {
    // Nulls in maps and lists go by the default of what is in them, which may be below.
    if !node.has_defaults_below() {
        return;
    }
    for (name, property) in node.properties() {
        let Some(default) = property.default_value() else { continue };
        match object.get_mut(name) {
            None => {
                object.insert(name.to_owned(), default.clone());
            }
            Some(given) if given.is_null() && !property.is_nullable() => *given = default.clone(),
            Some(_) => {}
        }
    }
    let additional = node.additional().schema();
    for (name, given) in object {
        if let Some(property) = node.property(name) {
            value(given, property);
        } else if let Some(additional) = additional {
            replace_null(given, additional);
            value(given, additional);
        }
    }
}

fn replace_null(value: &mut Value, node: Node<'_>) {
    if value.is_null()
        && !node.is_nullable()
        && let Some(default) = node.default_value()
    {
        *value = default.clone();
    }
}
