//! The field schemas of the built-in kinds.

mod text;

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use concord_schema::Schema;

use crate::Release;

/// What the build script wrote.
static TEXT: &str = include_str!(concat!(env!("OUT_DIR"), "/schemas.txt"));

type Key = (&'static str, &'static str, &'static str);

/// The schemas of a release. They are read when the first of them is asked for, which takes two or three milliseconds.
fn all(release: Release) -> &'static HashMap<Key, Arc<Schema>> {
    type Schemas = HashMap<Key, Arc<Schema>>;
    static SCHEMAS: [OnceLock<Schemas>; Release::COUNT] = [const { OnceLock::new() }; Release::COUNT];
    SCHEMAS[release.index()]
        .get_or_init(|| text::read(TEXT, release).expect("the build script writes what is read here"))
}

/// Groups whose objects upstream stores as JSON, or never.
const KEEP_EMPTY_LISTS: [&str; 4] =
    ["apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io"];

/// The fields of a kind: of every built-in resource, and of what else a request may have as its body, such as
/// `DeleteOptions`, `Scale`, `Eviction` or `TokenRequest`.
///
/// They are those of the newest release: see [`schema_in`].
pub fn schema(group: &str, version: &str, kind: &str) -> Option<Arc<Schema>> {
    schema_in(Release::LATEST, group, version, kind)
}

/// The fields that a kind has in a release. Which fields came later than others, or went, stands in
/// `facts/since.txt` and `facts/until.txt`.
pub fn schema_in(release: Release, group: &str, version: &str, kind: &str) -> Option<Arc<Schema>> {
    all(release).get(&(group, version, kind)).cloned()
}

/// The kinds with a schema, in no order.
pub fn schemas() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    all(Release::LATEST).keys().copied()
}
