//! What seals and opens values.

use std::{borrow::Cow, sync::Arc};

use aws_lc_rs::hmac;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use zeroize::Zeroizing;

use crate::{
    ConfigError, Envelope, Key, Kms, OpenError, Provider, SealError,
    aes::{Cbc, Gcm},
    kms::label_of,
    secretbox::Secretbox,
};

/// What every sealed value begins with, and no other one does.
const SEALED: &[u8] = b"k8s:enc:";

/// The ways in which the values of one resource are stored: the first one writes, all of them read.
#[derive(Default)]
pub struct Providers(Vec<Keys>);

/// A provider with its keys, of which the first one writes.
struct Keys {
    /// What it is called in errors.
    kind: &'static str,
    /// What its values begin with; nothing if they are stored as they are.
    prefix: Cow<'static, str>,
    keys: Vec<Named>,
}

struct Named {
    /// With a colon at the end.
    name: String,
    /// What is said of it where people look; nothing if a key management service says that.
    label: Option<Arc<str>>,
    cipher: Cipher,
}

enum Cipher {
    Gcm(Gcm),
    Cbc(Box<Cbc>),
    Secretbox(Secretbox),
    Kms(Arc<Envelope>),
}

/// A value that was opened.
#[derive(Debug, PartialEq, Eq)]
pub struct Opened {
    /// What was sealed; `None` if it is stored as it is.
    pub plain: Option<Vec<u8>>,
    /// Whether it would be written otherwise now.
    pub stale: bool,
    /// The key that opened it, in the words of [`Providers::label`]: values of two keys that have one name look alike, and
    /// only whoever opens them can tell them apart. `None` if [`seal_of`] says it.
    pub key: Option<Arc<str>>,
}

/// What a stored value says that it was written with: [`Providers::label`] without the tag of the key, which nobody knows
/// who has not opened it; nothing if it is stored as it is.
///
/// ```
/// use concord_encryption::seal_of;
/// assert_eq!(seal_of(b"k8s:enc:aescbc:v1:key1:\x01\x02"), "aescbc:v1:key1");
/// assert_eq!(seal_of(b"{}"), "");
/// ```
pub fn seal_of(stored: &[u8]) -> Cow<'_, str> {
    let Some(rest) = stored.strip_prefix(SEALED) else { return "".into() };
    let mut colons = rest.iter().enumerate().filter(|(_, byte)| **byte == b':').map(|(at, _)| at);
    let end = colons.nth(2).unwrap_or(rest.len().min(128));
    let seal = std::str::from_utf8(&rest[..end]).unwrap_or("unknown");
    match seal.starts_with("kms:v2:") {
        true => format!("{seal}:{}", label_of(rest.get(end + 1..).unwrap_or_default())).into(),
        false => seal.into(),
    }
}

impl Providers {
    /// Values are stored as they are.
    pub fn identity() -> Self {
        Self(vec![Keys { kind: "identity", prefix: "".into(), keys: Vec::new() }])
    }

    /// These, in their order.
    ///
    /// # Errors
    ///
    /// When one needs something that is not there.
    pub(crate) fn new<'a>(
        providers: impl Iterator<Item = &'a Provider>,
        service: &mut dyn FnMut(&Kms) -> Arc<Envelope>,
    ) -> Result<Self, ConfigError> {
        providers.map(|provider| Keys::new(provider, service)).collect::<Result<_, _>>().map(Self)
    }

    /// Reads with these, too.
    pub(crate) fn append(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Whether values are stored as they are, and nothing else can be read.
    pub fn is_plain(&self) -> bool {
        self.0.iter().all(|keys| keys.prefix.is_empty())
    }

    /// What values are written with, in the words of a stored value and with a tag of the key: `aescbc:v1:key1:` and 16
    /// digits, or nothing. Somebody may give another key the name of the last one; their tags differ.
    pub fn label(&self) -> String {
        self.labels().into_iter().next().unwrap_or_default()
    }

    /// What can be read, each in the words of [`Providers::label`], in the order of the file.
    pub fn labels(&self) -> Vec<String> {
        let labels = |keys: &Keys| -> Vec<String> {
            if let Some(service) = keys.service() {
                return vec![service.label()];
            }
            match keys.keys.is_empty() {
                true => vec![keys.prefix.trim_start_matches("k8s:enc:").to_owned()],
                false => keys.keys.iter().filter_map(|key| Some(key.label.as_deref()?.to_owned())).collect(),
            }
        };
        self.0.iter().flat_map(labels).collect()
    }

    /// What is to be stored under a key.
    ///
    /// # Errors
    ///
    /// When there are no random numbers, or a key management service gives no key.
    pub fn seal(&self, place: &[u8], plain: &[u8]) -> Result<Option<Vec<u8>>, SealError> {
        let Some((keys, first)) = self.0.first().and_then(|keys| Some((keys, keys.keys.first()?))) else {
            return Ok(None);
        };
        let mut out = Vec::with_capacity(keys.prefix.len() + first.name.len() + plain.len() + 64);
        out.extend_from_slice(keys.prefix.as_bytes());
        out.extend_from_slice(first.name.as_bytes());
        match &first.cipher {
            Cipher::Gcm(cipher) => cipher.seal(place, plain, &mut out)?,
            Cipher::Cbc(cipher) => cipher.seal(plain, &mut out)?,
            Cipher::Secretbox(cipher) => cipher.seal(plain, &mut out)?,
            Cipher::Kms(service) => service.seal(place, plain, &mut out)?,
        }
        Ok(Some(out))
    }

    /// The key management services that a value may have been sealed with.
    pub fn services(&self, stored: &[u8]) -> impl Iterator<Item = &Arc<Envelope>> {
        let may = |keys: &&Keys| stored.starts_with(keys.prefix.as_bytes());
        self.0.iter().filter(may).filter_map(Keys::service)
    }

    /// What is stored under a key.
    ///
    /// # Errors
    ///
    /// Why none of the providers can tell.
    pub fn open(&self, place: &[u8], stored: &[u8]) -> Result<Opened, OpenError> {
        let mut errors = Vec::new();
        for (at, keys) in self.0.iter().enumerate() {
            let Some(rest) = stored.strip_prefix(keys.prefix.as_bytes()) else { continue };
            match keys.open(place, rest) {
                Ok(opened) => return Ok(Opened { stale: opened.stale || at > 0, ..opened }),
                // Another provider may well read what is stored encrypted.
                Err(OpenError::Encrypted) => {}
                Err(error) => errors.push(error),
            }
        }
        let only_identity = self.0.iter().all(|keys| keys.prefix.is_empty());
        Err(match errors.len() {
            0 if only_identity => OpenError::Encrypted,
            0 => OpenError::NoProvider,
            1 => errors.remove(0),
            _ => OpenError::Several(errors),
        })
    }
}

impl Keys {
    fn new(provider: &Provider, service: &mut dyn FnMut(&Kms) -> Arc<Envelope>) -> Result<Self, ConfigError> {
        let (kind, prefix, keys): (_, _, &[Key]) = match provider {
            Provider::Identity => ("identity", "", &[]),
            Provider::AesGcm(keys) => ("AES", "k8s:enc:aesgcm:v1:", keys),
            Provider::AesCbc(keys) => ("AES", "k8s:enc:aescbc:v1:", keys),
            Provider::Secretbox(keys) => ("Secretbox", "k8s:enc:secretbox:v1:", keys),
            Provider::Kms(kms) if kms.api_version == "v1" => return Err(ConfigError::KmsV1),
            Provider::Kms(kms) => {
                let service = service(kms);
                let prefix = service.prefix().into();
                let only = Named { name: String::new(), label: None, cipher: Cipher::Kms(service) };
                return Ok(Self { kind: "KMS", prefix, keys: vec![only] });
            }
        };
        let named = |key: &Key| {
            let bad = || ConfigError::Malformed(format!("the secret of key {:?} cannot be used", key.name));
            let secret = BASE64_STANDARD.decode(key.secret.as_bytes()).map(Zeroizing::new);
            let secret = secret.map_err(|_| bad())?;
            let cipher = match provider {
                Provider::AesGcm(_) => Gcm::new(&secret).map(Cipher::Gcm),
                Provider::AesCbc(_) => Cbc::new(&secret).map(|cipher| Cipher::Cbc(Box::new(cipher))),
                _ => Secretbox::new(&secret).map(Cipher::Secretbox),
            };
            let label = format!("{}{}", prefix.trim_start_matches("k8s:enc:"), key.name);
            let label = Some(format!("{label}:{}", tag(&secret, &label)).into());
            Ok(Named { name: format!("{}:", key.name), label, cipher: cipher.ok_or_else(bad)? })
        };
        Ok(Self {
            kind,
            prefix: prefix.into(),
            keys: keys.iter().map(named).collect::<Result<_, ConfigError>>()?,
        })
    }

    /// The key management service that has its keys.
    fn service(&self) -> Option<&Arc<Envelope>> {
        match &self.keys.first()?.cipher {
            Cipher::Kms(service) => Some(service),
            _ => None,
        }
    }

    /// Opens what comes after the prefix.
    fn open(&self, place: &[u8], rest: &[u8]) -> Result<Opened, OpenError> {
        if self.prefix.is_empty() {
            return match rest.starts_with(SEALED) {
                true => Err(OpenError::Encrypted),
                false => Ok(Opened { plain: None, stale: false, key: None }),
            };
        }
        let mut errors = Vec::new();
        for (at, key) in self.keys.iter().enumerate() {
            let Some(sealed) = rest.strip_prefix(key.name.as_bytes()) else { continue };
            let of = |plain| Opened { plain: Some(plain), stale: false, key: key.label.clone() };
            let opened = match &key.cipher {
                Cipher::Gcm(cipher) => cipher.open(place, sealed).map(of),
                Cipher::Cbc(cipher) => cipher.open(sealed).map(of),
                Cipher::Secretbox(cipher) => cipher.open(sealed).map(of),
                Cipher::Kms(service) => service.open(place, sealed),
            };
            match opened {
                Ok(opened) => return Ok(Opened { stale: opened.stale || at > 0, ..opened }),
                Err(error) => errors.push(error),
            }
        }
        Err(match errors.len() {
            0 => OpenError::NoKey(self.kind),
            1 => errors.remove(0),
            _ => OpenError::Several(errors),
        })
    }
}

/// What tells a key from others of its name without telling anything else about it: keyed with the secret, so that only
/// whoever has the secret can make it.
fn tag(secret: &[u8], label: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let tag = hmac::sign(&key, format!("concord: tag of the key {label}").as_bytes());
    tag.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
