//! Flow schemas and priority levels.

mod mandatory;

use concord_meta::{field::BadValue, names};

use crate::{
    internal, meta,
    node::{Node, Root},
};

const MAX_PRECEDENCE: i64 = 10_000;
const MAX_QUEUES: i64 = 10_000_000;
/// The bits of a hash from which a hand of queues is dealt.
const HASH_BITS: u32 = 60;
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
const KEPT_ZERO: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

fn has_wildcard(node: Node<'_>) -> bool {
    node.list().iter().any(|item| item == "*")
}

pub(crate) fn flow_schema(root: Root<'_>) {
    let spec = root.get("spec");
    let precedence = spec.get("matchingPrecedence");
    let number = precedence.int().unwrap_or_default();
    if number <= 0 {
        precedence.invalid(number, "must be a positive value");
    }
    if number > MAX_PRECEDENCE {
        precedence.invalid(number, format!("must not be greater than {MAX_PRECEDENCE}"));
    }
    if number == 1 && root.name() != "exempt" {
        precedence.invalid(number, "only the schema named 'exempt' may have matchingPrecedence 1");
    }
    let method = spec.get("distinguisherMethod");
    if method.is_set() && !["ByNamespace", "ByUser"].contains(&method.str("type")) {
        let shown = internal::shown("FlowDistinguisherMethod", method.value());
        method.child("type").not_supported(shown, &["ByNamespace", "ByUser"]);
    }
    let level = spec.get2("priorityLevelConfiguration", "name");
    match level.text() {
        "" => level.required("must reference a priority level"),
        _ => level.check(names::dns1123_subdomain),
    }
    spec.get("rules").items().for_each(rule);
    mandatory::flow_schema(root, spec);
    status(root.get("status"));
}

fn rule(rule: Node<'_>) {
    let (subjects, resources, others) =
        (rule.get("subjects"), rule.get("resourceRules"), rule.get("nonResourceRules"));
    if subjects.is_empty() {
        subjects.required("subjects must contain at least one value");
    }
    subjects.items().for_each(subject);
    if resources.is_empty() && others.is_empty() {
        rule.required("at least one of resourceRules and nonResourceRules has to be non-empty");
    }
    resources.items().for_each(resource_rule);
    for other in others.items() {
        verbs(other.get("verbs"));
        non_resource_urls(other.get("nonResourceURLs"));
    }
}

fn subject(subject: Node<'_>) {
    const KINDS: [(&str, &str); 3] =
        [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let kind = subject.get("kind");
    let Some((_, member)) = KINDS.iter().find(|(known, _)| *known == kind.text()) else {
        return kind.unsupported(&["Group", "ServiceAccount", "User"]);
    };
    let node = subject.get(member);
    match node.is_set() {
        false => node.required(format!("{member} is required when subject kind is '{}'", kind.text())),
        true if *member == "serviceAccount" => service_account(node),
        true => node.need(&["name"]),
    }
    // Those of other kinds, in upstream's order: accounts, users, groups.
    for (other, forbidden) in KINDS.iter().filter(|(other, _)| *other != kind.text()) {
        if subject.has(forbidden) {
            let detail = format!("{forbidden} is forbidden when subject kind is not '{other}'");
            subject.child(forbidden).forbidden(detail);
        }
    }
}

fn service_account(node: Node<'_>) {
    let (name, namespace) = (node.get("name"), node.get("namespace"));
    match name.text() {
        "*" => {}
        _ => name.required_and(names::dns1123_subdomain),
    }
    match namespace.text() {
        "" => namespace.required("must specify namespace for service account"),
        _ => namespace.check(names::dns1123_label),
    }
}

fn verbs(verbs: Node<'_>) {
    if verbs.is_empty() {
        verbs.required("verbs must contain at least one value");
    } else if has_wildcard(verbs) {
        if verbs.len() > 1 {
            verbs.wrong("if '*' is present, must not specify other verbs");
        }
    } else if !verbs.items().all(|verb| VERBS.contains(&verb.text())) {
        verbs.not_supported(verbs.shown(), &VERBS);
    }
}

fn resource_rule(rule: Node<'_>) {
    verbs(rule.get("verbs"));
    for (name, one, many) in
        [("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")]
    {
        let node = rule.get(name);
        if node.is_empty() {
            node.required(format!("resource rules must supply at least one {one}"));
        } else if node.len() > 1 && has_wildcard(node) {
            node.wrong(format!("if '*' is present, must not specify other {many}"));
        }
    }
    let namespaces = rule.get("namespaces");
    if namespaces.is_empty() && !rule.flag("clusterScope") {
        namespaces.required("resource rules that are not cluster scoped must supply at least one namespace");
    } else if has_wildcard(namespaces) {
        if namespaces.len() > 1 {
            namespaces.wrong("if '*' is present, must not specify other namespaces");
        }
    } else {
        for namespace in namespaces.items() {
            for problem in names::dns1123_label(namespace.text()) {
                let detail = format!("each member of this list must be '*' or a DNS-1123 label; {problem}");
                namespace.invalid(namespace.text(), detail);
            }
        }
    }
}

fn non_resource_urls(urls: Node<'_>) {
    if urls.is_empty() {
        urls.required("nonResourceURLs must contain at least one value");
    } else if has_wildcard(urls) {
        if urls.len() > 1 {
            urls.wrong("if '*' is present, must not specify other non-resource URLs");
        }
    } else {
        for url in urls.items() {
            if let Some(problem) = url_problem(url.text()) {
                url.invalid(url.text(), problem);
            }
        }
    }
}

fn url_problem(path: &str) -> Option<&'static str> {
    match path {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !path.starts_with('/') => Some("must start with slash"),
        _ if path.contains(' ') => Some("must not contain white-space"),
        _ if path.contains("//") => Some("must not contain double slash"),
        _ => {
            let wildcards = path.matches('*').count();
            let misplaced = wildcards > 1 || (wildcards == 1 && !path.ends_with("/*"));
            misplaced.then_some("wildcard can only do suffix matching")
        }
    }
}

fn status(status: Node<'_>) {
    let mut seen: Vec<&str> = Vec::new();
    for condition in status.get("conditions").items() {
        let kind = condition.get("type");
        if seen.contains(&kind.text()) {
            kind.duplicate(BadValue::named(kind.text()));
        }
        seen.push(kind.text());
        if kind.text().is_empty() {
            kind.required("");
        }
    }
}

pub(crate) fn flow_schema_update<'v>(subresource: &str, new: Root<'v>, _: Root<'v>) {
    if subresource == "status" {
        return status(new.get("status"));
    }
    meta::whole(new);
    flow_schema(new);
}

pub(crate) fn priority_level(root: Root<'_>) {
    if root.annotation(KEPT_ZERO).is_some() {
        let detail = format!("annotation '{KEPT_ZERO}' is forbidden");
        root.child("metadata").child("annotations").forbidden(detail);
    }
    let spec = root.get("spec");
    let (kind, limited, exempt) = (spec.get("type"), spec.get("limited"), spec.get("exempt"));
    if (root.name() == "exempt") != (kind.text() == "Exempt") {
        kind.invalid(BadValue::named(kind.text()), "must be 'Exempt' if and only if `name` is 'exempt'");
    }
    match kind.text() {
        "Exempt" => {
            if limited.is_set() {
                limited.forbidden("must be nil if the type is not Limited");
            }
            shares(exempt.get("nominalConcurrencyShares"));
            lendable(exempt.get("lendablePercent"));
        }
        "Limited" => {
            if exempt.is_set() {
                exempt.forbidden("must be nil if the type is Limited");
            }
            match limited.is_set() {
                true => limited_level(limited),
                false => limited.required("must not be empty when type is Limited"),
            }
        }
        _ => kind.required_one_of(&["Exempt", "Limited"]),
    }
    mandatory::priority_level(root, spec);
    status(root.get("status"));
}

fn shares(node: Node<'_>) {
    if let Some(number) = node.int().filter(|number| *number < 0) {
        node.invalid(number, "must be a non-negative integer");
    }
}

fn lendable(node: Node<'_>) {
    if let Some(number) = node.int().filter(|number| !(0..=100).contains(number)) {
        node.invalid(number, "must be between 0 and 100, inclusive");
    }
}

fn limited_level(limited: Node<'_>) {
    shares(limited.get("nominalConcurrencyShares"));
    limit_response(limited.get("limitResponse"));
    lendable(limited.get("lendablePercent"));
    let borrowing = limited.get("borrowingLimitPercent");
    if let Some(number) = borrowing.int().filter(|number| *number < 0) {
        borrowing.invalid(number, "if specified, must be a non-negative integer");
    }
}

fn limit_response(response: Node<'_>) {
    let (kind, queuing) = (response.get("type"), response.get("queuing"));
    match (kind.text(), queuing.is_set()) {
        ("Reject", true) => queuing.forbidden("must be nil if limited.limitResponse.type is not Limited"),
        ("Reject", false) => {}
        ("Queue", false) => queuing.required("must not be empty if limited.limitResponse.type is Limited"),
        ("Queue", true) => self::queuing(queuing),
        _ => kind.required_one_of(&["Queue", "Reject"]),
    }
}

fn queuing(node: Node<'_>) {
    let positive = |name: &'static str| {
        let number = node.num(name);
        if number <= 0 {
            node.child(name).invalid(number, "must be positive");
        }
        number
    };
    positive("queueLengthLimit");
    let queues = positive("queues");
    if queues > MAX_QUEUES {
        node.child("queues").invalid(queues, format!("must not be greater than {MAX_QUEUES}"));
    }
    let hand = positive("handSize");
    if hand > 0 && hand > queues {
        let detail = format!("should not be greater than queues ({queues})");
        node.child("handSize").invalid(hand, detail);
    } else if hand > 0 && !is_dealt_from_a_hash(queues, hand) {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS}"
        );
        node.child("handSize").invalid(hand, detail);
    }
}

/// Whether a hash has the bits that dealing a hand takes. As for upstream, each card takes as many as the first.
fn is_dealt_from_a_hash(deck: i64, hand: i64) -> bool {
    let (deck, hand) = (u128::try_from(deck).ok(), u32::try_from(hand).ok());
    let hands = deck.zip(hand).and_then(|(deck, hand)| deck.checked_pow(hand));
    hands.is_some_and(|hands| hands <= 1 << HASH_BITS)
}

pub(crate) fn priority_level_update<'v>(subresource: &str, new: Root<'v>, _: Root<'v>) {
    if subresource == "status" {
        return status(new.get("status"));
    }
    meta::whole(new);
    priority_level(new);
}
