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
use concord_encryption::{Encryption, Providers, SealError, seal_of};
use concord_store::unreadable;
use tokio::sync::watch;

use crate::{Places, places::Place};

/// What seals and opens values now. It can be replaced at any time, without a pause for anybody.
pub struct Keyring {
    places: Places,
    current: ArcSwap<Current>,
    /// How often it was replaced.
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
    /// What it was sealed with, such as `aescbc:v1:key1`; empty if it is kept as it is.
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
            replaced: watch::Sender::new(0),
            missed: AtomicBool::new(false),
        }
    }

    /// From now on as this one says.
    pub fn replace(&self, encryption: Encryption) {
        self.current.store(Arc::new(Current::new(encryption, &self.places)));
        self.replaced.send_modify(|count| *count += 1);
    }

    /// Tells when it is replaced. Whoever is told sees the new one.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.replaced.subscribe()
    }

    /// What values of a resource are sealed with now, such as `aescbc:v1:key1`; empty if they are kept as they are.
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
        let seal = seal_of(kept).to_owned();
        match providers.open(key, kept) {
            Ok(opened) => Inspected {
                seal,
                is_stale: opened.stale,
                plain: opened.plain.map_or_else(|| kept.clone(), Bytes::from),
            },
            Err(error) => Inspected { seal, is_stale: true, plain: unreadable(&error.to_string()) },
        }
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
