//! ConfigMaps and Secrets.

use concord_meta::names;
use serde_json::Value;

use crate::{
    json::base64,
    key_pair, meta,
    node::{Node, Root},
    rules::same,
};

/// What a ConfigMap or Secret may hold: values, not keys.
const MAX_BYTES: usize = 1024 * 1024;
const FIXED: &str = "field is immutable when `immutable` is set";

/// The number of bytes that base64 stands for.
fn decoded_bytes(text: &str) -> usize {
    let padding = text.bytes().rev().take_while(|b| *b == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn keys(data: Node<'_>) {
    for (key, node) in data.entries() {
        node.check_text(key, names::config_map_key);
    }
}

pub(crate) fn config_map(root: Root<'_>) {
    let (data, binary) = (root.get("data"), root.get("binaryData"));
    let mut bytes = 0;
    for (key, value) in data.object().into_iter().flatten() {
        let problems = names::config_map_key(key);
        if !problems.is_empty() || binary.has(key) {
            let node = data.key(key);
            problems.into_iter().for_each(|problem| node.invalid(key, problem));
            if binary.has(key) {
                node.invalid(key, "duplicate of key present in binaryData");
            }
        }
        bytes += text(value).len();
    }
    keys(binary);
    bytes +=
        binary.object().into_iter().flatten().map(|(_, value)| decoded_bytes(text(value))).sum::<usize>();
    if bytes > MAX_BYTES {
        data.nowhere().too_long(MAX_BYTES);
    }
}

/// Once immutable, always immutable, and so is the data.
fn immutable<'v>(new: Root<'v>, old: Root<'v>, data: &[&'static str]) {
    let is_set = |root: Root<'v>| root.object().get("immutable") == Some(&Value::Bool(true));
    if !is_set(old) {
        return;
    }
    if !is_set(new) {
        new.child("immutable").forbidden(FIXED);
    }
    for name in data {
        if !same(new.get(name).value(), old.get(name).value()) {
            new.child(name).forbidden(FIXED);
        }
    }
}

pub(crate) fn config_map_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    immutable(new, old, &["data", "binaryData"]);
    meta::whole(new);
    config_map(new);
}

pub(crate) fn secret(root: Root<'_>) {
    let data = root.get("data");
    let mut bytes = 0;
    for (key, value) in data.object().into_iter().flatten() {
        let problems = names::config_map_key(key);
        problems.into_iter().for_each(|problem| data.key(key).invalid(key, problem));
        bytes += decoded_bytes(text(value));
    }
    if bytes > MAX_BYTES {
        data.too_long(MAX_BYTES);
    }
    secret_type(root, data);
}

fn secret_type<'v>(root: Root<'v>, data: Node<'v>) {
    const ACCOUNT: &str = "kubernetes.io/service-account.name";
    let need = |keys: &[&'static str]| {
        keys.iter().filter(|key| !data.has(key)).for_each(|key| data.key(key).required(""));
    };
    match root.object().get("type").map_or("", text) {
        "kubernetes.io/service-account-token" if root.annotation(ACCOUNT).unwrap_or_default().is_empty() => {
            root.child("metadata").child("annotations").key(ACCOUNT).required("");
        }
        "kubernetes.io/dockercfg" => docker_config(data, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => docker_config(data, ".dockerconfigjson"),
        "kubernetes.io/basic-auth" if !data.has("username") && !data.has("password") => {
            need(&["username", "password"]);
        }
        "kubernetes.io/ssh-auth" if data.str("ssh-privatekey").is_empty() => {
            data.key("ssh-privatekey").required("");
        }
        "kubernetes.io/tls" => need(&["tls.crt", "tls.key"]),
        _ => {}
    }
}

fn docker_config<'v>(data: Node<'v>, key: &'static str) {
    match data.raw(key) {
        None => data.key(key).required(""),
        Some(encoded) => {
            if let Some(problem) = crate::json::object_problem(&crate::json::base64(text(encoded))) {
                data.key(key).invalid("<secret contents redacted>", problem);
            }
        }
    }
}

/// A certificate and a key that do not belong together are stored all the same.
pub(crate) fn secret_warnings<'v>(new: Root<'v>, _: Option<Root<'v>>) {
    if new.object().get("type").map_or("", text) != "kubernetes.io/tls" {
        return;
    }
    let data = new.get("data");
    let [certificate, key] = ["tls.crt", "tls.key"].map(|name| base64(data.str(name)));
    let [certificate, key] = [&certificate, &key].map(|bytes| String::from_utf8_lossy(bytes));
    if let Some(problem) = key_pair::problem(&certificate, &key) {
        new.warn(problem);
    }
}

pub(crate) fn secret_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    let (kind, before) = (new.get("type"), old.get("type"));
    if kind.text() != before.text() {
        kind.invalid(concord_meta::field::BadValue::named(kind.text()), crate::rules::IMMUTABLE);
    }
    immutable(new, old, &["data"]);
    meta::whole(new);
    secret(new);
}
