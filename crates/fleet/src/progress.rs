//! How far this server has come, for those who ask whether it is ready.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering},
};

use concord_meta::GroupResource;
use concord_server::{StorageVersions, Unhealthy};
use parking_lot::RwLock;

/// Why a resource cannot be registered whose StorageVersion somebody stored in another form than JSON.
pub(crate) const UNREADABLE: &str = "the stored StorageVersion cannot be read";

/// How far identity and registration have come.
#[derive(Default)]
pub(crate) struct Progress {
    resources: RwLock<HashMap<GroupResource, Registered>>,
    /// What keeps custom resources from being registered. Those are not waited for: a definition can come at any time.
    customs: RwLock<HashMap<GroupResource, String>>,
    completed: AtomicBool,
    definitions_tried: AtomicBool,
    identified: AtomicBool,
    identity_error: RwLock<Option<String>>,
}

#[derive(Default)]
struct Registered {
    done: bool,
    last_error: Option<String>,
}

impl Progress {
    /// Takes note of built-in resources, which all have to be registered.
    pub(crate) fn expect(&self, resources: impl Iterator<Item = GroupResource>) {
        self.resources.write().extend(resources.map(|resource| (resource, Registered::default())));
    }

    /// A resource is registered. That it was is never forgotten: what happens later is the gate's to decide.
    pub(crate) fn registered(&self, resource: &GroupResource) {
        if let Some(known) = self.resources.write().get_mut(resource) {
            *known = Registered { done: true, last_error: None };
        }
    }

    pub(crate) fn failed(&self, resource: &GroupResource, error: &str) {
        let mut resources = self.resources.write();
        resources.entry(resource.clone()).or_default().last_error = Some(error.to_owned());
    }

    pub(crate) fn custom_failed(&self, resource: GroupResource, error: &str) {
        self.customs.write().insert(resource, error.to_owned());
    }

    /// Forgets what kept custom resources that are registered by now, or not defined any more.
    pub(crate) fn keep_custom_failures(&self, is_pending: impl Fn(&GroupResource) -> bool) {
        if !self.customs.read().is_empty() {
            self.customs.write().retain(|resource, _| is_pending(resource));
        }
    }

    pub(crate) fn last_error(&self, resource: &GroupResource) -> Option<String> {
        let built_in = self.resources.read().get(resource).and_then(|known| known.last_error.clone());
        built_in.or_else(|| self.customs.read().get(resource).cloned())
    }

    pub(crate) fn complete(&self) {
        self.completed.store(true, Ordering::Release);
    }

    /// Every custom resource that was defined when the server started was tried once. True if that is news.
    pub(crate) fn tried_definitions(&self) -> bool {
        !self.definitions_tried.swap(true, Ordering::AcqRel)
    }

    /// This process holds the lease, or why it does not.
    pub(crate) fn identity(&self, error: Option<String>) {
        if error.is_none() {
            self.identified.store(true, Ordering::Release);
        }
        *self.identity_error.write() = error;
    }

    pub(crate) fn identity_error(&self) -> String {
        self.identity_error.read().clone().unwrap_or_else(|| "it is being acquired".to_owned())
    }

    /// Whether the server has an identity.
    pub(crate) fn identity_health(&self) -> Result<(), Unhealthy> {
        match (&*self.identity_error.read(), self.identified.load(Ordering::Acquire)) {
            (Some(error), _) => Err(Unhealthy(error.clone())),
            (None, false) => Err(Unhealthy("not finished".to_owned())),
            (None, true) => Ok(()),
        }
    }

    /// Whether every built-in resource was registered once. Custom resources were tried: one whose registration fails keeps
    /// its own writes waiting, and nothing else.
    pub(crate) fn registration_health(&self) -> Result<(), Unhealthy> {
        if self.is_completed() && self.definitions_tried.load(Ordering::Acquire) {
            Ok(())
        } else {
            Err(Unhealthy("not finished".to_owned()))
        }
    }
}

impl StorageVersions for Progress {
    fn is_completed(&self) -> bool {
        self.completed.load(Ordering::Acquire)
    }

    fn pending(&self, resource: &GroupResource) -> Option<Option<String>> {
        let resources = self.resources.read();
        let known = resources.get(resource).filter(|known| !known.done)?;
        Some(known.last_error.clone())
    }
}
