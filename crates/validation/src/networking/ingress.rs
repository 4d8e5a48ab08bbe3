//! Ingresses and their classes.

use concord_meta::{field::BadValue, names};

use crate::{
    gates::Gate,
    ip::{legacy_ip, parse_sloppy},
    meta,
    node::{Node, Root},
    rules::{IMMUTABLE, domain_prefixed_path, max_characters, pattern, port_name},
};

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const MAX_CONTROLLER: usize = 250;
const NOT_AN_ADDRESS: &str = "must be a DNS name, not an IP address";

/// What an update may keep.
#[derive(Clone, Copy, Default)]
struct Leniency {
    secret_names: bool,
    wildcard_rules: bool,
    /// Services may have names that only the newer rule takes.
    relaxed_names: bool,
}

pub(crate) fn ingress(root: Root<'_>) {
    let spec = root.get("spec");
    ingress_spec(spec, Leniency::default());
    let class = spec.get("ingressClassName");
    if let Some(annotation) = root.annotation(CLASS_ANNOTATION)
        && class.is_set()
        && class.text() != annotation
    {
        let at = root.child("annotations").child(CLASS_ANNOTATION);
        at.invalid(annotation, "must match `ingressClassName` when both are specified");
    }
}

fn ingress_spec(spec: Node<'_>, leniency: Leniency) {
    let relaxed = leniency.relaxed_names || spec.gate(Gate::RelaxedServiceNameValidation);
    let leniency = Leniency { relaxed_names: relaxed, ..leniency };
    let (rules, backend) = (spec.get("rules"), spec.get("defaultBackend"));
    if rules.is_empty() && !backend.is_set() {
        spec.invalid(rules.shown(), "either `defaultBackend` or `rules` must be specified");
    }
    if backend.is_set() {
        self::backend(backend, relaxed);
    }
    rules.items().for_each(|one| rule(one, leniency));
    for tls in spec.get("tls").items() {
        tls.get("hosts").items().for_each(host_name);
        if !leniency.secret_names {
            tls.get("secretName").optional_and(names::dns1123_subdomain);
        }
    }
    let class = spec.get("ingressClassName");
    if class.is_set() {
        class.check(names::dns1123_subdomain);
    }
}

fn host_name(host: Node<'_>) {
    match host.text().contains('*') {
        true => host.check(wildcard),
        false => host.check(names::dns1123_subdomain),
    }
}

/// A subdomain after `*.`
fn wildcard(text: &str) -> Vec<String> {
    const REGEX: &str = r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
    const TEXT: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which \
        must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
    let mut problems = Vec::new();
    if text.len() > names::MAX_SUBDOMAIN_BYTES {
        problems.push(max_characters(names::MAX_SUBDOMAIN_BYTES));
    }
    let rest = text.strip_prefix("*.");
    // Only the form counts here; the length has been looked at.
    let fits = rest.is_some_and(|rest| {
        names::dns1123_subdomain(rest).iter().all(|problem| problem.starts_with("must be no more than"))
    });
    if !fits {
        problems.push(pattern(TEXT, REGEX, &["*.example.com"]));
    }
    problems
}

fn rule(rule: Node<'_>, leniency: Leniency) {
    let host = rule.get("host");
    if !host.text().is_empty() {
        if parse_sloppy(host.text()).is_some() {
            host.invalid(host.text(), NOT_AN_ADDRESS);
        }
        host_name(host);
    }
    if !(host.text().contains('*') && leniency.wildcard_rules) {
        rule_value(rule, leniency.relaxed_names);
    }
}

fn rule_value(rule: Node<'_>, relaxed: bool) {
    if !rule.has("http") {
        return;
    }
    let paths = rule.get2("http", "paths");
    if paths.is_empty() {
        paths.required("");
    }
    paths.items().for_each(|path| http_path(path, relaxed));
}

fn http_path(node: Node<'_>, relaxed: bool) {
    let (kind, path) = (node.get("pathType"), node.get("path"));
    let text = path.text();
    match kind.text() {
        _ if !kind.is_set() => return kind.required("pathType must be specified"),
        "Exact" | "Prefix" => {
            if !text.starts_with('/') {
                path.invalid(text, "must be an absolute path");
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"].into_iter().filter(|part| text.contains(part)) {
                path.invalid(text, format!("must not contain '{part}'"));
            }
            for end in ["/..", "/."].into_iter().filter(|end| text.ends_with(end)) {
                path.invalid(text, format!("cannot end with '{end}'"));
            }
        }
        "ImplementationSpecific" => {
            if !text.is_empty() && !text.starts_with('/') {
                path.invalid(text, "must be an absolute path");
            }
        }
        _ => kind.unsupported(&["Exact", "ImplementationSpecific", "Prefix"]),
    }
    backend(node.get("backend"), relaxed);
}

fn backend(node: Node<'_>, relaxed: bool) {
    let (resource, service) = (node.get("resource"), node.get("service"));
    match (resource.is_set(), service.is_set()) {
        (true, true) => node.invalid("", "cannot set both resource and service backends"),
        (true, false) => {
            if resource.has("apiGroup") {
                resource.get("apiGroup").check(names::dns1123_subdomain);
            }
            resource.get("kind").required_and(names::path_segment);
            resource.get("name").required_and(names::path_segment);
        }
        (false, true) => {
            service.get("name").required_and(if relaxed {
                names::dns1123_label
            } else {
                names::dns1035_label
            });
            let port = service.get("port");
            match (port.str("name").is_empty(), port.num("number") == 0) {
                (false, false) => node.invalid("", "cannot set both port name & port number"),
                (false, true) => port.get("name").check(port_name),
                (true, false) => port.get("number").port(),
                (true, true) => node.required("port name or number is required"),
            }
        }
        (false, false) => node.invalid("", "resource or service backend is required"),
    }
}

pub(crate) fn ingress_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    if subresource == "status" {
        return status(new.get("status"), old.get("status"));
    }
    let before = old.get("spec");
    let bad_secret =
        |tls: Node<'_>| tls.get("secretName").breaks(|name| name.optional_and(names::dns1123_subdomain));
    let bad_rule =
        |rule: Node<'_>| rule.str("host").contains('*') && rule.breaks(|rule| rule_value(rule, false));
    let leniency = Leniency {
        secret_names: before.get("tls").items().any(bad_secret),
        wildcard_rules: before.get("rules").items().any(bad_rule),
        relaxed_names: has_relaxed_name(before),
    };
    meta::whole(new);
    ingress_spec(new.get("spec"), leniency);
}

/// Whether a backend is a Service whose name only the newer rule takes.
fn has_relaxed_name(spec: Node<'_>) -> bool {
    let paths = spec.get("rules").items().flat_map(|rule| rule.get2("http", "paths").items());
    let backends = paths.map(|path| path.get("backend")).chain([spec.get("defaultBackend")]);
    backends.map(|backend| backend.get("service")).filter(|service| service.is_set()).any(|service| {
        let name = service.str("name");
        names::dns1123_label(name).is_empty() && !names::dns1035_label(name).is_empty()
    })
}

fn status(status: Node<'_>, before: Node<'_>) {
    let known: Vec<&str> = before
        .get2("loadBalancer", "ingress")
        .items()
        .map(|item| item.str("ip"))
        .filter(|address| !address.is_empty())
        .collect();
    for item in status.get2("loadBalancer", "ingress").items() {
        let (address, host) = (item.get("ip"), item.get("hostname"));
        if !address.text().is_empty() {
            legacy_ip(address, address.text(), &known);
        }
        if !host.text().is_empty() {
            host.check(names::dns1123_subdomain);
            if parse_sloppy(host.text()).is_some() {
                host.invalid(host.text(), NOT_AN_ADDRESS);
            }
        }
    }
}

/// What to tell who writes an Ingress.
pub(crate) fn ingress_warnings<'v>(new: Root<'v>, old: Option<Root<'v>>) {
    let named = new.get("spec").has("ingressClassName");
    if old.is_none() && !named && new.annotation(CLASS_ANNOTATION).is_some() {
        new.warn(format!(
            "annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"
        ));
    }
}

pub(crate) fn ingress_class(root: Root<'_>) {
    let spec = root.get("spec");
    let controller = spec.get("controller");
    if controller.text().len() > MAX_CONTROLLER {
        controller.too_long(MAX_CONTROLLER);
    }
    domain_prefixed_path(controller, controller.text());
    parameters(spec.get("parameters"));
}

fn parameters(node: Node<'_>) {
    if !node.is_set() {
        return;
    }
    if node.has("apiGroup") {
        node.get("apiGroup").check(names::dns1123_subdomain);
    }
    node.get("kind").required_and(names::path_segment);
    node.get("name").required_and(names::path_segment);
    let (scope, namespace) = (node.get("scope"), node.get("namespace"));
    if !scope.is_set() {
        return scope.required("");
    }
    match (scope.text(), namespace.is_set()) {
        ("Namespace", true) => namespace.check(names::dns1123_label),
        ("Namespace", false) => namespace.required("`parameters.scope` is set to 'Namespace'"),
        ("Cluster", true) => namespace.forbidden("`parameters.scope` is set to 'Cluster'"),
        ("Cluster", false) => {}
        (text, _) => scope.not_supported(BadValue::from(text), &["Cluster", "Namespace"]),
    }
}

pub(crate) fn ingress_class_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::update(new, old);
    let controller = new.get("spec").get("controller");
    if controller.text() != old.get("spec").str("controller") {
        controller.invalid(controller.text(), IMMUTABLE);
    }
    meta::whole(new);
    ingress_class(new);
}
