//! Whether defaults fit the schema they are in.

use concord_meta::field::{self, Error, Path};
use serde_json::{Value, json};

use super::{CelCompiler, RulePlace, options::StoredExpressions};
use crate::{
    Object, coerce,
    props::Props,
    prune::prune_default,
    resource,
    schema::{Node, Schema},
    validate::default_errors,
};

/// What all rules may cost when they are evaluated on defaults.
const BUDGET: i64 = 10_000_000;

/// What is wrong with the defaults of a schema at `path`.
pub(super) fn validate(schema: &Schema, path: &Path, pruned: bool, cel: &dyn CelCompiler) -> Vec<Error> {
    let stored = StoredExpressions::default();
    let mut walk =
        Walk { pruned, cel, stored: &stored, budget: BUDGET, errors: Vec::new(), around: Vec::new() };
    let root = schema.root();
    walk.node(root, path, root, false);
    walk.errors
}

/// Whether no default of a stored schema has unknown fields. Schemas that are not good otherwise count as pruned.
pub(super) fn are_pruned(props: Props<'_>) -> bool {
    let Ok(schema) = Schema::of(props) else { return true };
    !schema.has_defaults()
        || !super::structural::validate(props, &Path::nil()).is_empty()
        || node_is_pruned(schema.root())
}

fn node_is_pruned(node: Node<'_>) -> bool {
    let own = node.default_value().is_none_or(|default| is_pruned(node, default));
    let mut below =
        node.properties().map(|(_, property)| property).chain(node.items()).chain(node.additional().schema());
    own && below.all(node_is_pruned)
}

fn is_pruned(node: Node<'_>, default: &Value) -> bool {
    let mut pruned = default.clone();
    prune_default(&mut pruned, node, is_resource(node));
    pruned == *default
}

fn is_resource(node: Node<'_>) -> bool {
    node.is_root() || node.is_embedded_resource()
}

/// A step from a resource to a part of its metadata.
#[derive(Clone)]
enum Step {
    Child(String),
    Index,
}

struct Walk<'a> {
    pruned: bool,
    cel: &'a dyn CelCompiler,
    stored: &'a StoredExpressions,
    budget: i64,
    errors: Vec<Error>,
    /// The way from the resource to the node.
    around: Vec<Step>,
}

impl<'a> Walk<'a> {
    /// `resource` is the resource that the node is in; `inside_meta` if it is a part of that one's type or metadata.
    fn node(&mut self, node: Node<'a>, path: &Path, resource: Node<'a>, inside_meta: bool) {
        if !node.has_defaults_below() || self.budget < 0 {
            return;
        }
        if is_resource(node) {
            let around = std::mem::take(&mut self.around);
            self.checked(node, path, node, false);
            self.around = around;
        } else {
            self.checked(node, path, resource, inside_meta);
        }
    }

    fn checked(&mut self, node: Node<'a>, path: &Path, resource: Node<'a>, inside_meta: bool) {
        if let Some(default) = node.default_value() {
            let path = path.child("default");
            let errors = if inside_meta {
                self.meta_default(node, default, &path, resource)
            } else {
                self.default(node, default, &path)
            };
            self.errors.extend(errors);
        }
        // Defaults of additional properties are not looked at: upstream never sets them in objects that lack them.
        if let Some(items) = node.items() {
            self.around.push(Step::Index);
            self.node(items, &path.child("items"), resource, inside_meta);
            self.around.pop();
        }
        let properties = path.child("properties");
        for (name, property) in node.properties() {
            let is_meta = is_resource(node) && matches!(name, "metadata" | "apiVersion" | "kind");
            self.around.push(Step::Child(name.to_owned()));
            self.node(property, &properties.key(name), resource, inside_meta || is_meta);
            self.around.pop();
        }
    }

    fn default(&mut self, node: Node<'a>, default: &Value, path: &Path) -> Vec<Error> {
        let mut errors = Vec::new();
        if self.pruned && !is_pruned(node, default) {
            errors.push(Error::invalid(path, default, "must not have unknown fields"));
        }
        let mut coerced = default.clone();
        let done = match &mut coerced {
            Value::Object(object) if is_resource(node) => coerce::coerce_resource(path, object, node),
            value => coerce::coerce_default(path, value, node),
        };
        if let Err(error) = done {
            errors.push(error);
            return errors;
        }
        let mut wrong = match &coerced {
            Value::Object(object) if is_resource(node) => resource::resource_errors(path, object, node),
            value => resource::embedded_errors(path, value, node),
        };
        if wrong.is_empty() {
            wrong = default_errors(node, &coerced, path);
        }
        if wrong.is_empty() {
            wrong = self.rules(node, &coerced, path);
        }
        errors.extend(wrong);
        errors
    }

    /// A default inside of metadata must make metadata that is good as a whole.
    fn meta_default(
        &mut self,
        node: Node<'a>,
        default: &Value,
        path: &Path,
        resource: Node<'a>,
    ) -> Vec<Error> {
        let mut object = self.object_around(default.clone());
        let invalid = |detail: String| {
            vec![Error::invalid(path, default, format!("must result in valid metadata: {detail}"))]
        };
        if let Err(error) = coerce::coerce_resource(&Path::nil(), &mut object, resource) {
            return invalid(error.to_string());
        }
        let wrong = resource::resource_errors(&Path::nil(), &object, resource);
        if !wrong.is_empty() {
            return invalid(field::aggregate(&wrong));
        }
        let wrong = default_errors(node, default, path);
        if wrong.is_empty() { self.rules(node, default, path) } else { wrong }
    }

    fn rules(&mut self, node: Node<'a>, default: &Value, path: &Path) -> Vec<Error> {
        if !node.has_rules_below() {
            return Vec::new();
        }
        let place = RulePlace { node, is_resource_root: is_resource(node), stored: self.stored };
        let (errors, left) = self.cel.validate_default(&place, default, path, self.budget);
        self.budget = left;
        errors
    }

    /// A resource that has nothing but the default, at its place.
    fn object_around(&self, default: Value) -> Object {
        let whole = self.around.iter().rev().fold(default, |inside, step| match step {
            Step::Child(name) => Value::Object(Object::from_iter([(name.clone(), inside)])),
            Step::Index => json!([inside]),
        });
        let mut object = match whole {
            Value::Object(object) => object,
            _ => Object::new(),
        };
        for (name, value) in [("apiVersion", "validation/v1"), ("kind", "Validation")] {
            object.entry(name).or_insert_with(|| value.into());
        }
        object
    }
}
