//! Values against a schema, with upstream's errors.
//!
//! Upstream asks eight checks in a fixed order: type, junctors, string, format, number, list, enumeration, object.
//! Errors come in that order, members by name. Of the branches of a junctor that all fail, the one that the most
//! checks applied to is shown; every function here answers that count.

mod junctors;
mod number;
mod path;
mod scalar;

use std::collections::HashSet;

use concord_meta::field::{Error, Path};
use serde_json::Value;

use self::path::Trail;
use crate::{
    Object,
    correlate::{Correlation, KeyedItems},
    schema::{Additional, Node, Schema},
};

/// How many errors of an object are told. Upstream tells all, and takes a time that grows with their square.
pub const MAX_ERRORS: usize = 10_000;

impl Schema {
    /// What is wrong with an object. With `old`, the object before an update, what was not changed is not wrong.
    #[must_use]
    pub fn validate(&self, object: &Object, old: Option<&Object>) -> Vec<Error> {
        let path = Path::nil();
        let mut walk = Walk::new(&path, Mode::Object);
        walk.whole_object(self.root(), object, old);
        walk.finish()
    }

    /// What is wrong with the status of an object, which is all that an update of the status checks.
    #[must_use]
    pub fn validate_status(&self, status: &Value, old: Option<&Value>) -> Vec<Error> {
        let Some(node) = self.root().property("status") else { return Vec::new() };
        let path = Path::new("status");
        let mut walk = Walk::new(&path, Mode::Object);
        walk.value(node, status, old);
        walk.finish()
    }
}

/// What is wrong with the default at a node.
pub(crate) fn default_errors(node: Node<'_>, default: &Value, path: &Path) -> Vec<Error> {
    let mut walk = Walk::new(path, Mode::Default);
    walk.value(node, default, None);
    walk.finish()
}

/// Upstream compiles the schema in another way for defaults: there int-or-string has no type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Object,
    Default,
}

struct Walk<'a> {
    /// The path that errors are below.
    base: &'a Path,
    mode: Mode,
    trail: Trail<'a>,
    errors: Vec<Error>,
    /// Errors that were met when there was no room for more.
    dropped: usize,
    correlation: Correlation,
}

/// A state of the errors to come back to.
#[derive(Clone, Copy)]
struct Mark {
    errors: usize,
    dropped: usize,
}

impl<'a> Walk<'a> {
    fn new(base: &'a Path, mode: Mode) -> Self {
        let (trail, correlation) = (Trail::default(), Correlation::default());
        Self { base, mode, trail, errors: Vec::new(), dropped: 0, correlation }
    }

    /// Every error once.
    fn finish(self) -> Vec<Error> {
        let mut errors = self.errors;
        if errors.len() > 1 {
            let mut seen = HashSet::new();
            errors.retain(|error| seen.insert(error.to_string()));
        }
        errors
    }

    fn mark(&self) -> Mark {
        Mark { errors: self.errors.len(), dropped: self.dropped }
    }

    fn failed_since(&self, mark: Mark) -> bool {
        self.errors.len() > mark.errors || self.dropped > mark.dropped
    }

    fn forget_since(&mut self, mark: Mark) {
        self.errors.truncate(mark.errors);
        self.dropped = mark.dropped;
    }

    fn add(&mut self, error: impl FnOnce(&Self) -> Error) {
        if self.errors.len() < MAX_ERRORS {
            let error = error(self);
            self.errors.push(error);
        } else {
            self.dropped += 1;
        }
    }

    /// An error about the place the walk is at. `detail` gets the name of the place as messages have it.
    fn add_here(&mut self, error: impl FnOnce(&Path, &str) -> Error) {
        self.add(|walk| {
            let name = walk.trail.name();
            error(&walk.trail.field(walk.base, &name), &name)
        });
    }

    /// An error that upstream gives no place but in its text.
    fn add_placeless(&mut self, detail: String) {
        self.add(|walk| Error::invalid(walk.base, "", detail));
    }

    /// Checks an object as [`value`](Self::value) would, without making a value of it.
    fn whole_object(&mut self, node: Node<'a>, object: &'a Object, old: Option<&'a Object>) {
        let mark = self.mark();
        // The type of the root is object, or there is none.
        self.whole_junctors(node, object);
        self.enumeration_of_object(node, object);
        self.members(node, object, old);
        if let Some(old) = old
            && self.failed_since(mark)
            && self.correlation.objects_equal(node, object, old)
        {
            self.forget_since(mark);
        }
    }

    /// Checks a value and answers how many checks applied.
    fn value(&mut self, node: Node<'a>, value: &'a Value, old: Option<&'a Value>) -> u32 {
        let mark = self.mark();
        let count = self.checks(node, value, old);
        if let Some(old) = old
            && self.failed_since(mark)
            && self.correlation.equal(node, value, old)
        {
            self.forget_since(mark);
        }
        count
    }

    fn checks(&mut self, node: Node<'a>, value: &'a Value, old: Option<&'a Value>) -> u32 {
        if value.is_null() {
            let fits = self.null(node);
            self.enumeration(node, value);
            return u32::from(fits);
        }
        // One for the value; junctors and enumeration always apply.
        let mut count = 3;
        if self.is_typed(node) {
            count += 1 + u32::from(self.check_type(node, value));
        }
        count += self.junctors(node, value);
        match value {
            Value::String(text) => {
                count += 1;
                self.string(node, text);
                count += self.format(node, text);
            }
            Value::Number(number) => {
                count += 2;
                self.number(node, number);
            }
            Value::Array(items) => {
                count += 2;
                count += self.items(node, items, old.and_then(Value::as_array));
            }
            _ => {}
        }
        self.enumeration(node, value);
        if let Value::Object(members) = value {
            count += 1;
            count += self.members(node, members, old.and_then(Value::as_object));
        }
        count
    }

    fn items(&mut self, node: Node<'a>, items: &'a [Value], old: Option<&'a Vec<Value>>) -> u32 {
        let mut count = 0;
        if let Some(schema) = node.items() {
            let old = old.map(|old| KeyedItems::new(node, old));
            for (index, item) in items.iter().enumerate() {
                let before = old.as_ref().and_then(|old| old.get(item));
                self.trail.push_index(index);
                count += self.value(schema, item, before);
                self.trail.pop();
            }
        }
        let (size, limits) = (count_of(items.len()), node.limits());
        if let Some(min) = limits.min_items.filter(|min| size < *min) {
            self.add_here(|field, name| {
                Error::invalid(field, size, format!("{name} in body should have at least {min} items"))
            });
        }
        if let Some(max) = limits.max_items.filter(|max| size > *max) {
            self.add_here(|field, _| too_many(field, size, max));
        }
        if node.has_unique_items() && has_duplicates(items) {
            self.add_here(|field, name| {
                Error::invalid(field, "", format!("{name} in body shouldn't contain duplicates"))
            });
        }
        count
    }

    fn members(&mut self, node: Node<'a>, members: &'a Object, old: Option<&'a Object>) -> u32 {
        self.number_of_members(node, members);
        let mut count = match node.additional() {
            Additional::Unset | Additional::Bool(true) => 0,
            Additional::Bool(false) => self.no_more_members(node, members),
            Additional::Schema(schema) => self.more_members(node, schema, members, old),
        };
        let at_root = self.trail.is_empty();
        // Whichever is smaller is walked; either way by name.
        let mut check = |walk: &mut Self, name: &'a str, property: Node<'a>, value: &'a Value| {
            // What an object is called is not seen to change: both are converted to the same version.
            let is_type = at_root && matches!(name, "kind" | "apiVersion");
            let before = old.and_then(|old| old.get(name)).filter(|_| !is_type);
            walk.trail.push_property(name);
            count += walk.value(property, value, before);
            walk.trail.pop();
        };
        let properties = node.properties();
        if properties.len() < members.len() {
            for (name, property) in properties {
                if let Some(value) = members.get(name) {
                    check(self, name, property, value);
                }
            }
        } else {
            for (name, value) in members {
                if let Some(property) = node.property(name) {
                    check(self, name, property, value);
                }
            }
        }
        for name in node.required().filter(|name| !members.contains_key(*name)) {
            self.trail.push_key(name);
            self.add_here(|field, _| Error::required(field, ""));
            self.trail.pop();
        }
        count
    }

    fn number_of_members(&mut self, node: Node<'a>, members: &Object) {
        let (size, limits) = (count_of(members.len()), node.limits());
        if let Some(min) = limits.min_properties.filter(|min| size < *min) {
            self.add_here(|field, name| {
                Error::invalid(field, size, format!("{name} in body should have at least {min} properties"))
            });
        }
        if let Some(max) = limits.max_properties.filter(|max| size > *max) {
            self.add_here(|field, _| too_many(field, size, max));
        }
    }

    fn no_more_members(&mut self, node: Node<'a>, members: &'a Object) -> u32 {
        for key in members.keys().filter(|key| node.property(key).is_none()) {
            self.add_here(|field, name| {
                Error::invalid(field, key, format!("{name}.{key} in body is a forbidden property"))
            });
        }
        0
    }

    fn more_members(
        &mut self,
        node: Node<'a>,
        schema: Node<'a>,
        members: &'a Object,
        old: Option<&'a Object>,
    ) -> u32 {
        let mut count = 0;
        for (key, value) in members.iter().filter(|(key, _)| node.property(key).is_none()) {
            self.trail.push_key(key);
            count += self.value(schema, value, old.and_then(|old| old.get(key)));
            self.trail.pop();
        }
        count
    }
}

fn count_of(len: usize) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}

fn too_many(field: &Path, actual: i64, max: i64) -> Error {
    let max = usize::try_from(max).ok();
    let actual = usize::try_from(actual).unwrap_or(usize::MAX);
    match max {
        Some(max) => Error::too_many(field, actual, max),
        None => Error { detail: "has too many items".into(), ..Error::too_many(field, actual, 0) },
    }
}

fn has_duplicates(items: &[Value]) -> bool {
    let mut seen = HashSet::new();
    !items.iter().all(|item| seen.insert(item.to_string()))
}

#[cfg(test)]
mod tests;
