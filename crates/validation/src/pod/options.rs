//! What an update may keep although a new object may not have it.

use super::{affinity, scheduling, security};
use crate::{
    labels::{Values, selector},
    node::Node,
    resources,
    rules::local_non_reserved_path,
};

/// How strictly a pod's spec is looked at. What was once accepted stays acceptable in that object.
#[derive(Clone)]
pub(crate) struct Options<'v> {
    /// Whether it is a pod, not a template.
    pub(crate) resource_is_pod: bool,
    /// Whether host name and subdomain are ignored, as StatefulSets do.
    pub(crate) without_hostname: bool,
    /// The claims of a StatefulSet, which count as volumes and stand before them.
    pub(crate) claims: Vec<&'v str>,
    pub(crate) indivisible_hugepages: bool,
    pub(crate) selector_values: Values,
    pub(crate) node_affinity_values: Values,
    pub(crate) invalid_spread_selector: bool,
    pub(crate) breaks_match_label_keys: bool,
    pub(crate) breaks_legacy_match_label_keys: bool,
    pub(crate) non_local_token_path: bool,
    pub(crate) host_sysctls: bool,
    pub(crate) any_selinux_change_policy: bool,
    pub(crate) user_namespaces_with_host_network: bool,
    pub(crate) user_namespaces_with_devices: bool,
    pub(crate) restart_container_for_init: bool,
    pub(crate) invalid_deletion_cost: bool,
    pub(crate) restart_all_containers: bool,
    pub(crate) comparing_tolerations: bool,
    pub(crate) sidecar_resize_policy: bool,
    pub(crate) restart_rules: bool,
    pub(crate) env_files: bool,
    pub(crate) relaxed_searches: bool,
    pub(crate) zero_sleep: bool,
    /// What the variables were called before, and the prefixes of others.
    pub(crate) old_variables: Vec<&'v str>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            resource_is_pod: false,
            without_hostname: false,
            claims: Vec::new(),
            indivisible_hugepages: false,
            selector_values: Values::Labels,
            node_affinity_values: Values::Labels,
            invalid_spread_selector: false,
            breaks_match_label_keys: false,
            breaks_legacy_match_label_keys: false,
            non_local_token_path: false,
            host_sysctls: false,
            any_selinux_change_policy: false,
            user_namespaces_with_host_network: false,
            user_namespaces_with_devices: false,
            restart_container_for_init: false,
            invalid_deletion_cost: false,
            restart_all_containers: false,
            comparing_tolerations: false,
            sidecar_resize_policy: false,
            restart_rules: false,
            env_files: false,
            relaxed_searches: false,
            zero_sleep: false,
            old_variables: Vec::new(),
        }
    }
}

fn any_if(broken: bool) -> Values {
    if broken { Values::Any } else { Values::Labels }
}

impl<'v> Options<'v> {
    /// The options for the update of a pod or template with this spec and these annotations.
    pub(crate) fn for_update(old: Node<'v>, annotations: Node<'v>) -> Self {
        let own_users = old.option("hostUsers") == Some(false);
        let containers = || super::all_containers(old);
        let spread = || old.get("topologySpreadConstraints").items();
        let affinity = old.get("affinity");
        let terms = if affinity.is_set() { affinity::pod_terms(affinity) } else { Vec::new() };
        Self {
            indivisible_hugepages: has_indivisible_hugepages(old),
            selector_values: any_if(
                terms.iter().any(|term| term.breaks(|term| affinity::term_selectors(term, Values::Labels))),
            ),
            node_affinity_values: any_if(affinity::has_invalid_values(affinity::required_terms(affinity))),
            invalid_spread_selector: spread()
                .any(|spread| spread.get("labelSelector").breaks(|node| selector(node, Values::Labels))),
            breaks_legacy_match_label_keys: spread()
                .any(|spread| spread.breaks(scheduling::legacy_match_label_keys)),
            breaks_match_label_keys: spread().any(|spread| {
                spread.breaks(|spread| affinity::match_label_keys(spread, spread.get("labelSelector"), false))
            }),
            non_local_token_path: has_non_local_token_path(old),
            host_sysctls: has_host_sysctls(old),
            any_selinux_change_policy: old.get("securityContext").has("seLinuxChangePolicy"),
            user_namespaces_with_host_network: own_users && old.flag("hostNetwork"),
            user_namespaces_with_devices: own_users
                && containers().any(|c| !c.get("volumeDevices").is_empty()),
            restart_container_for_init: restarts_for_init(old),
            invalid_deletion_cost: !super::annotations::has_valid_deletion_cost(annotations),
            restart_all_containers: may_restart_all(old),
            comparing_tolerations: old
                .get("tolerations")
                .items()
                .any(|toleration| ["Lt", "Gt"].contains(&toleration.str("operator"))),
            ..Self::past_gates(old)
        }
    }

    /// What the gates of past releases let in.
    fn past_gates(old: Node<'v>) -> Self {
        Self {
            sidecar_resize_policy: old
                .get("initContainers")
                .items()
                .any(|c| c.str("restartPolicy") == "Always" && !c.get("resizePolicy").is_empty()),
            restart_rules: has_restart_rules(old),
            env_files: has_env_files(old),
            relaxed_searches: old
                .get2("dnsConfig", "searches")
                .items()
                .any(|search| search.text() == "." || search.text().contains('_')),
            zero_sleep: has_zero_sleep(old),
            old_variables: variables(old),
            ..Self::default()
        }
    }

    /// The options for the update of a template.
    pub(crate) fn for_template(old: Node<'v>) -> Self {
        Self::for_update(old.get("spec"), old.get2("metadata", "annotations"))
    }
}

/// Whether a rule restarts all containers, or a sidecar has rules, which is the same feature.
/// What variables are called, and the prefixes of those that come from elsewhere.
pub(super) fn variables<'v>(spec: Node<'v>) -> Vec<&'v str> {
    let names = |container: Node<'v>| {
        let own = container.get("env").items().map(|variable| variable.str("name"));
        let taken = container.get("envFrom").items().map(|source| source.str("prefix"));
        own.chain(taken).collect::<Vec<_>>()
    };
    super::all_containers(spec).flat_map(names).collect()
}

fn has_env_files(spec: Node<'_>) -> bool {
    super::all_containers(spec)
        .flat_map(|container| container.get("env").items())
        .any(|variable| variable.get("valueFrom").has("fileKeyRef"))
}

fn has_restart_rules(spec: Node<'_>) -> bool {
    let beyond_sidecars = |container: Node<'_>| {
        !["", "Always"].contains(&container.str("restartPolicy"))
            || !container.get("restartPolicyRules").is_empty()
    };
    spec.get("initContainers").items().any(beyond_sidecars)
        || spec.get("containers").items().any(|container| container.has("restartPolicy"))
}

fn has_zero_sleep(spec: Node<'_>) -> bool {
    let sleeps_not = |hook: Node<'_>| hook.has("sleep") && hook.get("sleep").num("seconds") == 0;
    super::all_containers(spec).any(|container| {
        let lifecycle = container.get("lifecycle");
        sleeps_not(lifecycle.get("preStop")) || sleeps_not(lifecycle.get("postStart"))
    })
}

fn may_restart_all(spec: Node<'_>) -> bool {
    ["containers", "initContainers"].into_iter().flat_map(|list| spec.get(list).items()).any(|container| {
        let rules = container.get("restartPolicyRules");
        rules.items().any(|rule| rule.str("action") == "RestartAllContainers")
            || !rules.is_empty()
                && container.str("restartPolicy") == "Always"
                && spec.get("initContainers").list().iter().any(|init| Some(init) == container.value())
    })
}

fn has_indivisible_hugepages(spec: Node<'_>) -> bool {
    let indivisible = |list: Node<'_>| {
        list.entries().any(|(name, amount)| {
            let size = name.strip_prefix("hugepages-");
            size.zip(amount.quantity()).is_some_and(|(size, amount)| !resources::is_divisible(size, &amount))
        })
    };
    let lists = super::all_containers(spec)
        .flat_map(|container| ["limits", "requests"].map(|name| container.get2("resources", name)))
        .chain([spec.get("overhead")]);
    lists.into_iter().any(indivisible)
}

fn has_non_local_token_path(spec: Node<'_>) -> bool {
    let volumes = spec.get("volumes").items().filter(|volume| volume.has("projected"));
    volumes.into_iter().any(|volume| {
        volume.get2("projected", "sources").items().filter(|source| source.has("serviceAccountToken")).any(
            |source| {
                let path = source.get2("serviceAccountToken", "path");
                path.breaks(|path| local_non_reserved_path(path, path.text()))
            },
        )
    })
}

/// Whether a container that runs before the others would be started again by a resize.
fn restarts_for_init(spec: Node<'_>) -> bool {
    let restarts = |policy: Node<'_>| policy.str("restartPolicy") == "RestartContainer";
    spec.get("initContainers").items().any(|container| {
        container.str("restartPolicy") != "Always" && container.get("resizePolicy").items().any(restarts)
    })
}

fn has_host_sysctls(spec: Node<'_>) -> bool {
    let mut sysctls = spec.get2("securityContext", "sysctls").items();
    sysctls.any(|sysctl| sysctl.get("name").breaks(|name| security::host_sysctl(name, spec)))
}
