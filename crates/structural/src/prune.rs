//! Fields that the schema does not know.

use serde_json::Value;

use crate::{
    Object,
    schema::{Additional, Node, Schema},
};

/// How many unknown fields of an object are told. Upstream tells all of them.
pub const MAX_UNKNOWN_FIELDS: usize = 1_000;

/// What every resource has, whatever its schema says.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

impl Schema {
    /// Removes the fields that the schema does not know and answers their paths, sorted. The type and the metadata
    /// of the object, and of resources in it, are left alone.
    pub fn prune(&self, object: &mut Object) -> Vec<String> {
        if self.preserves_all {
            return Vec::new();
        }
        let mut walk = Walk { path: String::new(), unknown: Vec::new() };
        let root = self.root();
        if root.preserves_unknown_fields() {
            walk.kept(object, root, true);
        } else {
            walk.members(object, root, true);
        }
        walk.unknown.sort_unstable();
        walk.unknown
    }

    /// Removes nulls from members that can neither be null nor have a default.
    pub fn prune_nulls(&self, object: &mut Object) {
        nulls(object, self.root());
    }
}

/// Prunes a default: the value of a node, alone.
pub(crate) fn prune_default(value: &mut Value, node: Node<'_>, is_resource: bool) {
    let mut walk = Walk { path: String::new(), unknown: Vec::new() };
    match value {
        Value::Object(members) if node.preserves_unknown_fields() => walk.kept(members, node, is_resource),
        Value::Object(members) => walk.members(members, node, is_resource),
        value => walk.value(value, Some(node)),
    }
}

struct Walk {
    path: String,
    unknown: Vec<String>,
}

impl Walk {
    fn value(&mut self, value: &mut Value, node: Option<Node<'_>>) {
        match (value, node) {
            (Value::Object(members), Some(node)) if node.preserves_unknown_fields() => {
                self.kept(members, node, node.is_embedded_resource());
            }
            (Value::Object(members), Some(node)) => self.members(members, node, node.is_embedded_resource()),
            (Value::Object(members), None) => {
                for name in members.keys() {
                    self.record(name);
                }
                members.clear();
            }
            (Value::Array(items), Some(node)) if node.preserves_unknown_fields() => {
                self.kept_items(items, node)
            }
            (Value::Array(items), node) => {
                let node = node.and_then(Node::items);
                for (index, item) in items.iter_mut().enumerate() {
                    self.inside(&format!("[{index}]"), |walk| walk.value(item, node));
                }
            }
            _ => {}
        }
    }

    fn members(&mut self, members: &mut Object, node: Node<'_>, is_resource: bool) {
        members.retain(|name, value| {
            if is_resource && META.contains(&name.as_str()) {
                return true;
            }
            let known = known(node, name);
            match known {
                Some(schema) => self.inside_member(name, |walk| walk.value(value, schema)),
                None => self.record(name),
            }
            known.is_some()
        });
    }

    /// Where unknown fields stay, only what the schema knows is looked into.
    fn kept(&mut self, members: &mut Object, node: Node<'_>, is_resource: bool) {
        for (name, value) in members.iter_mut() {
            if is_resource && META.contains(&name.as_str()) {
                continue;
            }
            if let Some(schema) = known(node, name) {
                self.inside_member(name, |walk| walk.value(value, schema));
            }
        }
    }

    fn kept_items(&mut self, items: &mut [Value], node: Node<'_>) {
        let Some(node) = node.items() else { return };
        for (index, item) in items.iter_mut().enumerate() {
            self.inside(&format!("[{index}]"), |walk| match item {
                Value::Object(members) => walk.kept(members, node, node.is_embedded_resource()),
                Value::Array(items) => walk.kept_items(items, node),
                _ => {}
            });
        }
    }

    fn inside_member(&mut self, name: &str, then: impl FnOnce(&mut Self)) {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.inside(&format!("{dot}{name}"), then);
    }

    fn inside(&mut self, step: &str, then: impl FnOnce(&mut Self)) {
        let len = self.path.len();
        self.path.push_str(step);
        then(self);
        self.path.truncate(len);
    }

    fn record(&mut self, name: &str) {
        if self.unknown.len() < MAX_UNKNOWN_FIELDS {
            self.inside_member(name, |walk| walk.unknown.push(walk.path.clone()));
        }
    }
}

/// The schema of a member: `None` if it is unknown, `Some(None)` if it is allowed and nothing is known of it.
fn known<'a>(node: Node<'a>, name: &str) -> Option<Option<Node<'a>>> {
    match (node.property(name), node.additional()) {
        (Some(property), _) => Some(Some(property)),
        (None, Additional::Unset) => None,
        (None, Additional::Bool(_)) => Some(None),
        (None, Additional::Schema(schema)) => Some(Some(schema)),
    }
}

fn nulls(members: &mut Object, node: Node<'_>) {
    members.retain(|name, value| {
        let member = node.member(name);
        let goes = |member: Node<'_>| !member.is_nullable() && member.default_value().is_none();
        if value.is_null() {
            return !member.is_some_and(goes);
        }
        if let Some(member) = member {
            nulls_below(value, member);
        }
        true
    });
}

fn nulls_below(value: &mut Value, node: Node<'_>) {
    match value {
        Value::Object(members) => nulls(members, node),
        Value::Array(items) => {
            if let Some(node) = node.items() {
                items.iter_mut().for_each(|item| nulls_below(item, node));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
