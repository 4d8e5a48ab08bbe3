//! What an update left alone.
//!
//! A value is the same as before if it is correlated with an old one and equal. Members correlate by name if the
//! schema has them, items of a list map by their keys. Nothing else correlates, so that an object with fields that
//! the schema does not know is never the same: as upstream has it.

use std::collections::HashMap;

use serde_json::Value;

use crate::{
    Object,
    schema::{ListType, Node},
};

/// The comparisons that were made already: errors of many levels would ask for the same ones again and again.
#[derive(Default)]
pub struct Correlation {
    /// By the address of the new value, which nothing moves while a walk lasts.
    known: HashMap<usize, bool>,
}

impl Correlation {
    /// Whether a value equals the one it is correlated with.
    pub fn equal(&mut self, node: Node<'_>, new: &Value, old: &Value) -> bool {
        match (new, old) {
            (Value::Array(new), Value::Array(old)) => {
                self.remember(address(new), |this| this.lists_equal(node, new, old))
            }
            (Value::Object(new), Value::Object(old)) => self.objects_equal(node, new, old),
            (new, old) => new == old,
        }
    }

    /// [`Correlation::equal`] for two objects, which may be whole ones.
    pub fn objects_equal(&mut self, node: Node<'_>, new: &Object, old: &Object) -> bool {
        self.remember(address(new), |this| {
            new.len() == old.len()
                && new.iter().all(|(name, value)| match (node.member(name), old.get(name)) {
                    (Some(member), Some(old)) => this.equal(member, value, old),
                    _ => false,
                })
        })
    }

    fn lists_equal(&mut self, node: Node<'_>, new: &[Value], old: &[Value]) -> bool {
        if new.len() != old.len() {
            return false;
        }
        let Some(items) = node.items().filter(|_| node.list_type() == ListType::Map) else {
            return new == old;
        };
        let old = KeyedItems::new(node, old);
        new.iter().all(|item| old.get(item).is_some_and(|old| self.equal(items, item, old)))
    }

    fn remember(&mut self, address: usize, compare: impl FnOnce(&mut Self) -> bool) -> bool {
        if let Some(known) = self.known.get(&address) {
            return *known;
        }
        let equal = compare(self);
        self.known.insert(address, equal);
        equal
    }
}

fn address<T>(value: &T) -> usize {
    std::ptr::from_ref(value) as usize
}

/// The items of a list map by their keys; of several with the same keys the first.
pub struct KeyedItems<'a, 'k> {
    keys: &'k [String],
    items: HashMap<String, &'a Value>,
}

impl<'a, 'k> KeyedItems<'a, 'k> {
    /// Those of a list that is this node. Only list maps have any.
    pub fn new(node: Node<'k>, list: &'a [Value]) -> Self {
        let keys = if node.list_type() == ListType::Map { node.map_keys() } else { &[] };
        let mut items = HashMap::new();
        for item in list {
            if let Some(key) = key_of(keys, item) {
                items.entry(key).or_insert(item);
            }
        }
        Self { keys, items }
    }

    /// The one that an item of another list is correlated with.
    pub fn get(&self, item: &Value) -> Option<&'a Value> {
        self.items.get(&key_of(self.keys, item)?).copied()
    }
}

/// The keys of an item as one text; `None` unless it has all of them and they are scalars.
fn key_of(keys: &[String], item: &Value) -> Option<String> {
    let object = item.as_object().filter(|_| !keys.is_empty())?;
    let mut text = String::new();
    for key in keys {
        match object.get(key)? {
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
            // As JSON, so that 1 and "1" differ and nothing in a text can look like the end of it.
            scalar => text.push_str(&scalar.to_string()),
        }
        text.push('\0');
    }
    Some(text)
}
