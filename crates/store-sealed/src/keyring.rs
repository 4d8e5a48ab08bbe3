use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use concord_encryption::{ConfigError, Configuration, Encryption, Envelope, Providers, SealError, seal_of};
use concord_store::unreadable;
use tokio::sync::watch;

use crate::{
    Places,
    kms::{Plugin, Rhythm},
    places::Place,
};

/// What values begin with whose keys a key management service has.
const SERVICE: &[u8] = b"k8s:enc:kms:v2:";

type Plugins = Vec<Arc<Plugin>>;

/// What seals and opens values now. It can be replaced at any time, without a pause for anybody.
pub struct Keyring {
    places: Places,
    current: ArcSwap<Current>,
    /// Who asks the key management services.
    plugins: ArcSwap<Plugins>,
    rhythm: Rhythm,
    /// How often it was replaced, or a key management service changed its key.
    replaced: watch::Sender<u64>,
    /// Whether something was shown that could not be opened.
    missed: AtomicBool,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring").finish_non_exhaustive()
    }
}

struct Current {
    encryption: Encryption,
    /// By what the keys of the objects begin with, so that the common resources need no search.
    built_in: HashMap<String, Arc<Providers>>,
}

/// What a value is as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspected {
    /// What it was sealed with, in the words of [`Keyring::seals_with`]; without the tag of the key if none opens it, and
    /// empty if it is kept as it is.
    pub seal: String,
    /// Whether it would be sealed otherwise now.
    pub is_stale: bool,
    /// What it says; what stands for it if it cannot be opened.
    pub plain: Bytes,
}

impl Keyring {
    /// Seals and opens as this configuration says.
    pub fn new(encryption: Encryption, places: Places) -> Self {
        Self {
            current: ArcSwap::from_pointee(Current::new(encryption, &places)),
            places,
            plugins: ArcSwap::default(),
            rhythm: Rhythm::default(),
            replaced: watch::Sender::new(0),
            missed: AtomicBool::new(false),
        }
    }

    /// Asks key management services as often as this.
    #[must_use]
    pub fn with_rhythm(self, rhythm: Rhythm) -> Self {
        Self { rhythm, ..self }
    }

    /// What a configuration means after the one that is in force: key management services that are in both are not asked
    /// anew.
    ///
    /// # Errors
    ///
    /// When it cannot be used.
    pub fn next(&self, configuration: &Configuration) -> Result<Encryption, ConfigError> {
        Encryption::after(configuration, &self.current.load().encryption)
    }

    /// From now on as this one says.
    pub fn replace(&self, encryption: Encryption) {
        self.current.store(Arc::new(Current::new(encryption, &self.places)));
        self.dismiss();
        self.tell();
    }

    /// From now on as this one says, if all key management services that it needs are well; or else as before.
    ///
    /// # Errors
    ///
    /// Which are not, in upstream's words.
    pub async fn replace_if_well(self: &Arc<Self>, encryption: Encryption) -> Result<(), String> {
        self.attend_to(&encryption).await;
        match self.health_of(&encryption) {
            Ok(()) => {
                self.replace(encryption);
                Ok(())
            }
            failed => {
                self.dismiss();
                failed
            }
        }
    }

    /// Services that are not in force are not asked any more.
    fn dismiss(&self) {
        let current = self.current.load();
        let is_needed =
            |plugin: &&Arc<Plugin>| current.encryption.services().any(|service| plugin.is_for(service));
        let needed: Plugins = self.plugins.load().iter().filter(is_needed).cloned().collect();
        self.plugins.store(Arc::new(needed));
    }

    /// Asks the key management services that the configuration in force needs.
    pub async fn attend(self: &Arc<Self>) {
        self.attend_to(&self.current.load().encryption).await;
    }

    /// Asks the key management services that a configuration needs, before it is put in force. They are asked on and on,
    /// until another configuration is.
    pub async fn attend_to(self: &Arc<Self>, encryption: &Encryption) {
        for service in encryption.services() {
            if self.plugin(service).is_some() {
                continue;
            }
            let plugin = Plugin::start(service.clone(), Arc::downgrade(self), self.rhythm).await;
            let mut plugins = Plugins::clone(&self.plugins.load());
            plugins.push(Arc::new(plugin));
            self.plugins.store(Arc::new(plugins));
        }
    }

    /// Whether there are key management services to be asked.
    pub fn has_services(&self) -> bool {
        self.current.load().encryption.services().next().is_some()
    }

    /// Whether all key management services in force were well when they were asked last.
    ///
    /// # Errors
    ///
    /// Which were not, in upstream's words.
    pub fn health(&self) -> Result<(), String> {
        self.health_of(&self.current.load().encryption)
    }

    fn health_of(&self, encryption: &Encryption) -> Result<(), String> {
        let asked = encryption.services().filter_map(|service| self.plugin(service));
        let failure = |(at, plugin): (usize, Arc<Plugin>)| {
            plugin.health().err().map(|why| format!("kms-provider-{at}: {why}"))
        };
        let mut failures: Vec<String> = asked.enumerate().filter_map(failure).collect();
        match failures.len() {
            0 => Ok(()),
            1 => Err(failures.remove(0)),
            _ => Err(format!("[{}]", failures.join(", "))),
        }
    }

    /// Who asks a service.
    fn plugin(&self, service: &Arc<Envelope>) -> Option<Arc<Plugin>> {
        self.plugins.load().iter().find(|plugin| plugin.is_for(service)).cloned()
    }

    /// Has the key management services decrypt what is needed to open a value.
    pub(crate) async fn unlock(&self, key: &[u8], kept: &[u8]) {
        if !kept.starts_with(SERVICE) {
            return;
        }
        let providers = self.of(key);
        for service in providers.services(kept) {
            let Some(wrapped) = service.wants(kept) else { continue };
            if let Some(plugin) = self.plugin(service) {
                plugin.unwrap(&wrapped).await;
            }
        }
    }

    /// What is sealed or what can be opened may be another now.
    pub(crate) fn tell(&self) {
        self.replaced.send_modify(|count| *count += 1);
    }

    /// Tells when it is replaced, or a key management service changed its key. Whoever is told sees the new one.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.replaced.subscribe()
    }

    /// What values of a resource are sealed with now, such as `aescbc:v1:key1:` and a tag of the key; empty if they are kept as they are.
    pub fn seals_with(&self, group: &str, resource: &str) -> String {
        self.current.load().encryption.of(group, resource).label()
    }

    /// What values of a resource can be opened that were sealed with one of these.
    pub fn opens(&self, group: &str, resource: &str) -> Vec<String> {
        self.current.load().encryption.of(group, resource).labels()
    }

    /// What is known of a value as it is kept.
    pub fn inspect(&self, key: &[u8], kept: &Bytes) -> Inspected {
        let providers = self.of(key);
        let seal = || seal_of(kept).into_owned();
        match providers.open(key, kept) {
            Ok(opened) => Inspected {
                seal: opened.key.map_or_else(seal, |label| label.as_ref().to_owned()),
                is_stale: opened.stale,
                plain: opened.plain.map_or_else(|| kept.clone(), Bytes::from),
            },
            Err(error) => Inspected { seal: seal(), is_stale: true, plain: unreadable(&error.to_string()) },
        }
    }

    /// Whether a value cannot be opened, and will not be however long anybody waits: no key for it is configured, or the key
    /// management service that is asked for it is well and does not give it.
    pub fn is_lost(&self, key: &[u8], kept: &[u8]) -> bool {
        let providers = self.of(key);
        let is_away = |service: &Arc<Envelope>| self.plugin(service).is_none_or(|plugin| !plugin.is_well());
        providers.open(key, kept).is_err() && !providers.services(kept).any(is_away)
    }

    pub(crate) fn seal(&self, key: &[u8], plain: &[u8]) -> Result<Option<Vec<u8>>, SealError> {
        self.of(key).seal(key, plain)
    }

    /// What is shown of a value.
    pub(crate) fn open(&self, key: &[u8], kept: Bytes) -> Bytes {
        match self.of(key).open(key, &kept) {
            Ok(opened) => opened.plain.map_or(kept, |plain| plain.into_boxed_slice().into()),
            Err(error) => {
                if !self.missed.swap(true, Ordering::AcqRel) {
                    let key = String::from_utf8_lossy(key);
                    tracing::error!(%key, %error, "A stored value cannot be decrypted; there may be more of them.");
                }
                unreadable(&error.to_string())
            }
        }
    }

    /// Whether values may be kept in more than one form under this key.
    pub(crate) fn has_forms(&self, key: &[u8]) -> bool {
        !self.of(key).is_plain()
    }

    /// Whether something could not be opened since it was asked last.
    pub(crate) fn take_missed(&self) -> bool {
        self.missed.swap(false, Ordering::AcqRel)
    }

    fn of(&self, key: &[u8]) -> Arc<Providers> {
        let current = self.current.load();
        match self.places.of(key) {
            Some(Place::BuiltIn(place)) => {
                current.built_in.get(place).unwrap_or_else(|| current.encryption.others()).clone()
            }
            Some(Place::Custom(group, resource)) => current.encryption.of(group, resource).clone(),
            None => current.encryption.others().clone(),
        }
    }
}

impl Current {
    fn new(encryption: Encryption, places: &Places) -> Self {
        let providers = |(place, (group, resource)): (&String, &(String, String))| {
            (place.clone(), encryption.of(group, resource).clone())
        };
        Self { built_in: places.built_in().map(providers).collect(), encryption }
    }
}
