//! Documents of version 2, of servers that publish no other.
//!
//! Upstream converts them mechanically, and loses or breaks a good part. Here whatever version 3 can say is said, and
//! only that: parameters and responses that a document shares are put where they are used, since what version 2 calls a
//! parameter may be a body in version 3.

mod operation;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use concord_meta::GroupVersion;
use serde_json::{Map, Value, json};

use crate::{mend, names};
use operation::Shared;

/// What marks a document that was converted.
const CONVERTED: &str = "x-converted-from";

/// The document of version 3 about one version of a group, from a document of version 2 about whatever its server has.
/// Only what that version needs is kept.
pub(crate) fn convert(document: &Map<String, Value>, version: &GroupVersion) -> Value {
    let shared = Shared::of(document);
    let mut paths = Map::new();
    for (path, item) in own_paths(document, version) {
        paths.insert(path.clone(), shared.path_item(item));
    }
    let mut components = Map::new();
    let schemas = reachable(&Value::Object(paths.clone()), document);
    components.insert("schemas".to_owned(), schemas.into());
    let schemes = document.get("securityDefinitions").and_then(Value::as_object);
    if let Some(schemes) = schemes.filter(|schemes| !schemes.is_empty()) {
        let schemes: Map<_, _> =
            schemes.iter().map(|(name, scheme)| (name.clone(), security_scheme(scheme))).collect();
        components.insert("securitySchemes".to_owned(), schemes.into());
    }
    let mut converted = json!({
        "openapi": "3.0.0", "info": info(document), "paths": paths, "components": components,
    });
    for name in ["security", "tags", "externalDocs"] {
        if let Some(value) = document.get(name) {
            converted[name] = value.clone();
        }
    }
    if let Value::Object(converted) = &mut converted {
        mend::mend(converted);
    }
    converted
}

/// The paths of a document that belong to a version of a group.
pub(crate) fn own_paths<'a>(
    document: &'a Map<String, Value>,
    version: &GroupVersion,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let root = names::root(version);
    let is_own = move |path: &str| {
        path.strip_prefix(&root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let paths = document.get("paths").and_then(Value::as_object).into_iter().flatten();
    paths.filter(move |(path, _)| is_own(path))
}

fn info(document: &Map<String, Value>) -> Value {
    let info = document.get("info").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut info = mend::complete(info);
    info.insert(CONVERTED.to_owned(), "2.0".into());
    info.into()
}

/// The schemas that something refers to, and those that they refer to.
fn reachable(from: &Value, document: &Map<String, Value>) -> Map<String, Value> {
    let nothing = Map::new();
    let definitions = document.get("definitions").and_then(Value::as_object).unwrap_or(&nothing);
    let (mut schemas, mut wanted) = (Map::new(), BTreeSet::new());
    references(from, schema::SCHEMAS, &mut wanted);
    while let Some(name) = wanted.pop_first() {
        if schemas.contains_key(&name) {
            continue;
        }
        // What a document does not define is anything.
        let definition = definitions.get(&name).map_or_else(|| json!({}), |it| schema::definition(&name, it));
        references(&definition, schema::SCHEMAS, &mut wanted);
        schemas.insert(name, definition);
    }
    schemas
}

/// Finds the names that are referred to below a prefix.
pub(crate) fn references(value: &Value, prefix: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(name) = members.get("$ref").and_then(|to| to.as_str()?.strip_prefix(prefix)) {
                found.insert(unescape(name));
            }
            members.values().for_each(|member| references(member, prefix, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, prefix, found)),
        _ => {}
    }
}

/// A name as it stands in a JSON pointer.
pub(crate) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A name in a JSON pointer.
pub(crate) fn unescape(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

fn security_scheme(scheme: &Value) -> Value {
    let mut converted = scheme.as_object().cloned().unwrap_or_default();
    match scheme.get("type").and_then(Value::as_str) {
        Some("basic") => {
            converted.insert("type".to_owned(), "http".into());
            converted.insert("scheme".to_owned(), "basic".into());
        }
        Some("oauth2") => {
            let flow = match converted.remove("flow").as_ref().and_then(Value::as_str) {
                Some("application") => "clientCredentials",
                Some("accessCode") => "authorizationCode",
                Some("password") => "password",
                _ => "implicit",
            };
            let mut details = Map::new();
            for name in ["authorizationUrl", "tokenUrl", "scopes"] {
                details.extend(converted.remove(name).map(|value| (name.to_owned(), value)));
            }
            details.entry("scopes").or_insert_with(|| json!({}));
            converted.insert("flows".to_owned(), json!({ flow: details }));
        }
        _ => {}
    }
    converted.into()
}
