//! What is configured, as a view of the log.

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use bytes::Bytes;
use concord_codec::{Options, decode};
use concord_registry::Object;
use concord_replica::{Event, Snapshot, View};
use concord_store::{KeyRange, Revision};

use crate::{
    policy::{self, MutatingPolicy, ValidatingPolicy},
    webhook::{self, Webhook},
};

/// What is configured at one revision. It never changes: the next one is another.
#[derive(Debug, Default)]
pub(crate) struct Configured {
    /// In the order of their configurations' names.
    pub(crate) mutating: Vec<Webhook>,
    pub(crate) validating: Vec<Webhook>,
    pub(crate) mutating_policies: Vec<MutatingPolicy>,
    pub(crate) policies: Vec<ValidatingPolicy>,
}

/// The kinds that configure admission, in the order of their prefixes.
const PLURALS: [&str; 6] = [
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
];

/// Keeps what is configured, fed by the replica.
///
/// When the replica shows a revision to anybody, requests are admitted by what is configured in it. Nothing is compiled
/// here that takes long: expressions are when they are first needed.
pub struct AdmissionView {
    prefixes: [Bytes; PLURALS.len()],
    /// Of each kind the objects by name.
    objects: [BTreeMap<String, Object>; PLURALS.len()],
    published: Arc<ArcSwap<Configured>>,
}

/// What an [`AdmissionView`] knows, for whoever admits by it.
#[derive(Clone)]
pub struct Configurations {
    pub(crate) published: Arc<ArcSwap<Configured>>,
    pub(crate) prefixes: Vec<Bytes>,
}

impl AdmissionView {
    /// A view of what is stored under keys that begin with `prefix`, such as `/registry/`; empty until it is fed.
    pub fn new(prefix: &str) -> Self {
        let prefixes = PLURALS.map(|plural| format!("{prefix}{plural}/").into());
        Self { prefixes, objects: Default::default(), published: Arc::default() }
    }

    /// Where what is configured can be read.
    pub fn configurations(&self) -> Configurations {
        Configurations { published: self.published.clone(), prefixes: self.prefixes.to_vec() }
    }

    /// Takes over what is stored at a key; `None` if nothing is. What cannot be read is not configured.
    fn set(&mut self, key: &[u8], value: Option<&[u8]>) {
        for (prefix, objects) in self.prefixes.iter().zip(&mut self.objects) {
            let name = key.strip_prefix(prefix.as_ref()).and_then(|name| std::str::from_utf8(name).ok());
            let Some(name) = name else { continue };
            let object = value.and_then(|value| decode(value, &Options::default()).ok());
            match object {
                Some(decoded) => drop(objects.insert(name.to_owned(), decoded.object)),
                None => drop(objects.remove(name)),
            }
        }
    }

    fn publish(&self) {
        let webhooks = |objects: &BTreeMap<String, Object>| {
            objects.iter().flat_map(|(name, object)| webhook::read(name, object)).collect()
        };
        let [mutators, mutator_bindings, mutating, validating, policies, bindings] = &self.objects;
        let configured = Configured {
            mutating: webhooks(mutating),
            validating: webhooks(validating),
            mutating_policies: policy::read(mutators, mutator_bindings),
            policies: policy::read(policies, bindings),
        };
        self.published.store(Arc::new(configured));
    }
}

impl View for AdmissionView {
    fn name(&self) -> &str {
        "admission"
    }

    fn prefixes(&self) -> Vec<Bytes> {
        self.prefixes.to_vec()
    }

    fn reset(&mut self, snapshot: &Snapshot) {
        self.objects = Default::default();
        for prefix in self.prefixes.clone() {
            for entry in snapshot.scan(&KeyRange::prefix(prefix)) {
                self.set(&entry.key, Some(&entry.value));
            }
        }
        self.publish();
    }

    fn apply(&mut self, _: Revision, events: &[Event]) {
        for event in events {
            self.set(event.key(), event.current().map(|entry| entry.value.as_ref()));
        }
        self.publish();
    }
}
