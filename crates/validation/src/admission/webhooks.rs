//! Webhooks that are asked about requests.

use concord_cel::admission::{Optional, environment};
use concord_meta::names;

use super::{match_conditions, not_static, rule_with_operations};
use crate::{
    labels::{Values, selector},
    meta,
    node::{Node, Root},
    rules::{range, same},
};

const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const NO_SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];
const FORM: &str = "; desired format: https://host[/path]";

/// What an update may keep.
#[derive(Clone, Copy)]
struct Leniency {
    side_effects: bool,
    review_versions: bool,
    names: bool,
    values: Values,
    match_conditions: bool,
}

const STRICT: Leniency = Leniency {
    side_effects: false,
    review_versions: false,
    names: false,
    values: Values::Labels,
    match_conditions: false,
};

pub(crate) fn validating_webhooks(root: Root<'_>) {
    hooks(root, false, STRICT);
    not_static(root);
}

pub(crate) fn mutating_webhooks(root: Root<'_>) {
    hooks(root, true, STRICT);
    not_static(root);
}

pub(crate) fn validating_webhooks_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::whole_any_finalizers(new);
    hooks(new, false, leniency(new, old));
}

pub(crate) fn mutating_webhooks_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::whole_any_finalizers(new);
    hooks(new, true, leniency(new, old));
}

fn leniency<'v>(new: Root<'v>, old: Root<'v>) -> Leniency {
    let (now, before) = (new.get("webhooks"), old.get("webhooks"));
    let known = |hook: Node<'_>| {
        let versions = hook.get("admissionReviewVersions");
        versions.is_empty() || versions.items().any(|version| REVIEW_VERSIONS.contains(&version.text()))
    };
    let mut all: Vec<&str> = before.items().map(|hook| hook.str("name")).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    let broken = |hook: Node<'_>| {
        ["namespaceSelector", "objectSelector"]
            .into_iter()
            .any(|name| hook.get(name).breaks(|node| selector(node, Values::Labels)))
    };
    let same_conditions = now.len() == before.len()
        && now
            .items()
            .zip(before.items())
            .all(|(now, before)| same(now.raw("matchConditions"), before.raw("matchConditions")));
    Leniency {
        side_effects: !before.items().all(|hook| NO_SIDE_EFFECTS.contains(&hook.str("sideEffects"))),
        review_versions: !before.items().all(known),
        names: all.len() != count,
        values: if before.items().any(broken) { Values::Any } else { Values::Labels },
        match_conditions: same_conditions,
    }
}

fn hooks(root: Root<'_>, mutating: bool, leniency: Leniency) {
    let mut seen: Vec<&str> = Vec::new();
    for hook in root.get("webhooks").items() {
        self::hook(hook, mutating, leniency);
        review_versions(hook.get("admissionReviewVersions"), leniency);
        let name = hook.str("name");
        if leniency.names || name.is_empty() {
            continue;
        }
        match seen.contains(&name) {
            true => hook.child("name").duplicate(name),
            false => seen.push(name),
        }
    }
}

fn fully_qualified_name(node: Node<'_>) {
    let name = node.text();
    let problems = names::dns1123_subdomain(name);
    if name.is_empty() {
        node.required("");
    } else if !problems.is_empty() {
        node.invalid(name, problems.join(","));
    } else if name.split('.').count() < 3 {
        node.invalid(name, "should be a domain with at least three segments separated by dots");
    }
}

fn hook(hook: Node<'_>, mutating: bool, leniency: Leniency) {
    fully_qualified_name(hook.get("name"));
    hook.get("rules").items().for_each(rule_with_operations);
    hook.get("failurePolicy").optional_one_of(&["Fail", "Ignore"]);
    hook.get("matchPolicy").optional_one_of(&["Equivalent", "Exact"]);
    let allowed: &[&str] = if leniency.side_effects { &SIDE_EFFECTS } else { &NO_SIDE_EFFECTS };
    let effects = hook.get("sideEffects");
    match effects.is_set() {
        true => effects.one_of(allowed),
        false => effects.required(format!("must specify one of {}", allowed.join(", "))),
    }
    let timeout = hook.get("timeoutSeconds");
    if let Some(seconds) = timeout.int().filter(|seconds| !(1..=30).contains(seconds)) {
        timeout.invalid(seconds, "the timeout value must be between 1 and 30 seconds");
    }
    selector(hook.get("namespaceSelector"), leniency.values);
    selector(hook.get("objectSelector"), leniency.values);
    if mutating {
        hook.get("reinvocationPolicy").optional_one_of(&["IfNeeded", "Never"]);
    }
    client_config(hook.get("clientConfig"));
    let conditions = hook.get("matchConditions");
    if !leniency.match_conditions && conditions.is_set() {
        match_conditions(conditions, &environment(Optional { params: false, authorizer: true }));
    }
}

fn review_versions(versions: Node<'_>, leniency: Leniency) {
    let all = REVIEW_VERSIONS.join(", ");
    if versions.is_empty() {
        return versions.required(format!("must specify one of {all}"));
    }
    let mut seen: Vec<&str> = Vec::new();
    for version in versions.items() {
        if seen.contains(&version.text()) {
            version.invalid(version.text(), "duplicate version");
            continue;
        }
        seen.push(version.text());
        version.check(names::dns1035_label);
    }
    if !leniency.review_versions && !seen.iter().any(|version| REVIEW_VERSIONS.contains(version)) {
        versions.wrong(format!("must include at least one of {all}"));
    }
}

fn client_config(config: Node<'_>) {
    let (url, service) = (config.get("url"), config.get("service"));
    match (url.is_set(), service.is_set()) {
        (true, false) => webhook_url(url),
        (false, true) => webhook_service(service),
        _ => config.required("exactly one of url or service is required"),
    }
}

/// The parts of an address, as far as they are forbidden or required.
fn webhook_url(node: Node<'_>) {
    let text = node.text();
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (text, query) = text.split_once('?').unwrap_or((text, ""));
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    };
    let (scheme, rest) = text.split_once(':').filter(|(scheme, _)| is_scheme(scheme)).unwrap_or(("", text));
    let authority = rest.strip_prefix("//").map_or("", |rest| rest.split('/').next().unwrap_or_default());
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    if scheme != "https" {
        node.invalid(scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if host.is_empty() {
        node.invalid(host, format!("host must be specified{FORM}"));
    }
    if let Some(user) = user {
        node.invalid(user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        node.invalid(fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        node.invalid(query, "query parameters are not permitted in the URL");
    }
}

fn webhook_service(service: Node<'_>) {
    // Upstream hands over namespace and name in the wrong order, and so names the other one.
    for (missing, called) in [("namespace", "name"), ("name", "namespace")] {
        if service.str(missing).is_empty() {
            service.child(called).required("");
        }
    }
    let port = service.get("port");
    let number = port.int().unwrap_or_default();
    if !(1..=65535).contains(&number) {
        port.invalid(number, format!("port is not valid: {}", range(1, 65535)));
    }
    let path = service.get("path");
    let text = path.text();
    match text {
        "" | "/" => return,
        "//" => return path.invalid(text, "segment[0] may not be empty"),
        _ => {}
    }
    if !text.starts_with('/') {
        path.invalid(text, "must start with a '/'");
    }
    // The first byte goes, whatever it is.
    let rest = text.get(1..).unwrap_or_default();
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    for (index, segment) in rest.split('/').enumerate() {
        if segment.is_empty() {
            path.invalid(text, format!("segment[{index}] may not be empty"));
            continue;
        }
        for problem in names::dns1123_subdomain(segment) {
            path.invalid(text, format!("segment[{index}]: {problem}"));
        }
    }
}
