//! The field schemas of the built-in kinds.

mod text;

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use concord_schema::Schema;

/// What the build script wrote.
static TEXT: &str = include_str!(concat!(env!("OUT_DIR"), "/schemas.txt"));

type Key = (&'static str, &'static str, &'static str);

static SCHEMAS: LazyLock<HashMap<Key, Arc<Schema>>> =
    LazyLock::new(|| text::read(TEXT).expect("the build script writes what is read here"));

/// Groups whose objects upstream stores as JSON, or never.
const KEEP_EMPTY_LISTS: [&str; 4] =
    ["apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io"];

/// The fields of a kind: of every built-in resource, and of what else a request may have as its body, such as
/// `DeleteOptions`, `Scale`, `Eviction` or `TokenRequest`.
///
/// All schemas are read when the first is asked for, which takes two or three milliseconds.
pub fn schema(group: &str, version: &str, kind: &str) -> Option<Arc<Schema>> {
    SCHEMAS.get(&(group, version, kind)).cloned()
}

/// The kinds with a schema, in no order.
pub fn schemas() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    SCHEMAS.keys().copied()
}
