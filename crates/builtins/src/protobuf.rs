//! The built-in kinds in protobuf.

use std::{collections::HashMap, sync::LazyLock};

use concord_protobuf::{Codec, MessagesBuilder, Numbers, Unknown};
use serde_json::{Map, Value};

use crate::{schema, schemas};

type Key = (&'static str, &'static str, &'static str);

static CODECS: LazyLock<HashMap<Key, Codec>> = LazyLock::new(|| {
    let numbers = Numbers::parse(include_str!("../facts/protobuf.txt")).expect("the table is as described");
    let mut builder = MessagesBuilder::new(&numbers);
    let mut kinds = Vec::new();
    for (group, version, kind) in schemas() {
        let Some(schema) = schema(group, version, kind) else { continue };
        let package = package(group, version, kind);
        if builder.kind(schema.place(), &package, kind).is_some() {
            kinds.push((group, version, kind));
        }
    }
    // What a client gets that asks for nothing but metadata: of every kind, the fields that all have in common.
    for version in ["v1", "v1beta1"] {
        if let Some(any) = schema("", "v1", "ConfigMap")
            && builder.kind(any.place(), "meta.v1", "PartialObjectMetadata").is_some()
        {
            kinds.push(("meta.k8s.io", version, "PartialObjectMetadata"));
        }
    }
    kinds.into_iter().zip(builder.finish()).collect()
});

/// What reads and writes objects of a kind in protobuf: of every kind that has a [`schema`].
///
/// All are put together when the first is asked for, which takes a few milliseconds.
pub fn protobuf(group: &str, version: &str, kind: &str) -> Option<Codec> {
    CODECS.get(&(group, version, kind)).cloned()
}

/// The object in an envelope of protobuf, as it would be in JSON: what a kube-apiserver stores. `None` if it is none, or of
/// no kind that there is.
pub fn read_protobuf(value: &[u8]) -> Option<Map<String, Value>> {
    let unknown = Unknown::read(value).ok()?;
    let (group, version) = unknown.api_version.split_once('/').unwrap_or(("", &unknown.api_version));
    let mut object = protobuf(group, version, &unknown.kind)?.decode(unknown.raw).ok()?;
    schema(group, version, &unknown.kind)?.normalize(&mut object).ok()?;
    object.insert("kind".to_owned(), unknown.kind.into());
    object.insert("apiVersion".to_owned(), unknown.api_version.into());
    Some(object)
}

/// The section of the table with the messages of a kind: upstream's package.
fn package(group: &str, version: &str, kind: &str) -> String {
    let group = match (group, kind) {
        ("", "Status" | "DeleteOptions") => "meta",
        ("", _) => "core",
        ("internal.apiserver.k8s.io", _) => "apiserverinternal",
        (group, _) => group.split('.').next().unwrap_or(group),
    };
    format!("{group}.{version}")
}
