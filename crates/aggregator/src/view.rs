//! The APIServices in the log that matter to requests.

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use bytes::Bytes;
use concord_endpoints::Priority;
use concord_meta::GroupVersion;
use concord_replica::{Event, Snapshot, View};
use concord_store::{KeyRange, Revision};
use tokio::sync::watch;

use crate::service::ApiService;

/// What custom resources have.
pub(crate) const CUSTOM: Priority = Priority { group: 1000, version: 100 };

/// Keeps what APIServices say up to date, before anybody can read it elsewhere: whoever was told that an APIService is
/// stored finds it served.
pub struct ApiServicesView {
    prefix: Bytes,
    known: Known,
    shared: ApiServices,
}

/// What an [`ApiServicesView`] knows, for those who read it.
#[derive(Clone)]
pub struct ApiServices(Arc<Shared>);

struct Shared {
    registered: ArcSwap<Registered>,
    /// Told whenever it is another one.
    changed: watch::Sender<()>,
    built_in: BTreeMap<GroupVersion, Priority>,
}

/// What is registered at one moment.
#[derive(Debug, Default)]
pub(crate) struct Registered {
    /// What others serve, by group and version.
    remote: BTreeMap<String, BTreeMap<String, Arc<ApiService>>>,
    /// The places of this server's own, in groups where somebody changed one or others have a part.
    pub(crate) own: BTreeMap<GroupVersion, Priority>,
}

impl Registered {
    /// Who else serves a version of a group.
    pub(crate) fn find(&self, group: &str, version: &str) -> Option<&Arc<ApiService>> {
        self.remote.get(group)?.get(version)
    }

    /// Everything that others serve.
    pub(crate) fn remote(&self) -> impl Iterator<Item = &Arc<ApiService>> {
        self.remote.values().flat_map(BTreeMap::values)
    }
}

/// By the names of the APIServices. Those of this server that are as it makes them are not kept: there is one for each
/// version of a custom resource.
#[derive(Default)]
struct Known {
    remote: BTreeMap<String, Arc<ApiService>>,
    moved: BTreeMap<String, (GroupVersion, Priority)>,
}

impl ApiServicesView {
    /// A view of what is stored under keys that begin with `prefix`, such as `/registry/`. `built_in` are the places of the
    /// server's own versions.
    pub fn new(prefix: &str, built_in: BTreeMap<GroupVersion, Priority>) -> Self {
        let shared = Shared { registered: ArcSwap::default(), changed: watch::Sender::new(()), built_in };
        Self { prefix: self::prefix(prefix), known: Known::default(), shared: ApiServices(Arc::new(shared)) }
    }

    /// What it knows.
    pub fn services(&self) -> ApiServices {
        self.shared.clone()
    }

    /// Has exactly these.
    #[cfg(test)]
    pub(crate) fn set(&mut self, services: impl IntoIterator<Item = ApiService>) {
        self.known = Known::default();
        for service in services {
            self.note(&service.name.clone(), Some(service));
        }
        self.publish();
    }

    /// Takes note of an APIService. Whether that changes anything.
    fn note(&mut self, name: &str, service: Option<ApiService>) -> bool {
        let built_in = &self.shared.0.built_in;
        let known = (self.known.remote.remove(name), self.known.moved.remove(name));
        match service {
            Some(service) if service.backend.is_some() => {
                let is_same = known.0.as_deref() == Some(&service);
                self.known.remote.insert(name.to_owned(), Arc::new(service));
                !is_same || known.1.is_some()
            }
            Some(service) if usual(built_in, &service.version) != service.priority => {
                let place = (service.version, service.priority);
                let is_same = known.1.as_ref() == Some(&place);
                self.known.moved.insert(name.to_owned(), place);
                !is_same || known.0.is_some()
            }
            _ => known.0.is_some() || known.1.is_some(),
        }
    }

    fn publish(&self) {
        let mut registered = Registered::default();
        for service in self.known.remote.values() {
            let versions = registered.remote.entry(service.version.group.clone()).or_default();
            versions.insert(service.version.version.clone(), service.clone());
        }
        let built_in = &self.shared.0.built_in;
        let moved = self.known.moved.values();
        let is_shared = |group: &str| {
            registered.remote.contains_key(group) || moved.clone().any(|(of, _)| of.group == group)
        };
        let usual = built_in.iter().filter(|(version, _)| is_shared(&version.group));
        let usual = usual.map(|(version, priority)| (version.clone(), *priority));
        registered.own = usual.chain(moved.clone().cloned()).collect();
        self.shared.0.registered.store(Arc::new(registered));
        self.shared.0.changed.send_replace(());
    }
}

/// Where APIServices are stored.
pub(crate) fn prefix(prefix: &str) -> Bytes {
    format!("{prefix}apiregistration.k8s.io/apiservices/").into()
}

/// The place that this server gives to one of its versions.
fn usual(built_in: &BTreeMap<GroupVersion, Priority>, version: &GroupVersion) -> Priority {
    built_in.get(version).copied().unwrap_or(CUSTOM)
}

impl ApiServices {
    pub(crate) fn registered(&self) -> Arc<Registered> {
        self.0.registered.load_full()
    }

    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }

    pub(crate) fn built_in(&self) -> &BTreeMap<GroupVersion, Priority> {
        &self.0.built_in
    }
}

impl View for ApiServicesView {
    fn name(&self) -> &str {
        "apiservices"
    }

    fn prefixes(&self) -> Vec<Bytes> {
        vec![self.prefix.clone()]
    }

    fn reset(&mut self, snapshot: &Snapshot) {
        self.known = Known::default();
        for entry in snapshot.scan(&KeyRange::prefix(self.prefix.clone())) {
            let name = String::from_utf8_lossy(&entry.key[self.prefix.len()..]).into_owned();
            self.note(&name, ApiService::read(&entry.value));
        }
        self.publish();
    }

    fn apply(&mut self, _: Revision, events: &[Event]) {
        let mut changed = false;
        for event in events {
            let name = String::from_utf8_lossy(&event.key()[self.prefix.len()..]).into_owned();
            let service = event.current().and_then(|entry| ApiService::read(&entry.value));
            changed |= self.note(&name, service);
        }
        if changed {
            self.publish();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn view() -> ApiServicesView {
        let apps = |version| (GroupVersion::new("apps", version), Priority { group: 17800, version: 15 });
        ApiServicesView::new("/registry/", BTreeMap::from([apps("v1"), apps("v2")]))
    }

    fn service(version: &str, group: &str, priorities: (i32, i32), backend: &Value) -> Option<ApiService> {
        let object = json!({"metadata": {"name": format!("{version}.{group}")}, "spec": {
            "group": group, "version": version, "service": backend,
            "groupPriorityMinimum": priorities.0, "versionPriority": priorities.1,
        }});
        ApiService::read(object.to_string().as_bytes())
    }

    #[test]
    fn only_what_differs_is_kept() {
        let mut view = view();
        assert!(!view.note("v1.apps", service("v1", "apps", (17800, 15), &Value::Null)));
        assert!(!view.note("v1.a.io", service("v1", "a.io", (1000, 100), &Value::Null)));
        assert!(!view.note("v1.a.io", None));

        let backend = json!({"namespace": "ns", "name": "api"});
        assert!(view.note("v1.b.io", service("v1", "b.io", (1, 1), &backend)));
        assert!(!view.note("v1.b.io", service("v1", "b.io", (1, 1), &backend)));
        view.publish();
        let registered = view.services().registered();
        assert!(registered.find("b.io", "v1").is_some() && registered.find("b.io", "v2").is_none());
        assert!(registered.own.is_empty());

        assert!(view.note("v1.b.io", service("v1", "b.io", (1, 1), &Value::Null)));
        assert!(view.note("v1.b.io", None));
        view.publish();
        assert_eq!(view.services().registered().remote().count(), 0);
    }

    #[test]
    fn the_places_of_a_group_are_told_together() {
        let mut view = view();
        assert!(view.note("v2.apps", service("v2", "apps", (17800, 99), &Value::Null)));
        view.publish();
        let places: Vec<_> = view.services().registered().own.values().map(|place| place.version).collect();
        assert_eq!(places, [15, 99]);
    }
}
