//! Whether an image has to be pulled again: only what is called `latest`, by name or for want of another tag.

use serde_json::Value;

use super::text;
use crate::Object;

/// Where images come from that do not say it.
const DEFAULT_DOMAIN: &str = "docker.io";
/// An old name of it.
const LEGACY_DEFAULT_DOMAIN: &str = "index.docker.io";
/// The longest path of an image within its registry.
const MAX_PATH: usize = 255;

/// Of a container.
pub(super) fn image_pull_policy(container: &mut Object) {
    set_policy(container, "image", "imagePullPolicy");
}

/// Of a volume that is an image.
pub(super) fn image_volume_pull_policy(volume: &mut Object) {
    set_policy(volume, "reference", "pullPolicy");
}

fn set_policy(object: &mut Object, image: &str, policy: &str) {
    if !text(object, policy).is_empty() {
        return;
    }
    let value = if is_latest(text(object, image)) { "Always" } else { "IfNotPresent" };
    object.insert(policy.to_owned(), Value::from(value));
}

/// Whether a reference to an image says `latest`, or neither tag nor digest. One that is malformed says nothing.
fn is_latest(image: &str) -> bool {
    if image.len() == 64 && is_hex(image) {
        return false;
    }
    let (domain, remainder) = split_domain(image);
    let (named, digest) = match remainder.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (remainder, None),
    };
    let (path, tag) = match named.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (named, None),
    };
    let is_latest = match tag {
        Some(tag) => tag == "latest",
        None => digest.is_none(),
    };
    is_latest && is_domain(domain) && is_path(domain, path) && digest.is_none_or(is_digest)
}

/// The registry, if the first part of a name looks like one, and the rest.
fn split_domain(image: &str) -> (&str, &str) {
    match image.split_once('/') {
        Some((LEGACY_DEFAULT_DOMAIN, rest)) => (DEFAULT_DOMAIN, rest),
        Some((first, rest)) if first == "localhost" || first.contains(['.', ':']) || has_upper(first) => {
            (first, rest)
        }
        _ => (DEFAULT_DOMAIN, image),
    }
}

fn has_upper(text: &str) -> bool {
    text.chars().any(char::is_uppercase)
}

/// A host with or without a port. What is none may still be the beginning of a path.
fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (domain, None),
    };
    let is_port = port.is_none_or(|port| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()));
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match address {
        Some(address) => !address.is_empty() && address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':'),
        None => host.split('.').all(is_host_label),
    };
    (is_port && is_host) || is_component(domain)
}

fn is_host_label(label: &str) -> bool {
    let ends = |end: Option<u8>| end.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let mut bytes = label.bytes();
    ends(label.bytes().next())
        && ends(label.bytes().last())
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn is_path(domain: &str, path: &str) -> bool {
    // Images of the default registry without a path of their own are in its library.
    let implied = if domain == DEFAULT_DOMAIN && !path.contains('/') { "library/".len() } else { 0 };
    path.len() + implied <= MAX_PATH && path.split('/').all(is_component)
}

/// Lower-case letters and digits, with separators between them: one dot, one or two underscores, any number of dashes.
fn is_component(component: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut separators = component.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    let ends = |end: Option<u8>| end.is_some_and(word);
    ends(component.bytes().next())
        && ends(component.bytes().last())
        && separators.all(|text| ["", ".", "_", "__"].contains(&text) || text.bytes().all(|b| b == b'-'))
}

fn is_digest(digest: &str) -> bool {
    let length = |algorithm| match algorithm {
        "sha256" => Some(64),
        "sha384" => Some(96),
        "sha512" => Some(128),
        _ => None,
    };
    let known = digest.split_once(':').and_then(|(algorithm, hex)| Some((length(algorithm)?, hex)));
    known.is_some_and(|(length, hex)| hex.len() == length && is_hex(hex))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests;
