//! What other servers have said about themselves, put together.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use concord_endpoints::{Extension, Extensions};
use concord_openapi::{ExtensionDocument, ExtensionDocuments};
use parking_lot::Mutex;

use crate::{
    service::{ApiService, Backend},
    view::{ApiServices, Registered},
};

/// Everything that was learned of other servers. What is no longer registered is not shown, whatever was learned of it.
pub(crate) struct Catalogue {
    services: ApiServices,
    /// By the names of APIServices.
    learned: Mutex<BTreeMap<String, Learned>>,
    /// Another one whenever something is learned.
    generation: AtomicU64,
    composed: ArcSwap<Composed>,
}

/// What was learned of one server about one version.
struct Learned {
    /// From whom.
    from: (String, String, u16),
    /// Whether it could be reached when that was tried last. Until it was tried, the status of the APIService counts, which
    /// another server of the fleet may have written.
    is_reachable: Option<bool>,
    /// Its resources, and whether it said so when it was last asked.
    resources: Option<(Bytes, bool)>,
    /// The last document that could be used.
    document: Option<Arc<ExtensionDocument>>,
}

impl Learned {
    fn is_available(&self, service: &ApiService) -> bool {
        self.is_reachable.unwrap_or(service.is_available)
    }
}

/// What is shown of it.
#[derive(Default)]
pub(crate) struct Composed {
    registered: Arc<Registered>,
    generation: u64,
    pub(crate) extensions: Arc<Extensions>,
    pub(crate) documents: Arc<ExtensionDocuments>,
}

impl Catalogue {
    pub(crate) fn new(services: ApiServices) -> Self {
        Self {
            services,
            learned: Mutex::default(),
            generation: AtomicU64::new(0),
            composed: ArcSwap::default(),
        }
    }

    /// Takes note of whether a server can be reached from here.
    pub(crate) fn learn_reachable(&self, service: &ApiService, is_reachable: bool) {
        self.learn(service, |learned| learned.is_reachable.replace(is_reachable) != Some(is_reachable));
    }

    /// Whether requests are sent to a server.
    pub(crate) fn is_available(&self, service: &ApiService) -> bool {
        let from = service.backend.as_ref().map(place);
        let learned = self.learned.lock();
        let learned = learned.get(&service.name).filter(|learned| Some(&learned.from) == from.as_ref());
        learned.map_or(service.is_available, |learned| learned.is_available(service))
    }

    /// The resources of a server, as a list in JSON, if it can be reached and said so when it was last asked.
    pub(crate) fn fresh_resources(&self, service: &ApiService) -> Option<Bytes> {
        let from = service.backend.as_ref().map(place)?;
        let learned = self.learned.lock();
        let learned = learned.get(&service.name).filter(|learned| learned.from == from)?;
        let (resources, is_fresh) = learned.resources.clone()?;
        (is_fresh && learned.is_available(service)).then_some(resources)
    }

    /// Takes note of the resources that a server has, or with `None` that it did not say so when it was asked.
    pub(crate) fn learn_resources(&self, service: &ApiService, resources: Option<Bytes>) {
        self.learn(service, |learned| {
            let before = learned.resources.clone();
            match resources {
                Some(resources) => learned.resources = Some((resources, true)),
                None => {
                    if let Some((_, is_fresh)) = &mut learned.resources {
                        *is_fresh = false;
                    }
                }
            }
            learned.resources != before
        });
    }

    /// Takes note of a document, and answers whether it is another one than before.
    pub(crate) fn learn_document(&self, service: &ApiService, document: ExtensionDocument) -> bool {
        self.learn(service, |learned| {
            if learned.document.as_deref() == Some(&document) {
                return false;
            }
            learned.document = Some(Arc::new(document));
            true
        })
    }

    /// Takes note of a document from before this server was started, unless it knows one.
    pub(crate) fn recall_document(&self, service: &ApiService, document: ExtensionDocument) {
        self.learn(service, |learned| {
            let is_news = learned.document.is_none();
            learned.document.get_or_insert_with(|| Arc::new(document));
            is_news
        });
    }

    /// Takes note of something, and answers whether it changes what is shown.
    fn learn(&self, service: &ApiService, change: impl FnOnce(&mut Learned) -> bool) -> bool {
        let Some(from) = service.backend.as_ref().map(place) else { return false };
        let mut all = self.learned.lock();
        let nothing = || Learned { from: from.clone(), is_reachable: None, resources: None, document: None };
        let learned = all.entry(service.name.clone()).or_insert_with(nothing);
        if learned.from != from {
            *learned = nothing();
        }
        let is_changed = change(learned);
        if is_changed {
            self.generation.fetch_add(1, Ordering::Release);
        }
        is_changed
    }

    /// Forgets what was learned about APIServices that are gone.
    pub(crate) fn retain(&self, is_there: impl Fn(&str) -> bool) {
        self.learned.lock().retain(|name, _| is_there(name));
    }

    /// What is shown now.
    pub(crate) fn composed(&self) -> Arc<Composed> {
        let registered = self.services.registered();
        let generation = self.generation.load(Ordering::Acquire);
        let before = self.composed.load_full();
        if Arc::ptr_eq(&before.registered, &registered) && before.generation == generation {
            return before;
        }
        // Whoever is here at the same time makes the same; one of the two is kept.
        let composed = Arc::new(self.compose(registered, generation, &before));
        self.composed.store(composed.clone());
        composed
    }

    /// What did not change is taken from before: documents are kept with it.
    fn compose(&self, registered: Arc<Registered>, generation: u64, before: &Composed) -> Composed {
        let learned = self.learned.lock();
        let of = |service: &ApiService| {
            let from = service.backend.as_ref().map(place);
            learned.get(&service.name).filter(|learned| Some(&learned.from) == from.as_ref())
        };
        let extension = |service: &Arc<ApiService>| {
            let learned = of(service);
            let known = learned.and_then(|learned| learned.resources.clone());
            let (resources, is_fresh) = known.unwrap_or((Bytes::from_static(b"[]"), false));
            let is_available = learned.map_or(service.is_available, |learned| learned.is_available(service));
            Extension {
                version: service.version.clone(),
                priority: service.priority,
                resources,
                is_fresh: is_fresh && is_available,
            }
        };
        let extensions = Extensions::new(
            registered.remote().map(extension),
            registered.own.iter().map(|(version, priority)| (version.clone(), *priority)),
        );
        let document =
            |service: &Arc<ApiService>| Some((service.version.clone(), of(service)?.document.clone()?));
        // Names of types go to who comes first in discovery, too.
        let mut services: Vec<&Arc<ApiService>> = registered.remote().collect();
        services.sort_by_key(|service| Reverse((service.priority.group, service.priority.version)));
        let documents: ExtensionDocuments = services.into_iter().filter_map(document).collect();
        let extensions =
            if extensions == *before.extensions { before.extensions.clone() } else { Arc::new(extensions) };
        let documents =
            if documents == *before.documents { before.documents.clone() } else { Arc::new(documents) };
        Composed { registered, generation, extensions, documents }
    }
}

/// What tells servers apart. Whom to believe that it is that server does not.
fn place(backend: &Backend) -> (String, String, u16) {
    (backend.namespace.clone(), backend.name.clone(), backend.port)
}

#[cfg(test)]
mod tests {
    use concord_endpoints::Priority;
    use concord_meta::GroupVersion;

    use super::*;
    use crate::{service::Managed, view::ApiServicesView};

    fn service(port: u16, is_available: bool) -> ApiService {
        ApiService {
            name: "v1.a.io".to_owned(),
            uid: "u".to_owned(),
            version: GroupVersion::new("a.io", "v1"),
            priority: Priority { group: 1, version: 1 },
            backend: Some(Backend {
                namespace: "ns".to_owned(),
                name: "api".to_owned(),
                port,
                ca_bundle: Bytes::new(),
                insecure_skip_tls_verify: true,
            }),
            managed: Managed::ByHand,
            is_available,
            is_told_local: false,
        }
    }

    fn shown(resources: &'static str, is_fresh: bool) -> Extensions {
        let extension = Extension {
            version: GroupVersion::new("a.io", "v1"),
            priority: Priority { group: 1, version: 1 },
            resources: Bytes::from_static(resources.as_bytes()),
            is_fresh,
        };
        Extensions::new([extension], [])
    }

    #[test]
    fn what_was_said_last_stays_until_it_is_somebody_elses() {
        let mut view = ApiServicesView::new("/registry/", BTreeMap::new());
        let catalogue = Catalogue::new(view.services());
        let extensions = || catalogue.composed().extensions.clone();
        view.set([service(443, true)]);
        assert_eq!(*extensions(), shown("[]", false), "it is there before it said anything");

        catalogue.learn_resources(&service(443, true), Some(Bytes::from_static(b"[1]")));
        assert_eq!(*extensions(), shown("[1]", true));
        catalogue.learn_resources(&service(443, true), None);
        assert_eq!(*extensions(), shown("[1]", false));
        catalogue.learn_resources(&service(443, true), Some(Bytes::from_static(b"[1]")));
        view.set([service(443, false)]);
        assert_eq!(*extensions(), shown("[1]", false));

        view.set([service(444, true)]);
        assert_eq!(*extensions(), shown("[]", false));
        view.set([]);
        assert_eq!(*extensions(), Extensions::default());
    }

    #[test]
    fn documents_are_theirs_and_others_are_kept_while_nothing_changes() {
        let mut view = ApiServicesView::new("/registry/", BTreeMap::new());
        let catalogue = Catalogue::new(view.services());
        view.set([service(443, true)]);
        let document = |title: &str| {
            let text = format!(r#"{{"openapi":"3.0.0","info":{{"title":"{title}","version":"1"}}}}"#);
            ExtensionDocument::read(text.as_bytes(), &GroupVersion::new("a.io", "v1")).expect("a document")
        };
        catalogue.learn_document(&service(443, true), document("one"));
        let first = catalogue.composed();
        catalogue.learn_document(&service(443, true), document("one"));
        view.set([service(443, true)]);
        let same = catalogue.composed();
        assert!(
            Arc::ptr_eq(&first.documents, &same.documents)
                && Arc::ptr_eq(&first.extensions, &same.extensions)
        );
        catalogue.recall_document(&service(443, true), document("before"));
        assert!(Arc::ptr_eq(&first.documents, &catalogue.composed().documents), "it is known better by now");
        assert!(catalogue.learn_document(&service(443, true), document("two")));
        assert!(!Arc::ptr_eq(&first.documents, &catalogue.composed().documents));
        view.set([service(444, true)]);
        assert_eq!(*catalogue.composed().documents, ExtensionDocuments::default());
    }
}
