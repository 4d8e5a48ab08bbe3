//! Lists whose items must differ: `x-kubernetes-list-type: set` and `map`.

use std::collections::HashMap;

use concord_meta::field::{Error, Path};
use serde_json::Value;

use crate::{
    Object,
    schema::{ListType, Node, Schema},
};

impl Schema {
    /// Which items occur twice in sets and maps. An update is asked about only if the old object had none.
    #[must_use]
    pub fn validate_lists(&self, object: &Object) -> Vec<Error> {
        let mut errors = Vec::new();
        members(&Path::nil(), self.root(), object, &mut errors);
        errors
    }
}

fn members(path: &Path, node: Node<'_>, object: &Object, errors: &mut Vec<Error>) {
    let below = |node: &Node<'_>| node.has_lists_below();
    if let Some(schema) = node.additional().schema().filter(below) {
        for (key, member) in object {
            value(&path.key(key), schema, member, errors);
        }
    }
    for (name, member) in object {
        if let Some(property) = node.property(name).filter(below) {
            value(&path.child(name), property, member, errors);
        }
    }
}

fn value(path: &Path, node: Node<'_>, value: &Value, errors: &mut Vec<Error>) {
    match value {
        Value::Array(items) => list(path, node, items, errors),
        Value::Object(object) => members(path, node, object, errors),
        _ => {}
    }
}

fn list(path: &Path, node: Node<'_>, items: &[Value], errors: &mut Vec<Error>) {
    match node.list_type() {
        ListType::Set => {
            let twice = second_occurrences(items.iter().map(identity));
            errors.extend(twice.into_iter().map(|at| Error::duplicate(&path.index(at), &items[at])));
        }
        ListType::Map => errors.extend(map_duplicates(path, node, items)),
        ListType::Unset | ListType::Atomic => {}
    }
    if let Some(schema) = node.items().filter(|items| items.has_lists_below()) {
        for (index, item) in items.iter().enumerate() {
            value(&path.index(index), schema, item, errors);
        }
    }
}

/// What two equal items have in common. As JSON, 1 and "1" differ, and so do 1 and 1.0.
fn identity(item: &Value) -> String {
    item.to_string()
}

/// Where something occurs for the second time; a third one is not told.
fn second_occurrences(items: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut twice = Vec::new();
    for (at, item) in items.enumerate() {
        let times = seen.entry(item).or_default();
        *times += 1;
        if *times == 2 {
            twice.push(at);
        }
    }
    twice
}

fn map_duplicates(path: &Path, node: Node<'_>, items: &[Value]) -> Vec<Error> {
    let strange = items.iter().position(|item| !(item.is_null() || item.is_object()));
    if let Some(at) = strange {
        let detail = "must be an object for an array of list-type map";
        return vec![Error::invalid(&path.index(at), &items[at], detail)];
    }
    let keys = |item: &Value| -> Value {
        let given = node.map_keys().iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
        Value::Object(given.collect())
    };
    let twice = second_occurrences(items.iter().map(|item| identity(&keys(item))));
    twice.into_iter().map(|at| Error::duplicate(&path.index(at), &keys(&items[at]))).collect()
}
