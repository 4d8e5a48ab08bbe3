//! Which old value a value is compared with, and what an update left alone.
//!
//! Members correlate by name, items of a list map by their keys, nothing else does. An object with fields that the
//! schema does not know never equals its old value: as upstream has it.

use std::collections::HashMap;

use concord_structural::{ListType, Node};
use serde_json::Value;

use crate::json::Json;

/// A value and the one it is correlated with.
#[derive(Clone, Copy)]
pub(crate) struct Pair<'a> {
    pub(crate) node: Node<'a>,
    pub(crate) new: Json<'a>,
    pub(crate) old: Json<'a>,
}

/// The comparisons that were made already: errors of many levels would ask for the same ones again and again.
#[derive(Default)]
pub(crate) struct Comparisons {
    known: HashMap<usize, bool>,
}

impl Comparisons {
    /// Whether a value equals the one it is correlated with.
    pub(crate) fn is_unchanged(&mut self, pair: Pair<'_>) -> bool {
        let address = pair.new.address();
        if let Some(known) = self.known.get(&address) {
            return *known;
        }
        let equal = self.compare(pair);
        self.known.insert(address, equal);
        equal
    }

    fn compare(&mut self, pair: Pair<'_>) -> bool {
        let Pair { node, new, old } = pair;
        if let (Some(members), Some(others)) = (new.object(), old.object()) {
            return members.len() == others.len()
                && members.iter().all(|(name, value)| {
                    let schema = node.property(name).or_else(|| node.additional().schema());
                    let child = schema.zip(old.member(name));
                    child.is_some_and(|(node, old)| {
                        self.is_unchanged(Pair { node, new: Json::Value(value), old })
                    })
                });
        }
        match (new, old) {
            (Json::Value(Value::Array(new)), Json::Value(Value::Array(old))) => self.lists(node, new, old),
            (Json::Value(new), Json::Value(old)) => new == old,
            _ => false,
        }
    }

    fn lists(&mut self, node: Node<'_>, new: &[Value], old: &[Value]) -> bool {
        if new.len() != old.len() {
            return false;
        }
        let Some(items) = node.items().filter(|_| node.list_type() == ListType::Map) else {
            return new == old;
        };
        let old = OldItems::new(node, Some(old));
        new.iter().all(|item| {
            let old = old.of(item);
            old.is_some_and(|old| self.is_unchanged(Pair { node: items, new: Json::Value(item), old }))
        })
    }
}

/// The items of an old list by their keys; of several with the same keys the first. Only list maps have any.
pub(crate) struct OldItems<'a> {
    keys: &'a [String],
    items: HashMap<String, &'a Value>,
}

impl<'a> OldItems<'a> {
    pub(crate) fn new(list: Node<'a>, old: Option<&'a [Value]>) -> Self {
        let keys = if list.list_type() == ListType::Map { list.map_keys() } else { &[] };
        let mut items = HashMap::new();
        for item in old.into_iter().flatten() {
            if let Some(key) = key_of(keys, item) {
                items.entry(key).or_insert(item);
            }
        }
        Self { keys, items }
    }

    pub(crate) fn of(&self, item: &Value) -> Option<Json<'a>> {
        if self.items.is_empty() {
            return None;
        }
        self.items.get(&key_of(self.keys, item)?).copied().map(Json::Value)
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
