//! What a configuration must say, with upstream's texts.

use std::collections::BTreeSet;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use concord_meta::{
    GroupResource,
    field::{BadValue, Error, Path},
};
use zeroize::Zeroizing;

use crate::{
    Configuration, Key, Provider,
    config::Kms,
    rules::{ANY, parse},
};

const AES_KEYS: &[usize] = &[16, 24, 32];
const SECRETBOX_KEYS: &[usize] = &[32];

/// What is stored without being an object.
const NOT_SERVED: [&str; 3] = ["apiserveripinfo", "serviceipallocations", "servicenodeportallocations"];

pub(crate) fn validate(configuration: &Configuration) -> Vec<Error> {
    let root = Path::new("resources");
    if configuration.rules.is_empty() {
        return vec![Error::required(&root, "at least one resources is required")];
    }
    let mut errors = Vec::new();
    let mut services = BTreeSet::new();
    for (at, rule) in configuration.rules.iter().enumerate() {
        let (resources, providers) = (root.index(at).child("resources"), root.index(at).child("providers"));
        if rule.resources.is_empty() {
            errors.push(Error::required(&resources, format!("at least one {resources} is required")));
        }
        errors.extend(overlaps(&rule.resources, &resources));
        let names = rule.resources.iter().enumerate();
        errors.extend(names.filter_map(|(at, name)| bad_name(name, &resources.index(at))));
        if rule.providers.is_empty() {
            errors.push(Error::required(&providers, format!("at least one {providers} is required")));
        }
        for (at, element) in rule.providers.iter().enumerate() {
            errors.extend(element_errors(element, &providers.index(at), &mut services));
        }
    }
    errors
}

/// What masks or repeats something else of one list.
fn overlaps(names: &[String], path: &Path) -> Vec<Error> {
    let resources: Vec<GroupResource> = names.iter().map(|name| parse(name)).collect();
    let pairs = || {
        let of = |at: usize| resources.iter().enumerate().filter(move |(other, _)| *other != at);
        resources.iter().enumerate().flat_map(move |(at, one)| of(at).map(move |(_, other)| (one, other)))
    };
    let invalid = |detail: &'static str| Error::invalid(path, BadValue::strings(names), detail);
    let is_any = |one: &GroupResource| one.group == ANY && one.resource == ANY;
    let masks = |one: &GroupResource, other: &GroupResource| {
        one != other
            && (is_any(one) || (one.group == other.group && (one.resource == ANY || other.resource == ANY)))
    };
    let mut errors = Vec::new();
    if pairs().any(|(one, other)| one == other) {
        errors.push(invalid("the same resource cannot be specified multiple times"));
    }
    if pairs().any(|(one, other)| masks(one, other)) {
        errors.push(invalid(
            "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked",
        ));
    }
    errors
}

fn bad_name(name: &str, path: &Path) -> Option<Error> {
    let GroupResource { group, resource } = parse(name);
    let detail = if name.to_lowercase() != name {
        "resource name should not contain capital letters"
    } else if name == ANY {
        "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
    } else if NOT_SERVED.contains(&name) {
        "resources which do not have REST API/s cannot be encrypted"
    } else if group == "events.k8s.io" {
        "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file"
    } else if group == "extensions" {
        "'extensions' group has been removed and cannot be used for encryption"
    } else if group == ANY && resource != ANY {
        "encrypting the same resource across groups is not supported"
    } else {
        return None;
    };
    Some(Error::invalid(path, name, detail))
}

/// One element holds one provider.
fn element_errors(element: &[Provider], path: &Path, services: &mut BTreeSet<String>) -> Vec<Error> {
    // Upstream shows the element; it would show keys, too.
    let shown = || BadValue::verbatim("REDACTED");
    let mut errors = match element {
        [] => vec![Error::invalid(
            path,
            shown(),
            "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity",
        )],
        [_] => Vec::new(),
        _ => vec![Error::invalid(
            path,
            shown(),
            "more than one provider specified in a single element, should split into different list elements",
        )],
    };
    let keys = |kind: &str| path.child(kind).child("keys");
    match element.first() {
        Some(Provider::Kms(kms)) => errors.extend(kms_errors(kms, &path.child("kms"), services)),
        Some(Provider::AesGcm(given)) => errors.extend(keys_errors(given, &keys("aesgcm"), AES_KEYS)),
        Some(Provider::AesCbc(given)) => errors.extend(keys_errors(given, &keys("aescbc"), AES_KEYS)),
        Some(Provider::Secretbox(given)) => {
            errors.extend(keys_errors(given, &keys("secretbox"), SECRETBOX_KEYS));
        }
        Some(Provider::Identity) | None => {}
    }
    errors
}

fn keys_errors(keys: &[Key], path: &Path, lengths: &[usize]) -> Vec<Error> {
    if keys.is_empty() {
        return vec![Error::required(path, "at least one keys is required")];
    }
    keys.iter().enumerate().flat_map(|(at, key)| key_errors(key, &path.index(at), lengths)).collect()
}

fn key_errors(key: &Key, path: &Path, lengths: &[usize]) -> Vec<Error> {
    let mut errors = Vec::new();
    if key.name.is_empty() {
        errors.push(Error::required(&path.child("name"), "name is a mandatory field for a key"));
    }
    let path = path.child("secret");
    if key.secret.is_empty() {
        errors.push(Error::required(&path, "secret is a mandatory field for a key"));
        return errors;
    }
    match BASE64_STANDARD.decode(key.secret.as_bytes()).map(Zeroizing::new) {
        Err(_) => errors.push(Error::invalid(&path, "REDACTED", "secrets must be base64 encoded")),
        Ok(secret) if !lengths.contains(&secret.len()) => {
            let expected: Vec<_> = lengths.iter().map(ToString::to_string).collect();
            let (length, expected) = (secret.len(), expected.join(" "));
            let detail =
                format!("secret is not of the expected length, got {length}, expected one of [{expected}]");
            errors.push(Error::invalid(&path, "REDACTED", detail));
        }
        Ok(_) => {}
    }
    errors
}

fn kms_errors(kms: &Kms, path: &Path, services: &mut BTreeSet<String>) -> Vec<Error> {
    let mut errors = Vec::new();
    let is_v1 = kms.api_version == "v1";
    let name = path.child("name");
    if kms.name.is_empty() {
        errors.push(Error::required(&name, "name is a mandatory field for a provider"));
    }
    if !is_v1 && kms.name.contains(':') {
        let detail = format!("invalid KMS provider name {}, must not contain ':'", kms.name);
        errors.push(Error::invalid(&name, &kms.name, detail));
    }
    if !services.insert(kms.name.clone()) && !is_v1 {
        let detail = format!("duplicate KMS provider name {}, names must be unique", kms.name);
        errors.push(Error::invalid(&name, &kms.name, detail));
    }
    if kms.timeout <= 0 {
        let given = BadValue::named(&format!("{}s", kms.timeout as f64 / 1e9));
        errors.push(Error::invalid(&path.child("timeout"), given, "timeout should be a positive value"));
    }
    errors.extend(endpoint_error(&kms.endpoint, &path.child("endpoint")));
    if let Some(size) = kms.cachesize {
        let path = path.child("cachesize");
        if !is_v1 {
            errors.push(Error::invalid(&path, size, "cachesize is not supported in v2"));
        } else if size == 0 {
            errors.push(Error::invalid(
                &path,
                size,
                "cachesize should be a positive value, or negative to disable",
            ));
        }
    }
    if !is_v1 && kms.api_version != "v2" {
        let detail = "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported";
        errors.push(Error::invalid(&path.child("apiVersion"), &kms.api_version, detail));
    }
    errors
}

fn endpoint_error(endpoint: &str, path: &Path) -> Option<Error> {
    if endpoint.is_empty() {
        return Some(Error::invalid(path, "", "endpoint is a mandatory field for a kms"));
    }
    let scheme = endpoint.split_once(':').map_or("", |(scheme, _)| scheme);
    (scheme != "unix").then(|| {
        let detail = format!("unsupported scheme \"{scheme}\" for KMS provider, only unix is supported");
        Error::invalid(path, endpoint, detail)
    })
}
