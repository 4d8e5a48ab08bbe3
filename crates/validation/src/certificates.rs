//! Requests for certificates, and bundles of those that are trusted.

mod pod_request;
mod pod_status;

use concord_meta::{
    field::BadValue,
    go,
    names::{self, NameRule},
};
use serde_json::Value;

pub(crate) use self::pod_request::{SHORTEST, longest, pod_request, pod_request_update, user_annotations};
use crate::{
    internal, meta,
    node::{Node, Root},
    pem,
    rules::IMMUTABLE,
};

const MAX_SIGNER_BYTES: usize = 253 + 253 + 63 + 1 + 1;

/// A signer's name: a domain, a slash and a path of labels.
pub(crate) fn signer_name(node: Node<'_>, name: &str) {
    if name.is_empty() {
        return node.required("");
    }
    let parts: Vec<&str> = name.split('/').collect();
    let [domain, path] = parts.as_slice() else {
        return node.invalid(
            name,
            "must be a fully qualified domain and path of the form 'example.com/signer-name'",
        );
    };
    if domain.len() > names::MAX_SUBDOMAIN_BYTES {
        node.too_long(names::MAX_SUBDOMAIN_BYTES);
    }
    labels(node, domain, names::dns1123_label);
    if !domain.contains('.') {
        node.invalid(*domain, "should be a domain with at least two segments separated by dots");
    }
    labels(node, path, names::dns1123_subdomain);
    if name.len() > MAX_SIGNER_BYTES {
        node.too_long(MAX_SIGNER_BYTES);
    }
}

/// Only the first label that is wrong is told about.
fn labels(node: Node<'_>, text: &str, check: crate::rules::Check) {
    let wrong = text.split('.').map(|label| (label, check(label))).find(|(_, problems)| !problems.is_empty());
    if let Some((label, problems)) = wrong {
        for problem in problems {
            node.invalid(text, format!("validating label {}: {problem}", go::quote(label)));
        }
    }
}

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const DECISIONS: [&str; 3] = ["Approved", "Denied", "Failed"];

/// What an update may keep.
#[derive(Clone, Copy, Default)]
struct Leniency {
    usages: bool,
    repeated_usages: bool,
    signer: bool,
    both_decisions: bool,
    repeated_conditions: bool,
    untyped_conditions: bool,
}

pub(crate) fn signing_request(root: Root<'_>) {
    request(root, Leniency::default());
}

fn request(root: Root<'_>, leniency: Leniency) {
    let spec = root.get("spec");
    if let Some(problem) = pem::request_problem(spec.str("request")) {
        spec.get("request").wrong(problem);
    }
    let usages = spec.get("usages");
    if usages.is_empty() {
        usages.required("");
    }
    if !leniency.usages {
        usages.items().for_each(|usage| usage.one_of(&USAGES));
    }
    if !leniency.repeated_usages {
        distinct(usages);
    }
    let signer = spec.get("signerName");
    if signer.text() == LEGACY_SIGNER && !leniency.signer {
        signer.invalid(LEGACY_SIGNER, "the legacy signerName is not allowed via this API version");
    } else {
        signer_name(signer, signer.text());
    }
    let seconds = spec.get("expirationSeconds");
    if let Some(number) = seconds.int().filter(|number| *number < 600) {
        seconds.invalid(number, "may not specify a duration less than 600 seconds (10 minutes)");
    }
    conditions(root.get("status").get("conditions"), leniency);
}

/// Each text occurs once.
fn distinct(nodes: Node<'_>) {
    let mut seen: Vec<&str> = Vec::new();
    for node in nodes.items() {
        if seen.contains(&node.text()) {
            node.duplicate(BadValue::named(node.text()));
        }
        seen.push(node.text());
    }
}

fn conditions(conditions: Node<'_>, leniency: Leniency) {
    let mut seen: Vec<&str> = Vec::new();
    for condition in conditions.items() {
        let (kind, status) = (condition.get("type"), condition.get("status"));
        if kind.text().is_empty() && !leniency.untyped_conditions {
            kind.required("");
        }
        let allowed: &[&str] =
            if DECISIONS.contains(&kind.text()) { &["True"] } else { &["False", "True", "Unknown"] };
        status.required_one_of(allowed);
        let opposite = match kind.text() {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !leniency.both_decisions && !opposite.is_empty() && seen.contains(&opposite) {
            let shown = BadValue::named(kind.text());
            conditions.invalid(shown, "Approved and Denied conditions are mutually exclusive");
        }
        if !leniency.repeated_conditions && seen.contains(&kind.text()) {
            kind.duplicate(BadValue::named(kind.text()));
        }
        seen.push(kind.text());
    }
}

pub(crate) fn signing_request_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    let (spec, before) = (old.get("spec"), old.get("status"));
    let types: Vec<&str> = before.get("conditions").items().map(|condition| condition.str("type")).collect();
    let differ = |mut all: Vec<&str>| {
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        all.len() == count
    };
    let usages: Vec<&str> = spec.get("usages").items().map(Node::text).collect();
    let leniency = Leniency {
        usages: usages.iter().any(|usage| !USAGES.contains(usage)),
        repeated_usages: !differ(usages),
        signer: spec.str("signerName") == LEGACY_SIGNER,
        both_decisions: types.contains(&"Approved") && types.contains(&"Denied"),
        untyped_conditions: types.contains(&""),
        repeated_conditions: !differ(types),
    };
    meta::whole(new);
    request(new, leniency);
    let certificate = new.get("status").get("certificate");
    // What was accepted once, and what is not touched, stays.
    if certificate.text() != before.str("certificate")
        && pem::certificate_problem(before.str("certificate")).is_none()
        && let Some(problem) = pem::certificate_problem(certificate.text())
    {
        certificate.invalid("<certificate data>", problem);
    }
    decisions(new.get("status"), before, subresource == "approval");
    if certificate.text() != before.str("certificate") {
        if subresource != "status" {
            certificate.forbidden("updates may not set certificate content");
        } else if !before.str("certificate").is_empty() {
            certificate.forbidden("updates may not modify existing certificate content");
        }
    }
    meta::update(new, old);
}

fn decisions(status: Node<'_>, before: Node<'_>, may_decide: bool) {
    let conditions = status.get("conditions");
    let of = |status: Node<'_>, kind: &str| -> Vec<Value> {
        let all = status.get("conditions").list().iter();
        all.filter(|condition| condition.get("type").is_some_and(|found| found == kind)).cloned().collect()
    };
    let count = |status: Node<'_>, kind: &str| of(status, kind).len();
    for kind in DECISIONS {
        if count(status, kind) < count(before, kind) {
            conditions.forbidden(format!("updates may not remove a condition of type \"{kind}\""));
        }
    }
    if may_decide {
        return;
    }
    for kind in ["Approved", "Denied"] {
        let (new, old) = (of(status, kind), of(before, kind));
        if new.len() > old.len() {
            conditions.forbidden(format!("updates may not add a condition of type \"{kind}\""));
        } else if new.len() == old.len() && new != old {
            let difference = internal::list_difference("CertificateSigningRequestCondition", &old, &new);
            conditions
                .forbidden(format!("updates may not modify a condition of type \"{kind}\"\n{difference}"));
        }
    }
}

const MAX_BUNDLE_BYTES: usize = 1024 * 1024;

pub(crate) fn trust_bundle(root: Root<'_>) {
    bundle_name(root);
    signer(root);
    anchors(root);
}

pub(crate) fn trust_bundle_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    let of_spec = |root: Root<'v>, name: &str| root.get("spec").str(name);
    bundle_name(new);
    meta::whole(new);
    signer(new);
    // What was taken once stays valid.
    if of_spec(new, "trustBundle") != of_spec(old, "trustBundle") {
        anchors(new);
    }
    meta::update(new, old);
    let name = new.get("spec").get("signerName");
    if name.text() != of_spec(old, "signerName") {
        name.invalid(name.text(), IMMUTABLE);
    }
}

/// Whose signer is named has a name that begins with it.
fn bundle_name(root: Root<'_>) {
    let (prefix, name) = (root.metadata().get("generateName"), root.metadata().get("name"));
    let signer = root.get("spec").str("signerName");
    if !prefix.text().is_empty() {
        let subdomain = |rest: &str| NameRule::Dns1123Subdomain.check_prefix(rest);
        bundle_name_problems(signer, prefix.text(), subdomain)
            .into_iter()
            .for_each(|problem| prefix.wrong(problem));
    }
    bundle_name_problems(signer, name.text(), names::dns1123_subdomain)
        .into_iter()
        .for_each(|problem| name.wrong(problem));
}

fn bundle_name_problems(signer: &str, name: &str, check: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let prefix = format!("{}:", signer.replace('/', ":"));
    match name.strip_prefix(&prefix) {
        _ if signer.is_empty() && name.contains(':') => {
            vec!["ClusterTrustBundle without signer name must not have \":\" in its name".to_owned()]
        }
        _ if signer.is_empty() => check(name),
        Some(rest) => check(rest),
        None => {
            vec![format!("ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}")]
        }
    }
}

fn signer(root: Root<'_>) {
    let signer = root.get("spec").get("signerName");
    if !signer.text().is_empty() {
        signer_name(signer, signer.text());
    }
}

fn anchors(root: Root<'_>) {
    let bundle = root.get("spec").get("trustBundle");
    if bundle.text().len() > MAX_BUNDLE_BYTES {
        return bundle.too_long(MAX_BUNDLE_BYTES);
    }
    for problem in pem::bundle_problems(bundle.text()) {
        bundle.invalid("<value omitted>", problem);
    }
}
