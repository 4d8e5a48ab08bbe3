//! Events. Those that come through `events.k8s.io` have more rules, which need to know that; see `docs/validation.md`.

use concord_meta::names;

use crate::{node::Root, rules::qualified_name};

const MAX_BYTES: usize = 128;
const MAX_MESSAGE: usize = 1024;

pub(crate) fn event(root: Root<'_>) {
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
        new_style(root);
    }
    root.child("namespace").check_text(namespace, names::dns1123_subdomain);
}

fn new_style(root: Root<'_>) {
    let reporter = root.get("reportingComponent");
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
