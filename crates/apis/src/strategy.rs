use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
    time::Duration,
};

use concord_builtins::{
    FeatureGates, NameRule as Rule, Propagation, ResourceFacts, SelectableField, StatusOnCreate,
    StrategyFacts,
};
use concord_defaults::Defaults;
use concord_merge::apply::ResetFields;
use concord_meta::{
    GroupVersion, field,
    fields::KnownFields,
    names::{self, NameRule},
    options::DeleteOptions,
};
use concord_registry::{Context, DefaultDeletion, Object, Part, Strategy, metadata, metadata_mut};
use concord_schema::Schema;
use concord_validation::Validator;
use serde_json::Value;

use crate::{
    Settings,
    gated::Gated,
    generation::is_changed,
    kinds::{Hooks, hooks},
    reset::Reset,
    rules::{judged, validator, wipes_status},
};

/// How a built-in kind behaves: mostly facts, and a few hooks.
pub(crate) struct BuiltinStrategy {
    facts: Arc<StrategyFacts>,
    /// What a new object's status is; `None` if the status has no door of its own, or comes with the object.
    new_status: Option<Value>,
    time_to_live: Option<Duration>,
    main: Reset,
    status: Reset,
    approval: Reset,
    /// The names of all fields to select by; empty if only those that every kind has.
    known: Vec<&'static str>,
    /// How other fields are refused; `{}` stands for the field.
    unknown: String,
    /// By API version: the defaults of those that have any.
    defaults: Vec<(String, Defaults)>,
    validator: Option<Validator>,
    hooks: Hooks,
    /// The fields as they are stored, and the features that there are: what [`Gated`] is made from when the first object
    /// is written.
    stored: Arc<Schema>,
    features: Arc<FeatureGates>,
    gated: OnceLock<Gated>,
}

impl BuiltinStrategy {
    /// The strategy of a resource that is stored with this schema; `versions` are all its API versions.
    pub(crate) fn new(
        facts: &ResourceFacts,
        stored: &Arc<Schema>,
        versions: &[String],
        settings: &Settings,
    ) -> Self {
        let strategy = facts.strategy.clone();
        let mut known: Vec<&str> = strategy.fields.iter().map(|field| field.label).collect();
        if !known.is_empty() {
            known.push("metadata.name");
            if !strategy.no_namespace_field {
                known.push("metadata.namespace");
            }
        }
        Self {
            new_status: new_status(facts, stored).filter(|_| wipes_status(facts, &settings.features)),
            time_to_live: strategy.ttl.map(|_| settings.event_ttl),
            main: match wipes_status(facts, &settings.features) {
                true => Reset::new(facts, None, versions),
                false => Reset::none(),
            },
            status: Reset::new(facts, Some("status"), versions),
            approval: Reset::new(facts, Some("approval"), versions),
            known,
            unknown: facts.unsupported_field("{}"),
            defaults: versions
                .iter()
                .filter_map(|version| Some((version.clone(), concord_defaults::of(version, facts.kind)?)))
                .collect(),
            validator: validator(facts, &settings.features),
            hooks: hooks(facts.group, facts.plural),
            stored: stored.clone(),
            features: settings.features.clone(),
            gated: OnceLock::new(),
            facts: strategy,
        }
    }

    fn defaults(&self, api_version: &str) -> Option<Defaults> {
        let found = self.defaults.iter().find(|(version, _)| version == api_version);
        found.map(|(_, defaults)| *defaults)
    }

    /// Upstream fills in the defaults of the stored version whenever it reads an object from the store. Here that
    /// happens before it is written, so that reads are copies of what is stored. Objects of kinds with a single version
    /// have them already.
    fn default_stored(&self, object: &mut Object) {
        if self.defaults.len() < 2 {
            return;
        }
        let version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        if let Some(defaults) = self.defaults(version) {
            defaults.apply(object);
        }
    }

    fn drop_gated(&self, new: &mut Object, old: Option<&Object>) {
        self.gated.get_or_init(|| Gated::new(&self.stored, &self.features)).drop(new, old);
    }

    fn reset(&self, part: Part<'_>) -> Option<&Reset> {
        match part {
            Part::Main => Some(&self.main),
            Part::Sub("status") => Some(&self.status),
            Part::Sub("approval") => Some(&self.approval),
            Part::Sub(_) => None,
        }
    }

    fn name_errors(&self, object: &Object) -> Vec<field::Error> {
        if self.facts.name != Rule::ConfigMapKey {
            return Vec::new();
        }
        let (is, path) = (metadata(object), field::Path::new("metadata"));
        let given = ["generateName", "name"].into_iter().map(|member| (member, is.text(member)));
        let given = given.filter(|(member, text)| *member == "name" || !text.is_empty());
        let problems = given.flat_map(|(member, text)| {
            let path = path.child(member);
            let invalid = move |problem| field::Error::invalid(&path, text, problem);
            names::config_map_key(text).into_iter().map(invalid)
        });
        problems.collect()
    }
}

fn new_status(facts: &ResourceFacts, stored: &Schema) -> Option<Value> {
    if !facts.has_status() {
        return None;
    }
    let empty =
        || stored.empty(facts.kind, "").get("status").cloned().unwrap_or(Value::Object(Object::new()));
    match facts.strategy.status_on_create {
        StatusOnCreate::Keep => None,
        StatusOnCreate::Empty => Some(empty()),
        StatusOnCreate::Phase(phase) => {
            let mut status = empty();
            if let Some(members) = status.as_object_mut() {
                members.insert("phase".to_owned(), phase.into());
            }
            Some(status)
        }
    }
}

impl Strategy for BuiltinStrategy {
    fn name_rule(&self) -> NameRule {
        match self.facts.name {
            Rule::Subdomain => NameRule::Dns1123Subdomain,
            Rule::LongName => NameRule::LongName,
            Rule::Label => NameRule::Dns1123Label,
            Rule::Service if self.features.enabled("RelaxedServiceNameValidation") => NameRule::Dns1123Label,
            Rule::Service => NameRule::Dns1035Label,
            _ => NameRule::PathSegment,
        }
    }

    fn unreadable(&self, object: &Object) -> Option<String> {
        self.hooks.unreadable.and_then(|unreadable| unreadable(object))
    }

    fn default(&self, api_version: &str, object: &mut Object) {
        if let Some(defaults) = self.defaults(api_version) {
            defaults.apply(object);
        }
        if let Some(default) = self.hooks.default {
            default(object);
        }
    }

    fn names_itself(&self) -> bool {
        self.hooks.names_itself
    }

    fn prepare_for_create(&self, context: &Context, object: &mut Object) {
        if let Some(drop) = self.hooks.drop {
            drop(&self.features, object, None);
        }
        if let Some(status) = &self.new_status {
            object.insert("status".to_owned(), status.clone());
        }
        // Kinds whose changes nobody counts keep what a client says, as upstream's do.
        if self.facts.generation {
            metadata_mut(object).insert("generation".to_owned(), 1.into());
        }
        if let Some(create) = self.hooks.create {
            create(context, object);
        }
        self.drop_gated(object, None);
        self.default_stored(object);
    }

    fn prepare_for_update(&self, context: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
        if let Some(drop) = self.hooks.drop {
            drop(&self.features, new, Some(old));
        }
        if let Some(reset) = self.reset(part) {
            reset.restore(new, old);
        }
        if let Some(update) = self.hooks.update {
            update(context, part, new, old);
        }
        self.drop_gated(new, Some(old));
        self.default_stored(new);
        if self.facts.generation && is_changed(new, old) {
            let next = metadata(old).generation().saturating_add(1);
            metadata_mut(new).insert("generation".to_owned(), next.into());
        }
    }

    fn metadata_comes_last(&self) -> bool {
        self.hooks.metadata_comes_last
    }

    fn validate_create(&self, _: &Context, object: &Object) -> Vec<field::Error> {
        let mut errors = self.name_errors(object);
        let form = judged(object);
        errors.extend(self.validator.into_iter().flat_map(|validator| validator.create(&form)));
        if let Some(validate) = self.hooks.validate_create {
            errors.extend(validate(&self.features, object));
        }
        errors
    }

    fn validate_update(
        &self,
        context: &Context,
        part: Part<'_>,
        new: &Object,
        old: &Object,
    ) -> Vec<field::Error> {
        match (self.validator, self.hooks.validate_update) {
            (Some(validator), _) => {
                let validator = validator.at(context.now.unix);
                validator.update(part.subresource(), &judged(new), &judged(old))
            }
            (None, Some(validate)) => validate(&self.features, part, new, old),
            (None, None) => Vec::new(),
        }
    }

    fn validate_through(
        &self,
        version: &GroupVersion,
        new: &Object,
        old: Option<&Object>,
    ) -> Vec<field::Error> {
        match (version.group.as_str(), version.version.as_str()) {
            ("events.k8s.io", "v1") => concord_validation::strict_event(new, old),
            _ => Vec::new(),
        }
    }

    fn warnings(&self, _: &Context, part: Part<'_>, new: &Object, old: Option<&Object>) -> Vec<String> {
        match (self.validator, self.hooks.warnings) {
            (Some(validator), _) => validator.warnings(part.subresource(), new, old),
            (None, Some(warnings)) => warnings(&self.features, new, old),
            (None, None) => Vec::new(),
        }
    }

    fn reset_fields(&self, part: Part<'_>) -> ResetFields {
        self.reset(part).map_or_else(ResetFields::none, |reset| reset.fields.clone())
    }

    fn allow_create_on_update(&self) -> bool {
        self.facts.create_on_update
    }

    fn allow_unconditional_update(&self) -> bool {
        !self.facts.conditional_update
    }

    fn return_deleted_object(&self) -> bool {
        self.facts.returns_deleted
    }

    fn default_deletion(&self) -> DefaultDeletion {
        match self.facts.propagation {
            Propagation::DeleteDependents => DefaultDeletion::Dependents,
            Propagation::Orphan => DefaultDeletion::Orphan,
            Propagation::Unsupported => DefaultDeletion::Unsupported,
        }
    }

    fn deletion_warning(&self) -> Option<&'static str> {
        self.hooks.deletion_warning
    }

    fn graceful_deletion(&self, object: &Object, options: &DeleteOptions) -> Option<i64> {
        self.hooks.graceful_deletion.map(|grace| grace(object, options))
    }

    fn is_held(&self, object: &Object) -> bool {
        self.hooks.is_held.is_some_and(|is_held| is_held(object))
    }

    fn has_own_deletion(&self) -> bool {
        self.hooks.begin_deletion.is_some()
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
        match self.known.is_empty() {
            true => KnownFields::Metadata,
            false => KnownFields::Worded(&self.known, &self.unknown),
        }
    }

    fn field<'a>(&self, object: &'a Object, field: &str) -> Cow<'a, str> {
        let Some(field) = self.facts.fields.iter().find(|known| known.label == field) else {
            return Cow::Borrowed("");
        };
        value(object, field)
    }
}

fn value<'a>(object: &'a Object, field: &SelectableField) -> Cow<'a, str> {
    let found = field.paths.iter().find_map(|path| {
        let mut names = path.split('.');
        let first = object.get(names.next()?)?;
        names.try_fold(first, |value, name| value.get(name)).filter(|value| !value.is_null() && **value != "")
    });
    match found {
        None => Cow::Borrowed(field.zero),
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(other) => Cow::Owned(other.to_string()),
    }
}
