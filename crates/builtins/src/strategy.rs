use std::{borrow::Cow, time::Duration};

use concord_merge::{
    apply::ResetFields,
    fields::{FieldSet, Path},
};
use concord_meta::{fields::KnownFields, names::NameRule, options::DeleteOptions};
use concord_registry::{Context, DefaultDeletion, FieldPath, Object, Part, Strategy, metadata, metadata_mut};
use serde_json::Value;

use crate::kinds::{Hooks, keep};

/// A field that objects can be selected by, and where it is.
pub(crate) type SelectableField = (&'static str, FieldPath);

/// How a built-in kind behaves: mostly facts, and a few hooks.
pub(crate) struct BuiltinStrategy {
    pub(crate) name_rule: NameRule,
    pub(crate) create_on_update: bool,
    pub(crate) unconditional_update: bool,
    pub(crate) generation: bool,
    pub(crate) return_deleted: bool,
    pub(crate) default_deletion: DefaultDeletion,
    pub(crate) time_to_live: Option<Duration>,
    /// Whether the status has a door of its own.
    pub(crate) status: bool,
    /// The names and the paths of the fields to select by.
    pub(crate) fields: Vec<SelectableField>,
    /// The names alone, with those that every kind has; empty if there are no others.
    pub(crate) known: Vec<&'static str>,
    /// The API versions of the kind.
    pub(crate) versions: Vec<String>,
    pub(crate) hooks: Hooks,
}

impl BuiltinStrategy {
    /// Everything but metadata and status: a change there is a new generation.
    fn desired(object: &Object) -> impl Iterator<Item = (&String, &Value)> {
        let other = ["metadata", "status", "kind", "apiVersion"];
        object.iter().filter(move |(name, _)| !other.contains(&name.as_str()))
    }

    /// What one door does not change stays as it was.
    fn keep_the_rest(&self, part: Part<'_>, new: &mut Object, old: &Object) {
        match part {
            Part::Main if self.status => keep(new, old, "status"),
            Part::Sub("status") => {
                let status = new.get("status").cloned();
                let metadata = new.get("metadata").cloned();
                new.clone_from(old);
                for (name, value) in [("status", status), ("metadata", metadata)] {
                    match value {
                        Some(value) => drop(new.insert(name.to_owned(), value)),
                        None => drop(new.remove(name)),
                    }
                }
            }
            Part::Main | Part::Sub(_) => {}
        }
    }
}

impl Strategy for BuiltinStrategy {
    fn name_rule(&self) -> NameRule {
        self.name_rule
    }

    fn default(&self, _api_version: &str, object: &mut Object) {
        if let Some(default) = self.hooks.default {
            default(object);
        }
    }

    fn prepare_for_create(&self, context: &Context, object: &mut Object) {
        if self.status && object.contains_key("status") {
            object.insert("status".to_owned(), Value::Object(Object::new()));
        }
        match self.generation {
            true => drop(metadata_mut(object).insert("generation".to_owned(), 1.into())),
            false => drop(metadata_mut(object).remove("generation")),
        }
        if let Some(create) = self.hooks.create {
            create(context, object);
        }
    }

    fn prepare_for_update(&self, context: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
        self.keep_the_rest(part, new, old);
        if let Some(update) = self.hooks.update {
            update(context, part, new, old);
        }
        if self.generation && Self::desired(new).ne(Self::desired(old)) {
            let next = metadata(old).generation().saturating_add(1);
            metadata_mut(new).insert("generation".to_owned(), next.into());
        }
    }

    fn reset_fields(&self, part: Part<'_>) -> ResetFields {
        let reset: &[&str] = match part {
            Part::Main if self.status => &["status"],
            Part::Sub("status") => &["spec"],
            Part::Main | Part::Sub(_) => return ResetFields::none(),
        };
        let fields: FieldSet = reset.iter().map(|name| Path::of_fields([*name])).collect();
        self.versions.iter().fold(ResetFields::none(), |all, version| {
            all.excluding(version.as_str(), fields.clone())
        })
    }

    fn allow_create_on_update(&self) -> bool {
        self.create_on_update
    }

    fn allow_unconditional_update(&self) -> bool {
        self.unconditional_update
    }

    fn return_deleted_object(&self) -> bool {
        self.return_deleted
    }

    fn default_deletion(&self) -> DefaultDeletion {
        self.default_deletion
    }

    fn graceful_deletion(&self, object: &Object, options: &DeleteOptions) -> Option<i64> {
        self.hooks.graceful_deletion.map(|grace| grace(object, options))
    }

    fn is_held(&self, object: &Object) -> bool {
        self.hooks.is_held.is_some_and(|is_held| is_held(object))
    }

    fn begin_deletion(&self, object: &mut Object) {
        if let Some(begin) = self.hooks.begin_deletion {
            begin(object);
        }
    }

    fn forbid_delete(&self, name: &str) -> Option<&'static str> {
        self.hooks.forbid_delete.and_then(|forbid| forbid(name))
    }

    fn time_to_live(&self) -> Option<Duration> {
        self.time_to_live
    }

    fn known_fields(&self) -> KnownFields<'_> {
        if self.known.is_empty() { KnownFields::Metadata } else { KnownFields::Listed(&self.known) }
    }

    fn field<'a>(&self, object: &'a Object, field: &str) -> Cow<'a, str> {
        let found = self.fields.iter().find(|(name, _)| *name == field);
        let Some((_, [first, rest @ ..])) = found else { return Cow::Borrowed("") };
        let value = object.get(*first).and_then(|first| rest.iter().try_fold(first, |value, name| value.get(*name)));
        match value {
            None | Some(Value::Null) => Cow::Borrowed(""),
            Some(Value::String(text)) => Cow::Borrowed(text),
            Some(other) => Cow::Owned(other.to_string()),
        }
    }
}
