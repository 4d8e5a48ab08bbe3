//! Roles and their bindings.

use concord_meta::names;

use crate::{
    internal,
    labels::{self, Values, selector},
    meta,
    node::{Node, Root},
    rules::same,
};

const GROUP: &str = "rbac.authorization.k8s.io";

fn rules(root: Root<'_>, namespaced: bool) {
    for rule in root.get("rules").items() {
        if rule.get("verbs").is_empty() {
            rule.child("verbs").required("verbs must contain at least one value");
        }
        let urls = rule.get("nonResourceURLs");
        if !urls.is_empty() {
            if namespaced {
                urls.wrong("namespaced rules cannot apply to non-resource URLs");
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|name| !rule.get(name).is_empty()) {
                urls.wrong("rules cannot apply to both regular resources and non-resource URLs");
            }
            continue;
        }
        if rule.get("apiGroups").is_empty() {
            rule.child("apiGroups").required("resource rules must supply at least one api group");
        }
        if rule.get("resources").is_empty() {
            rule.child("resources").required("resource rules must supply at least one resource");
        }
    }
}

pub(crate) fn role(root: Root<'_>) {
    rules(root, true);
}

pub(crate) fn role_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::whole(new);
    role(new);
    meta::update(new, old);
}

pub(crate) fn cluster_role(root: Root<'_>) {
    whole_cluster_role(root, Values::Labels);
}

fn whole_cluster_role(root: Root<'_>, values: Values) {
    rules(root, false);
    let aggregation = root.get("aggregationRule");
    if !aggregation.is_set() {
        return;
    }
    let selectors = aggregation.get("clusterRoleSelectors");
    if selectors.is_empty() {
        selectors.required("at least one clusterRoleSelector required if aggregationRule is non-nil");
    }
    for one in selectors.items() {
        selector(one, values);
        if labels::matches(one, None).is_none() {
            one.invalid(concord_meta::field::BadValue::verbatim("null"), "invalid label selector.");
        }
    }
}

pub(crate) fn cluster_role_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    let mut selectors = old.get("aggregationRule").get("clusterRoleSelectors").items();
    let broken = selectors.any(|one| one.breaks(|one| selector(one, Values::Labels)));
    meta::whole(new);
    whole_cluster_role(new, if broken { Values::Any } else { Values::Labels });
    meta::update(new, old);
}

fn binding(root: Root<'_>, kinds: &[&str], namespaced: bool) {
    let reference = root.get("roleRef");
    let (group, kind) = (reference.get("apiGroup"), reference.get("kind"));
    if group.text() != GROUP {
        group.not_supported(group.text(), &[GROUP]);
    }
    if !kinds.contains(&kind.text()) {
        kind.not_supported(kind.text(), kinds);
    }
    reference.get("name").required_and(names::path_segment);
    root.get("subjects").items().for_each(|one| subject(one, namespaced));
}

fn subject(subject: Node<'_>, namespaced: bool) {
    let (name, group, kind) = (subject.get("name"), subject.get("apiGroup"), subject.get("kind"));
    if name.text().is_empty() {
        name.required("");
    }
    match kind.text() {
        "ServiceAccount" => {
            name.optional_and(names::dns1123_subdomain);
            if !group.text().is_empty() {
                group.not_supported(group.text(), &[""]);
            }
            if !namespaced && subject.str("namespace").is_empty() {
                subject.child("namespace").required("");
            }
        }
        "User" | "Group" if group.text() != GROUP => group.not_supported(group.text(), &[GROUP]),
        "User" | "Group" => {}
        text => kind.not_supported(text, &["ServiceAccount", "User", "Group"]),
    }
}

fn fixed_role<'v>(new: Root<'v>, old: Root<'v>) {
    let reference = new.get("roleRef");
    if !same(reference.value(), old.get("roleRef").value()) {
        reference.invalid(internal::shown("RoleRef", reference.value()), "cannot change roleRef");
    }
}

pub(crate) fn role_binding(root: Root<'_>) {
    binding(root, &["Role", "ClusterRole"], true);
}

pub(crate) fn role_binding_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::whole(new);
    role_binding(new);
    meta::update(new, old);
    fixed_role(new, old);
}

pub(crate) fn cluster_role_binding(root: Root<'_>) {
    binding(root, &["ClusterRole"], false);
}

pub(crate) fn cluster_role_binding_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::whole(new);
    cluster_role_binding(new);
    meta::update(new, old);
    fixed_role(new, old);
}
