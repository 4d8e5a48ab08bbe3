//! The file: which providers there are for which resources.

use std::fmt;

use concord_codec::{FieldTree, FieldValidation, Options, decode_yaml, strict_decoding_error};
use concord_meta::go::parse_duration;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use crate::{ConfigError, validation::validate};

/// How long to wait for a key management service if the file does not say it, in nanoseconds.
const TIMEOUT: i64 = 3_000_000_000;

/// An `EncryptionConfiguration` of `apiserver.config.k8s.io/v1`, read and found in order.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// What is to be done, in the order of the file.
    pub rules: Vec<Rule>,
}

/// Some resources and what reads and writes them.
#[derive(Debug, Clone, Default)]
pub struct Rule {
    /// Names as the file has them: `secrets`, `deployments.apps`, `*.apps`, `*.` or `*.*`.
    pub resources: Vec<String>,
    /// Each with as many providers as the file put into one element. A rule in order has one in each.
    pub providers: Vec<Vec<Provider>>,
}

/// One way to store values.
#[derive(Debug, Clone)]
pub enum Provider {
    /// As they are.
    Identity,
    /// AES in Galois/Counter Mode.
    AesGcm(Vec<Key>),
    /// AES with Cipher Block Chaining.
    AesCbc(Vec<Key>),
    /// XSalsa20 and Poly1305.
    Secretbox(Vec<Key>),
    /// With keys that a key management service keeps.
    Kms(Kms),
}

/// A named key.
#[derive(Clone, Default)]
pub struct Key {
    /// What values that are sealed with it are marked with.
    pub name: String,
    /// In base64.
    pub secret: Zeroizing<String>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Where a key management service is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kms {
    /// Of its protocol, `v1` or `v2`.
    pub api_version: String,
    /// What values are marked with.
    pub name: String,
    /// A `unix://` address.
    pub endpoint: String,
    /// How long to wait for it, in nanoseconds.
    pub timeout: i64,
    /// How many keys of version 1 are kept.
    pub cachesize: Option<i64>,
}

impl Configuration {
    /// Reads a file, in YAML or JSON.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in upstream's words. No key is ever part of it.
    pub fn read(file: &[u8]) -> Result<Self, ConfigError> {
        if file.is_empty() {
            return Err(ConfigError::Empty);
        }
        let fields = fields();
        let options =
            Options { validation: FieldValidation::Strict, fields: Some(&fields), ..Options::default() };
        let decoded =
            decode_yaml(file, &options).map_err(|error| ConfigError::Malformed(error.to_string()))?;
        if !decoded.violations.is_empty() {
            return Err(ConfigError::Malformed(strict_decoding_error(&decoded.violations)));
        }
        let text = |name| decoded.object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (kind, api_version) = (text("kind"), text("apiVersion"));
        if kind != "EncryptionConfiguration" || api_version != "apiserver.config.k8s.io/v1" {
            return Err(ConfigError::Kind { kind, api_version });
        }
        let configuration = Self { rules: list(&decoded.object, "resources", rule)? };
        match validate(&configuration) {
            errors if errors.is_empty() => Ok(configuration),
            errors => Err(ConfigError::Invalid(errors)),
        }
    }
}

/// What may stand in the file.
fn fields() -> FieldTree {
    let text = || FieldTree::Opaque;
    let key = || FieldTree::object([("name", text()), ("secret", text())]);
    let keys = || FieldTree::object([("keys", FieldTree::List(Box::new(key())))]);
    let kms = FieldTree::object(
        ["apiVersion", "name", "endpoint", "timeout", "cachesize"].map(|name| (name, FieldTree::Opaque)),
    );
    let provider = FieldTree::object([
        ("aesgcm", keys()),
        ("aescbc", keys()),
        ("secretbox", keys()),
        ("identity", FieldTree::object([])),
        ("kms", kms),
    ]);
    let rule = FieldTree::object([
        ("resources", FieldTree::List(Box::new(text()))),
        ("providers", FieldTree::List(Box::new(provider))),
    ]);
    FieldTree::object([
        ("kind", text()),
        ("apiVersion", text()),
        ("resources", FieldTree::List(Box::new(rule))),
    ])
}

/// The elements of a list that may be absent.
fn list<T>(
    object: &Map<String, Value>,
    name: &str,
    read: impl Fn(&Value) -> Result<T, ConfigError>,
) -> Result<Vec<T>, ConfigError> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items.iter().map(read).collect(),
        Some(_) => Err(malformed(name, "a list")),
    }
}

fn text(object: &Map<String, Value>, name: &str) -> Result<String, ConfigError> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(malformed(name, "a string")),
    }
}

fn object<'a>(value: &'a Value, name: &str) -> Result<&'a Map<String, Value>, ConfigError> {
    value.as_object().ok_or_else(|| malformed(name, "an object"))
}

fn malformed(name: &str, expected: &str) -> ConfigError {
    ConfigError::Malformed(format!("{name} must be {expected}"))
}

fn rule(value: &Value) -> Result<Rule, ConfigError> {
    let rule = object(value, "resources")?;
    let name =
        |value: &Value| value.as_str().map(str::to_owned).ok_or_else(|| malformed("resources", "strings"));
    Ok(Rule { resources: list(rule, "resources", name)?, providers: list(rule, "providers", providers)? })
}

/// What is in one element of the list.
fn providers(value: &Value) -> Result<Vec<Provider>, ConfigError> {
    let element = object(value, "providers")?;
    let keys = |name: &str| -> Result<Option<Vec<Key>>, ConfigError> {
        let given = element.get(name).filter(|given| !given.is_null());
        given.map(|given| list(object(given, name)?, "keys", key)).transpose()
    };
    let given = |name: &str| element.get(name).filter(|given| !given.is_null());
    let found = [
        given("kms").map(kms).transpose()?.map(Provider::Kms),
        keys("aesgcm")?.map(Provider::AesGcm),
        keys("aescbc")?.map(Provider::AesCbc),
        keys("secretbox")?.map(Provider::Secretbox),
        given("identity").map(|_| Provider::Identity),
    ];
    Ok(found.into_iter().flatten().collect())
}

fn key(value: &Value) -> Result<Key, ConfigError> {
    let key = object(value, "keys")?;
    Ok(Key { name: text(key, "name")?, secret: text(key, "secret")?.into() })
}

fn kms(value: &Value) -> Result<Kms, ConfigError> {
    let kms = object(value, "kms")?;
    let api_version = match text(kms, "apiVersion")? {
        none if none.is_empty() => "v1".to_owned(),
        given => given,
    };
    let cachesize = match kms.get("cachesize") {
        None | Some(Value::Null) => None,
        Some(size) => Some(size.as_i64().ok_or_else(|| malformed("cachesize", "a number"))?),
    };
    let timeout = match text(kms, "timeout")? {
        none if none.is_empty() => TIMEOUT,
        given => parse_duration(&given).map_err(ConfigError::Malformed)?,
    };
    Ok(Kms { api_version, name: text(kms, "name")?, endpoint: text(kms, "endpoint")?, timeout, cachesize })
}
