//! What is wrong with an object of a built-in kind.
//!
//! Kubernetes' rules for the kinds it brings along, with its paths, texts and order: clients, tests and people rely on
//! all three. Objects are defaulted, in the version they are stored in, and have the members and types their schema
//! says; metadata has been validated. What does not have the right type is as good as absent here.
//!
//! The crate never changes an object, never does I/O, and compiles no expressions: what CEL says about the rules of
//! admission policies is somebody else's to find out.
//!
//! Start with [`of`] and [`Validator`]; inside, with `node.rs`, which rules are written against, and `kinds.rs`, the
//! table of kinds. `docs/validation.md` lists what upstream checks and this does not.

mod admission;
mod apps;
mod autoscaling;
mod batch;
mod certificates;
mod conditions;
mod config;
mod devices;
mod diff;
mod endpoints;
mod event;
mod flow;
mod gates;
mod internal;
mod ip;
mod json;
mod key_pair;
mod keys;
mod kinds;
mod labels;
mod leases;
mod meta;
mod migration;
mod namespace;
mod networking;
mod node;
mod nodes;
mod pem;
mod persistence;
mod pod;
mod policy;
mod quota;
mod rbac;
mod registration;
mod resources;
mod rules;
mod scheduling;
mod service;
mod storage;
mod volume;

use concord_meta::field;
use serde_json::{Map, Value};

pub use self::{gates::Gates, rules::same_amounts};
use self::{
    kinds::Rules,
    node::{Findings, Root},
};

/// An object: the members of its JSON.
pub type Object = Map<String, Value>;

/// The rules of one kind.
#[derive(Clone, Copy)]
pub struct Validator {
    rules: &'static Rules,
    gates: Gates,
    now: Option<i64>,
}

/// The rules of a kind, if it is one that has some. Group and kind are those of the storage version.
///
/// ```
/// use serde_json::json;
/// let validator = concord_validation::of("", "ConfigMap").expect("a known kind");
/// let object = json!({"metadata": {"name": "a"}, "data": {"a/b": ""}});
/// let errors = validator.create(object.as_object().expect("an object"));
/// assert_eq!(errors[0].field, "data[a/b]");
/// ```
#[must_use]
pub fn of(group: &str, kind: &str) -> Option<Validator> {
    kinds::KINDS.iter().find(|rules| rules.kind == kind && rules.group == group).map(|rules| Validator {
        rules,
        gates: Gates::default(),
        now: None,
    })
}

/// What is wrong with an Event, in its stored form, that comes through `events.k8s.io/v1`, beyond what is wrong with any;
/// `old` is what it was before, if it was.
#[must_use]
pub fn strict_event(new: &Object, old: Option<&Object>) -> Vec<field::Error> {
    let findings = Findings::default();
    event::strict(Root::new(&findings, new), old.map(|old| Root::new(&findings, old)));
    findings.take()
}

/// What is wrong with the finalizers of a new object, beyond what is wrong with any object's: those without a domain are
/// Kubernetes' own.
#[must_use]
pub fn finalizers(object: &Object) -> Vec<field::Error> {
    let findings = Findings::default();
    meta::finalizers(Root::new(&findings, object));
    findings.take()
}

impl Validator {
    /// The same rules where other features are on than v1.36 has by default.
    #[must_use]
    pub fn with(self, gates: Gates) -> Self {
        Self { gates, ..self }
    }

    /// The same rules at a time, in seconds since 1970. Without one nothing is too early or too late.
    #[must_use]
    pub fn at(self, now: i64) -> Self {
        Self { now: Some(now), ..self }
    }

    /// What is wrong with a new object beyond what any object's metadata must be.
    #[must_use]
    pub fn create(self, object: &Object) -> Vec<field::Error> {
        let findings = Findings::new(self.gates);
        let root = Root::new(&findings, object);
        if !self.rules.any_finalizers {
            meta::finalizers(root);
        }
        (self.rules.create)(root);
        findings.take()
    }

    /// What is wrong with a changed object, which was `old` before. The subresource is empty for the object itself.
    #[must_use]
    pub fn update(self, subresource: &str, new: &Object, old: &Object) -> Vec<field::Error> {
        let findings = Findings::new(self.gates).at(self.now);
        (self.rules.update)(subresource, Root::new(&findings, new), Root::new(&findings, old));
        findings.take()
    }

    /// What to tell the client about an object that is valid; `old` is what it was before, if it was. The subresource is
    /// empty for the object itself.
    #[must_use]
    pub fn warnings(self, subresource: &str, new: &Object, old: Option<&Object>) -> Vec<String> {
        let warnings = match subresource {
            "status" => self.rules.status_warnings,
            _ => self.rules.warnings,
        };
        let Some(warnings) = warnings else { return Vec::new() };
        let findings = Findings::new(self.gates);
        warnings(Root::new(&findings, new), old.map(|old| Root::new(&findings, old)));
        findings.take_warnings()
    }
}
