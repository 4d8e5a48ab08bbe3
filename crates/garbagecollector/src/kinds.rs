use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use concord_registry::{Resource, Resources, Storage, Verb};
use parking_lot::RwLock;

/// How soon after all resources were looked at it makes sense to do so again for a kind that is not among them.
const PAUSE: Duration = Duration::from_millis(100);

/// What is served here, by what references and keys say.
pub(crate) struct Kinds {
    resources: Arc<dyn Resources>,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    /// By `apiVersion`, then by kind.
    by_kind: HashMap<String, HashMap<String, Arc<Resource>>>,
    /// All versions, the preferred one first.
    by_prefix: HashMap<Bytes, Vec<Arc<Resource>>>,
    made: Option<Instant>,
}

impl Known {
    fn kind(&self, api_version: &str, kind: &str) -> Option<Arc<Resource>> {
        self.by_kind.get(api_version)?.get(kind).cloned()
    }

    fn key(&self, key: &[u8], api_version: &str) -> Option<Arc<Resource>> {
        let ends = key.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let versions = ends.filter_map(|(at, _)| self.by_prefix.get(&key[..=at])).next_back()?;
        // In the version it is stored in an object need not be converted.
        let stored = versions.iter().find(|resource| resource.version.to_string() == api_version);
        stored.or_else(|| versions.first()).cloned()
    }
}

impl Kinds {
    pub(crate) fn new(resources: Arc<dyn Resources>) -> Self {
        Self { resources, known: RwLock::default() }
    }

    /// Whether what is served is not older than the state that was taken before.
    pub(crate) fn is_current(&self) -> bool {
        self.resources.is_current()
    }

    /// The resource whose objects are of this kind, if they are stored.
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<Arc<Resource>> {
        self.find(|known| known.kind(api_version, kind))
    }

    /// The resource that a key is of, if its objects can be deleted, best in this version.
    pub(crate) fn of_key(&self, key: &[u8], api_version: &str) -> Option<Arc<Resource>> {
        self.find(|known| known.key(key, api_version)).filter(|found| found.allows(Verb::Delete))
    }

    fn find(&self, find: impl Fn(&Known) -> Option<Arc<Resource>>) -> Option<Arc<Resource>> {
        let found = find(&self.known.read());
        if found.as_ref().is_some_and(|found| self.is_served(found)) {
            return found;
        }
        let is_fresh = |known: &Known| known.made.is_some_and(|made| made.elapsed() < PAUSE);
        let mut known = self.known.write();
        // What was there and is no longer served may be served differently by now; what never was comes in its time.
        if found.is_some() || !is_fresh(&known) {
            *known = self.read();
        }
        find(&known)
    }

    fn is_served(&self, resource: &Arc<Resource>) -> bool {
        let served = self.resources.find(&resource.version, &resource.names.plural);
        served.is_some_and(|served| Arc::ptr_eq(&served, resource))
    }

    fn read(&self) -> Known {
        let mut known = Known { made: Some(Instant::now()), ..Known::default() };
        for resource in self.resources.all() {
            let Some(prefix) = resource.storage().map(|storage: &Arc<Storage>| storage.prefix.clone()) else {
                continue;
            };
            let kinds = known.by_kind.entry(resource.version.to_string()).or_default();
            kinds.entry(resource.names.kind.clone()).or_insert_with(|| resource.clone());
            known.by_prefix.entry(prefix).or_default().push(resource);
        }
        known
    }
}
