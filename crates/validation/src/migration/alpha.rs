//! StorageVersionMigration as releases before 1.35 had it.

use concord_meta::{field::BadValue, go};
use serde_json::Value;

use super::{IMMUTABLE, ends_once, holds, stays};
use crate::{
    conditions::conditions_of,
    meta,
    node::{Node, Root},
};

/// In the order in which they are checked.
const PARTS: [&str; 3] = ["group", "version", "resource"];

pub(super) fn migration(root: Root<'_>) {
    let resource = root.get("spec").get("resource");
    for (name, detail) in [("resource", "resource is required"), ("version", "version is required")] {
        if resource.str(name).is_empty() {
            resource.get(name).required(detail);
        }
    }
}

pub(super) fn migration_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    if subresource == "status" {
        meta::update(new, old);
        return status_update(new.get("status"), old.get("status"));
    }
    meta::whole(new);
    migration(new);
    meta::update(new, old);
    for name in PARTS {
        let part = |root: Root<'v>| root.get("spec").get("resource").str(name);
        if part(new) != part(old) {
            // Without the way there, as upstream had it.
            new.child(name).invalid(part(new), IMMUTABLE);
        }
    }
}

fn status_update<'v>(status: Node<'v>, before: Node<'v>) {
    let (revision, was) = (status.get("resourceVersion"), before.str("resourceVersion"));
    let text = revision.text();
    if !text.is_empty() {
        match go::parse_int(text) {
            Err(error) => {
                let said = format!("failed to parse resource version {}: {error}", go::quote(text));
                revision.wrong(said);
            }
            Ok(number) if number < 0 => revision.invalid(number, "must be greater than or equal to 0"),
            Ok(_) => {}
        }
    }
    conditions_of(status.get("conditions"), "lastUpdateTime", "must be set");
    if !was.is_empty() && was != text {
        revision.invalid(text, "resourceVersion cannot be updated");
    }
    ends_once(status, shown);
    let all = status.get("conditions");
    for (kind, word) in [("Succeeded", "success"), ("Failed", "failed")] {
        if holds(status, kind) && holds(status, "Running") {
            all.invalid(
                shown(all),
                format!("Running condition cannot be true when {word} condition is true"),
            );
        }
    }
    stays(status, before, shown);
}

/// Conditions in the order of Go's fields, which had no other names.
fn shown(conditions: Node<'_>) -> BadValue {
    const FIELDS: [(&str, &str); 5] = [
        ("Type", "type"),
        ("Status", "status"),
        ("LastUpdateTime", "lastUpdateTime"),
        ("Reason", "reason"),
        ("Message", "message"),
    ];
    let member = |condition: &Value, (called, name): &(&str, &str)| {
        let missing = if *name == "lastUpdateTime" { "null" } else { "\"\"" };
        let value = condition.get(*name).map_or_else(|| missing.to_owned(), go::json);
        format!("\"{called}\":{value}")
    };
    let condition = |condition: &Value| {
        let members: Vec<String> = FIELDS.iter().map(|field| member(condition, field)).collect();
        format!("{{{}}}", members.join(","))
    };
    match conditions.list() {
        [] => BadValue::verbatim("null"),
        all => BadValue::verbatim(format!("[{}]", all.iter().map(condition).collect::<Vec<_>>().join(","))),
    }
}
