//! What is particular to a custom kind.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use concord_merge::{
    apply::ResetFields,
    fields::{FieldSet, Path, PathElement},
};
use concord_meta::{field, fields::KnownFields};
use concord_registry::{Context, Object, Part, RuleWork, Strategy, metadata, metadata_mut, timed_rules};
use concord_rules::Findings;
use concord_structural::{Node, print_json_path_value, validate_type};
use serde_json::Value;

use crate::definition::Version;

/// How objects of one version of a custom kind behave.
pub(crate) struct CustomStrategy {
    kind: String,
    api_version: String,
    version: Arc<Version>,
    /// The fields to select by.
    selectable: Vec<String>,
}

impl CustomStrategy {
    pub(crate) fn new(kind: &str, api_version: &str, version: Arc<Version>) -> Self {
        let selectable = version.selectable.iter().map(|(label, _)| label.clone()).collect();
        Self { kind: kind.to_owned(), api_version: api_version.to_owned(), version, selectable }
    }

    /// What the rules say of an object, and how long that took, for metrics.
    fn check_rules(&self, object: &Object, old: Option<&Object>, errors: &[field::Error]) -> Findings {
        let rules = &self.version.rules;
        if rules.is_empty() {
            return Findings::default();
        }
        if rules.needs_preparation() {
            timed_rules(RuleWork::Compilation, || rules.prepare());
        }
        timed_rules(RuleWork::Evaluation, || rules.check(object, old, errors))
    }

    /// The record of owners says nothing of what a door does not take.
    fn only_status(&self) -> ResetFields {
        let path = vec![Some(PathElement::Field("status".to_owned()))];
        ResetFields::none().only(self.api_version.as_str(), vec![path])
    }
}

/// Everything of an object but its metadata.
fn content(object: &Object) -> impl Iterator<Item = (&String, &Value)> {
    object.iter().filter(|(name, _)| *name != "metadata")
}

fn keep(new: &mut Object, old: &Object, name: &str) {
    match old.get(name) {
        Some(value) => drop(new.insert(name.to_owned(), value.clone())),
        None => drop(new.remove(name)),
    }
}

/// Everything stays as it is but the status, and the record of who owns what.
fn take_status(new: &mut Object, old: &Object) {
    let status = new.remove("status");
    let owners = metadata(new).get("managedFields").cloned();
    new.clone_from(old);
    match status {
        Some(status) => drop(new.insert("status".to_owned(), status)),
        None => drop(new.remove("status")),
    }
    match owners {
        Some(owners) => drop(metadata_mut(new).insert("managedFields".to_owned(), owners)),
        None => drop(metadata_mut(new).remove("managedFields")),
    }
}

/// That an object has no name is told with its metadata; rules are not evaluated then.
fn without_name(object: &Object) -> Option<field::Error> {
    let path = field::Path::new("metadata").child("name");
    metadata(object).name().is_empty().then(|| field::Error::required(&path, ""))
}

/// A finalizer without a domain could be anybody's, except for Kubernetes' own.
fn finalizer_warning(finalizer: &str) -> Option<String> {
    const KUBERNETES: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];
    if finalizer.contains('/') || KUBERNETES.contains(&finalizer) {
        return None;
    }
    let path = if finalizer.contains('.') { " including a path (/)" } else { "" };
    Some(format!(
        "metadata.finalizers: {}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other \
         finalizer writers",
        concord_meta::go::quote(finalizer)
    ))
}

impl Strategy for CustomStrategy {
    fn prepare_for_create(&self, _: &Context, object: &mut Object) {
        if self.version.has_status {
            object.remove("status");
        }
        metadata_mut(object).insert("generation".to_owned(), 1.into());
    }

    /// A new object has no status, but whoever reads it finds the default of one.
    fn before_encoding(&self, object: &mut Object) {
        let schema = &self.version.schema;
        let status = schema.root().property("status").and_then(Node::default_value);
        if self.version.has_status && status.is_some() && !object.contains_key("status") {
            schema.default(object);
        }
    }

    fn prepare_for_update(&self, _: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
        if part == Part::Sub("status") {
            take_status(new, old);
            return;
        }
        if self.version.has_status {
            keep(new, old, "status");
        }
        if content(new).ne(content(old)) {
            let next = metadata(old).generation().saturating_add(1);
            metadata_mut(new).insert("generation".to_owned(), next.into());
        }
    }

    fn validate_create(&self, _: &Context, object: &Object) -> Vec<field::Error> {
        let errors = validate_type(object, &self.kind, &self.api_version);
        if !errors.is_empty() {
            return errors;
        }
        let mut errors = self.version.schema.validate_create(object, self.version.scale.as_ref());
        let broken = match without_name(object) {
            Some(error) => self.check_rules(object, None, &[error]),
            None => self.check_rules(object, None, &errors),
        };
        errors.extend(broken.errors);
        errors
    }

    fn validate_update(
        &self,
        context: &Context,
        part: Part<'_>,
        new: &Object,
        old: &Object,
    ) -> Vec<field::Error> {
        let errors = validate_type(new, &self.kind, &self.api_version);
        if !errors.is_empty() {
            return errors;
        }
        let (schema, scale) = (&self.version.schema, self.version.scale.as_ref());
        let mut errors = match part {
            Part::Sub("status") => schema.validate_status_update(new, old, scale),
            _ => schema.validate_update(new, old, scale),
        };
        let broken = self.check_rules(new, Some(old), &errors);
        broken.warnings.iter().for_each(|warning| context.warn(&warning.to_string()));
        errors.extend(broken.errors);
        errors
    }

    fn warnings(&self, _: &Context, _: Part<'_>, new: &Object, old: Option<&Object>) -> Vec<String> {
        let before = old.map(|old| metadata(old).finalizers()).unwrap_or_default();
        let added = metadata(new).finalizers().into_iter().filter(|finalizer| !before.contains(finalizer));
        let added: BTreeSet<&str> = added.collect();
        added.into_iter().filter_map(finalizer_warning).collect()
    }

    fn reset_fields(&self, part: Part<'_>) -> ResetFields {
        match part {
            Part::Sub("status") => self.only_status(),
            _ if self.version.has_status => {
                let status: FieldSet = [Path::of_fields(["status"])].into_iter().collect();
                ResetFields::none().excluding(self.api_version.as_str(), status)
            }
            _ => ResetFields::none(),
        }
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }

    fn known_fields(&self) -> KnownFields<'_> {
        KnownFields::Defined(&self.selectable)
    }

    fn field<'a>(&self, object: &'a Object, field: &str) -> Cow<'a, str> {
        let found = self.version.selectable.iter().find(|(label, _)| label == field);
        match found.and_then(|(_, path)| path.first(object)) {
            None | Some(Value::Null) => Cow::Borrowed(""),
            Some(value) => Cow::Owned(print_json_path_value(value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finalizers_should_say_whose_they_are() {
        let advice = |finalizer| finalizer_warning(finalizer).unwrap_or_default();
        for fine in ["example.com/mine", "orphan", "foregroundDeletion", "kubernetes"] {
            assert_eq!(advice(fine), "");
        }
        let text = "metadata.finalizers: \"example.com\": prefer a domain-qualified finalizer name including a path (/) to \
                    avoid accidental conflicts with other finalizer writers";
        assert_eq!(advice("example.com"), text);
        let text = "metadata.finalizers: \"mine\": prefer a domain-qualified finalizer name to avoid accidental conflicts \
                    with other finalizer writers";
        assert_eq!(advice("mine"), text);
    }
}
