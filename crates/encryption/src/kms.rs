//! Values whose keys a key management service keeps: version 2 of its protocol.
//!
//! A service encrypts one seed for each server, and every value has a key of its own that follows from the seed and from
//! random bytes beside the value. So the service is asked for as many decryptions as there were seeds, and not values.
//! Whoever talks to the service tells an [`Envelope`] what it said; nothing here does.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

use aws_lc_rs::{
    digest::{SHA256, digest},
    hkdf::{self, HKDF_SHA256, Prk},
    rand,
};
use parking_lot::RwLock;
use prost::Message as _;
use zeroize::Zeroizing;

use crate::{
    Kms, OpenError, Opened, SealError,
    aes::Gcm,
    wrapped::{EncryptedObject, SourceType, Wrapped},
};

/// How long a seed is, and the random bytes that make a key of it.
const SEED: usize = 32;
const INFO: usize = 32;

/// How many keys are remembered that a service has decrypted; then it is asked again.
const REMEMBERED: usize = 10_000;

/// A key management service, as far as it is known here what it said.
pub struct Envelope {
    /// Where it is.
    pub service: Kms,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    writing: Option<Arc<Writing>>,
    /// Why nothing is written although there is a key.
    expired: Option<String>,
    /// What was decrypted, by what it was wrapped as.
    opened: HashMap<[u8; 32], Arc<Dek>>,
    /// What could not be, and why.
    refused: HashMap<[u8; 32], String>,
}

/// What values are written with.
struct Writing {
    seed: Dek,
    wrapped: Wrapped,
}

/// A key, or what keys are made of.
enum Dek {
    Key(Gcm),
    Seed(Prk),
}

/// A seed that the service has not encrypted yet.
pub struct Seed(Zeroizing<[u8; SEED]>);

impl Seed {
    /// Random bytes.
    ///
    /// # Errors
    ///
    /// When there are none.
    pub fn random() -> Result<Self, SealError> {
        let mut seed = Zeroizing::new([0; SEED]);
        rand::fill(seed.as_mut()).map_err(|_| SealError::Random)?;
        Ok(Self(seed))
    }

    /// What the service is to encrypt.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl fmt::Debug for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Envelope").field("service", &self.service).finish_non_exhaustive()
    }
}

impl Envelope {
    /// A service that has not said anything yet.
    pub fn new(service: Kms) -> Self {
        Self { service, state: RwLock::default() }
    }

    /// From now on values are written with a seed that the service has encrypted like this.
    ///
    /// # Errors
    ///
    /// When what the service said cannot be stored.
    pub fn write_with(&self, seed: &Seed, wrapped: Wrapped) -> Result<(), OpenError> {
        wrapped.validate()?;
        let writing = Writing { seed: Dek::seed(seed.bytes()), wrapped };
        let known = Arc::new(Dek::seed(seed.bytes()));
        let mut state = self.state.write();
        state.remember(writing.wrapped.hash(), known);
        (state.writing, state.expired) = (Some(Arc::new(writing)), None);
        Ok(())
    }

    /// The service has said that the key is the same: what has expired has not.
    pub fn renew(&self) {
        self.state.write().expired = None;
    }

    /// Nothing is written until the service says something, for this reason.
    pub fn expire(&self, why: String) {
        self.state.write().expired = Some(why);
    }

    /// The ID of the key that values are written with.
    pub fn key_id(&self) -> Option<String> {
        self.state.read().writing.as_ref().map(|writing| writing.wrapped.key_id.clone())
    }

    /// What has to be decrypted by the service before a value can be opened; `None` if that was tried already.
    pub fn wants(&self, stored: &[u8]) -> Option<Wrapped> {
        let sealed = stored.strip_prefix(self.prefix().as_bytes())?;
        let (wrapped, _) = EncryptedObject::decode(sealed).ok()?.check().ok()?;
        let (state, hash) = (self.state.read(), wrapped.hash());
        (!state.opened.contains_key(&hash) && !state.refused.contains_key(&hash)).then_some(wrapped)
    }

    /// What the service said when it was asked to decrypt something.
    pub fn learn(&self, wrapped: &Wrapped, answer: Result<&[u8], String>) {
        let dek = answer.map(|key| match wrapped.source_type {
            SourceType::Seed => Some(Dek::seed(key)),
            SourceType::Key => Gcm::new(key).map(Dek::Key),
        });
        let mut state = self.state.write();
        match dek {
            Ok(Some(dek)) => state.remember(wrapped.hash(), Arc::new(dek)),
            Ok(None) => state.refuse(wrapped.hash(), "crypto/aes: invalid key size".to_owned()),
            Err(why) => state.refuse(wrapped.hash(), format!("failed to decrypt DEK, error: {why}")),
        }
    }

    /// What could not be decrypted is to be tried again. Whether there was anything.
    pub fn try_again(&self) -> bool {
        !std::mem::take(&mut self.state.write().refused).is_empty()
    }

    /// What its values begin with.
    pub(crate) fn prefix(&self) -> String {
        format!("k8s:enc:kms:v2:{}:", self.service.name)
    }

    /// What values are written with, in the words of [`crate::seal_of`].
    pub(crate) fn label(&self) -> String {
        let state = self.state.read();
        let key = state.writing.as_ref().map(|writing| writing.wrapped.label());
        format!("kms:v2:{}:{}", self.service.name, key.as_deref().unwrap_or("unknown"))
    }

    pub(crate) fn seal(&self, place: &[u8], plain: &[u8], out: &mut Vec<u8>) -> Result<(), SealError> {
        let writing = {
            let state = self.state.read();
            if let Some(why) = &state.expired {
                return Err(SealError::Expired(why.clone()));
            }
            state.writing.clone().ok_or(SealError::NoKey)?
        };
        let Dek::Seed(seed) = &writing.seed else { return Err(SealError::NoKey) };
        let mut data = vec![0; INFO];
        rand::fill(&mut data).map_err(|_| SealError::Random)?;
        let key = derive(seed, &data).ok_or(SealError::NoKey)?;
        key.seal(place, plain, &mut data)?;
        writing.wrapped.clone().with(data).encode(out).map_err(|_| SealError::NoKey)
    }

    pub(crate) fn open(&self, place: &[u8], sealed: &[u8]) -> Result<Opened, OpenError> {
        let malformed = |_| OpenError::Malformed("proto: cannot parse invalid wire-format data".to_owned());
        let (wrapped, data) = EncryptedObject::decode(sealed).map_err(malformed)?.check()?;
        let (dek, is_current) = {
            let (state, hash) = (self.state.read(), wrapped.hash());
            let writing = state.writing.as_ref().ok_or(OpenError::NoState)?;
            let is_current =
                writing.wrapped.key_id == wrapped.key_id && wrapped.source_type == SourceType::Seed;
            let refused =
                || state.refused.get(&hash).cloned().unwrap_or_else(|| "failed to decrypt DEK".to_owned());
            let dek = state.opened.get(&hash).cloned().ok_or_else(|| OpenError::Service(refused()))?;
            (dek, is_current)
        };
        let plain = match dek.as_ref() {
            Dek::Key(key) => key.open(place, &data)?,
            Dek::Seed(seed) => {
                let (info, sealed) = data.split_at_checked(INFO).ok_or(OpenError::TooShort)?;
                derive(seed, info).ok_or(OpenError::Authentication)?.open(place, sealed)?
            }
        };
        Ok(Opened { plain: Some(plain), stale: !is_current, key: None })
    }
}

impl State {
    fn remember(&mut self, hash: [u8; 32], dek: Arc<Dek>) {
        if self.opened.len() >= REMEMBERED {
            self.opened.clear();
        }
        self.refused.remove(&hash);
        self.opened.insert(hash, dek);
    }

    fn refuse(&mut self, hash: [u8; 32], why: String) {
        if self.refused.len() >= REMEMBERED {
            self.refused.clear();
        }
        self.refused.insert(hash, why);
    }
}

impl Dek {
    fn seed(seed: &[u8]) -> Self {
        Self::Seed(Prk::new_less_safe(HKDF_SHA256, seed))
    }
}

/// How much is to be derived.
struct KeyLength;

impl hkdf::KeyType for KeyLength {
    fn len(&self) -> usize {
        SEED
    }
}

/// The key of one value.
fn derive(seed: &Prk, info: &[u8]) -> Option<Gcm> {
    let mut key = Zeroizing::new([0; SEED]);
    seed.expand(&[info], KeyLength).ok()?.fill(key.as_mut()).ok()?;
    Gcm::new(key.as_ref())
}

/// What is said of the ID of a key instead of it.
pub fn key_id_hash(id: &str) -> String {
    let digits = digest(&SHA256, id.as_bytes());
    let digits = digits.as_ref().iter().map(|byte| format!("{byte:02x}"));
    if id.is_empty() { String::new() } else { format!("sha256:{}", digits.collect::<String>()) }
}

/// What a value that such a service has the key of says about it: what comes after its provider and name.
pub(crate) fn label_of(sealed: &[u8]) -> String {
    let read = EncryptedObject::decode(sealed).ok().and_then(|object| object.check().ok());
    read.map_or_else(|| "unknown".to_owned(), |(wrapped, _)| wrapped.label())
}

/// Annotations by their names.
pub(crate) type Annotations = BTreeMap<String, Vec<u8>>;
