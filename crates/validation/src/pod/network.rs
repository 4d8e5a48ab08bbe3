//! Host network, names and name resolution of pods.

use concord_meta::names;

use super::{Options, Pod};
use crate::{
    gates::Gate,
    ip::legacy_ip,
    node::Node,
    rules::{max_characters, pattern},
};

const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCH_PATHS: usize = 32;
const MAX_SEARCH_CHARACTERS: usize = 2048;
const MAX_HOSTNAME: usize = 64;

/// With the host's network a port is the host's port.
pub(super) fn host_network(pod: &Pod<'_>) {
    if !pod.spec.flag("hostNetwork") {
        return;
    }
    for container in pod.spec.get("containers").items() {
        for port in container.get("ports").items() {
            let (host, own) = (port.num("hostPort"), port.num("containerPort"));
            if (pod.options.resource_is_pod || host != 0) && host != own {
                port.child("hostPort").invalid(host, "must match `containerPort` when `hostNetwork` is true");
            }
        }
    }
}

pub(super) fn dns_config(config: Node<'_>, policy: &str, options: &Options<'_>) {
    let servers = config.get("nameservers");
    if policy == "None" {
        if !config.is_set() {
            return config.required("must provide `dnsConfig` when `dnsPolicy` is None");
        }
        if servers.is_empty() {
            return servers.required("must provide at least one DNS nameserver when `dnsPolicy` is None");
        }
    }
    if servers.len() > MAX_NAMESERVERS {
        servers.wrong(format!("must not have more than {MAX_NAMESERVERS} nameservers"));
    }
    servers.items().for_each(|server| legacy_ip(server, server.text(), &[]));
    let searches = config.get("searches");
    if searches.len() > MAX_SEARCH_PATHS {
        searches.wrong(format!("must not have more than {MAX_SEARCH_PATHS} search paths"));
    }
    let characters: usize = searches.items().map(|search| search.text().len() + 1).sum();
    if characters.saturating_sub(1) > MAX_SEARCH_CHARACTERS {
        searches.wrong(format!(
            "must not have more than {MAX_SEARCH_CHARACTERS} characters (including spaces) in the search list"
        ));
    }
    let relaxed = options.relaxed_searches || searches.gate(Gate::RelaxedDNSSearchValidation);
    for search in searches.items().filter(|search| !relaxed || search.text() != ".") {
        let text = search.text().strip_suffix('.').unwrap_or(search.text());
        search.check_text(text, if relaxed { search_path } else { names::dns1123_subdomain });
    }
    for option in config.get("options").items() {
        if option.str("name").is_empty() {
            option.required("must not be empty");
        }
    }
}

/// A subdomain whose labels may begin with an underscore.
fn search_path(text: &str) -> Vec<String> {
    const REGEX: &str = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
    const TEXT: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' \
        or '.', and must start and end with an alphanumeric character";
    let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let label = |label: &str| {
        let bytes = label.strip_prefix('_').unwrap_or(label).as_bytes();
        let ends = [bytes.first(), bytes.last()];
        ends.into_iter().all(|end| end.is_some_and(alphanumeric))
            && bytes.iter().all(|b| alphanumeric(b) || b"-_".contains(b))
    };
    let mut problems = Vec::new();
    if text.len() > names::MAX_SUBDOMAIN_BYTES {
        problems.push(max_characters(names::MAX_SUBDOMAIN_BYTES));
    }
    if !text.split('.').all(label) {
        problems.push(pattern(TEXT, REGEX, &["example.com"]));
    }
    problems
}

pub(super) fn hostname_override(spec: Node<'_>) {
    let node = spec.get("hostnameOverride");
    if !node.is_set() {
        return;
    }
    if spec.flag("setHostnameAsFQDN") {
        node.forbidden("may not be specified when setHostnameAsFQDN is true");
    }
    if spec.flag("hostNetwork") {
        node.forbidden("may not be specified when hostNetwork is true");
    }
    if node.text().len() > MAX_HOSTNAME {
        node.too_long(MAX_HOSTNAME);
    }
    node.check(names::dns1123_subdomain);
}

pub(super) fn host_aliases(aliases: Node<'_>) {
    for alias in aliases.items() {
        legacy_ip(alias.get("ip"), alias.str("ip"), &[]);
        alias.get("hostnames").items().for_each(|name| name.check(names::dns1123_subdomain));
    }
}
