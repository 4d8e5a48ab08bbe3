//! Events. Those that come through `events.k8s.io/v1` have to keep to more rules, see [`strict`].

use concord_meta::{
    field::BadValue,
    names::{self, NameRule},
};

use crate::{
    internal, meta,
    node::{Node, Root},
    rules::{IMMUTABLE, qualified_name, same},
};

const MAX_BYTES: usize = 128;
const MAX_MESSAGE: usize = 1024;

pub(crate) fn event(root: Root<'_>) {
    any(root, "reportingComponent");
}

/// What holds for events of every version, in which the reporter has one of two names.
fn any(root: Root<'_>, reporter: &'static str) {
    let namespace = root.metadata().str("namespace");
    let involved = root.get("involvedObject").get("namespace");
    let mismatch = || involved.invalid(involved.text(), "does not match event.namespace");
    if !root.get("eventTime").is_set() {
        let fits = match involved.text() {
            "" => ["", "default"].contains(&namespace),
            text => text == namespace,
        };
        if !fits {
            mismatch();
        }
    } else {
        if involved.text().is_empty() && !["default", "kube-system"].contains(&namespace) {
            mismatch();
        }
        new_style(root, reporter);
    }
    root.child("namespace").check_text(namespace, names::dns1123_subdomain);
}

fn new_style(root: Root<'_>, reporter: &'static str) {
    let reporter = root.child(reporter).holding(root.object().get("reportingComponent"));
    if reporter.text().is_empty() {
        reporter.required("");
    }
    reporter.check(qualified_name);
    for name in ["reportingInstance", "action", "reason"] {
        let node = root.get(name);
        if node.text().is_empty() {
            node.required("");
        }
        if node.text().len() > MAX_BYTES {
            node.invalid("", format!("can have at most {MAX_BYTES} characters"));
        }
    }
    let message = root.get("message");
    if message.text().len() > MAX_MESSAGE {
        message.invalid("", format!("can have at most {MAX_MESSAGE} characters"));
    }
}

pub(crate) fn event_update<'v>(_: &str, new: Root<'v>, _: Root<'v>) {
    event(new);
}

/// What `events.k8s.io/v1` demands of events besides: it has no fields of the old kind, and only a series goes on. Unlike
/// other kinds' rules those of a new event are about its metadata as well, in upstream's order.
pub(crate) fn strict<'v>(new: Root<'v>, old: Option<Root<'v>>) {
    any(new, "reportingController");
    let Some(old) = old else { return strict_create(new) };
    meta::update(new, old);
    if !same(new.get("series").value(), old.get("series").value()) {
        series(new);
    }
    for (name, shown) in IMMUTABLES {
        // The old name of one field is another.
        let stored = if name == "reportingController" { "reportingComponent" } else { name };
        let of = |root: Root<'v>| root.child(name).holding(root.object().get(stored));
        let (node, before) = (of(new), of(old));
        if !same(node.value(), before.value()) {
            node.invalid(shown(node), IMMUTABLE);
        }
    }
}

type Show = fn(Node<'_>) -> BadValue;

/// What does not change, in upstream's order, and how errors show it.
const IMMUTABLES: [(&str, Show); 14] = [
    ("involvedObject", |node| internal::shown("ObjectReference", node.value())),
    ("reason", |node| BadValue::from(node.text())),
    ("message", |node| BadValue::from(node.text())),
    ("source", |node| internal::shown("EventSource", node.value())),
    ("firstTimestamp", |node| node.shown()),
    ("lastTimestamp", |node| node.shown()),
    ("count", |node| BadValue::from(node.int().unwrap_or_default())),
    ("reason", |node| BadValue::from(node.text())),
    ("type", |node| BadValue::from(node.text())),
    ("eventTime", |node| node.shown()),
    ("action", |node| BadValue::from(node.text())),
    ("related", |node| match node.is_set() {
        true => internal::shown("ObjectReference", node.value()),
        false => node.shown(),
    }),
    ("reportingController", |node| BadValue::from(node.text())),
    ("reportingInstance", |node| BadValue::from(node.text())),
];

fn strict_create(root: Root<'_>) {
    const UNSET: &str = "needs to be unset";
    meta::named(root, NameRule::Dns1123Subdomain);
    meta::finalizers(root);
    series(root);
    let time = root.get("eventTime");
    if !time.is_set() {
        time.required("");
    }
    let kind = root.get("type");
    if !["Normal", "Warning"].contains(&kind.text()) {
        kind.invalid("", format!("has invalid value: {}", kind.text()));
    }
    for name in ["firstTimestamp", "lastTimestamp"] {
        let node = root.get(name);
        if node.is_set() {
            node.invalid("", UNSET);
        }
    }
    let (count, source) = (root.get("count"), root.get("source"));
    if count.int().unwrap_or_default() != 0 {
        count.invalid("", UNSET);
    }
    if ["component", "host"].iter().any(|name| !source.str(name).is_empty()) {
        source.invalid("", UNSET);
    }
}

fn series(root: Root<'_>) {
    let series = root.get("series");
    if !series.is_set() {
        return;
    }
    if series.num("count") < 2 {
        series.get("count").invalid("", "should be at least 2");
    }
    if !series.has("lastObservedTime") {
        series.get("lastObservedTime").required("");
    }
}
