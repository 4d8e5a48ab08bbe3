//! What pods are checked for, and since which release.

use std::{borrow::Cow, collections::BTreeSet};

use concord_registry::{Object, metadata};
use serde_json::Value;

use super::{
    baseline, host,
    policy::{Level, LevelVersion, Version},
    restricted,
};

/// A pod, or what a workload makes pods from.
#[derive(Clone, Copy)]
pub(super) struct Pod<'a> {
    pub(super) annotations: Option<&'a Object>,
    pub(super) spec: &'a Object,
}

/// What a pod should not be, shortly, and in detail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) reason: Cow<'static, str>,
    pub(super) detail: String,
}

type Check = fn(Pod<'_>) -> Option<Violation>;

/// One check from one release on, until there is another of the same name.
struct Row {
    id: &'static str,
    level: Level,
    since: u32,
    check: Check,
    /// The check of the lower level that this one has no use for.
    instead_of: &'static str,
}

const fn baseline(id: &'static str, since: u32, check: Check) -> Row {
    Row { id, level: Level::Baseline, since, check, instead_of: "" }
}

const fn restricted(id: &'static str, since: u32, check: Check, instead_of: &'static str) -> Row {
    Row { id, level: Level::Restricted, since, check, instead_of }
}

/// In the order in which they are told; of one name the newest first.
static CHECKS: &[Row] = &[
    baseline("appArmorProfile", 0, baseline::app_armor),
    baseline("capabilities_baseline", 0, baseline::capabilities),
    baseline("hostNamespaces", 0, host::namespaces),
    baseline("hostPathVolumes", 0, host::paths),
    baseline("hostPorts", 0, host::ports),
    baseline("hostProbesAndHostLifecycle", 34, host::probes),
    baseline("privileged", 0, baseline::privileged),
    baseline("procMount", 35, |pod| baseline::proc_mount(pod).filter(|_| !pod.has_own_users())),
    baseline("procMount", 0, baseline::proc_mount),
    baseline("seLinuxOptions", 31, baseline::se_linux_31),
    baseline("seLinuxOptions", 0, baseline::se_linux_0),
    baseline("seccompProfile_baseline", 19, baseline::seccomp_19),
    baseline("seccompProfile_baseline", 0, baseline::seccomp_0),
    baseline("sysctls", 32, |pod| baseline::sysctls(pod, 12)),
    baseline("sysctls", 29, |pod| baseline::sysctls(pod, 10)),
    baseline("sysctls", 27, |pod| baseline::sysctls(pod, 6)),
    baseline("sysctls", 0, |pod| baseline::sysctls(pod, 5)),
    baseline("windowsHostProcess", 0, host::windows_process),
    restricted(
        "allowPrivilegeEscalation",
        25,
        |pod| restricted::escalation(pod).filter(|_| !pod.is_windows()),
        "",
    ),
    restricted("allowPrivilegeEscalation", 8, restricted::escalation, ""),
    restricted(
        "capabilities_restricted",
        25,
        |pod| restricted::capabilities(pod).filter(|_| !pod.is_windows()),
        "capabilities_baseline",
    ),
    restricted("capabilities_restricted", 22, restricted::capabilities, "capabilities_baseline"),
    restricted("procMount_restricted", 35, baseline::proc_mount, "procMount"),
    restricted("restrictedVolumes", 0, restricted::volumes, "hostPathVolumes"),
    restricted("runAsNonRoot", 35, |pod| restricted::non_root(pod).filter(|_| !pod.has_own_users()), ""),
    restricted("runAsNonRoot", 0, restricted::non_root, ""),
    restricted("runAsUser", 35, |pod| restricted::user(pod).filter(|_| !pod.has_own_users()), ""),
    restricted("runAsUser", 23, restricted::user, ""),
    restricted(
        "seccompProfile_restricted",
        25,
        |pod| restricted::seccomp(pod).filter(|_| !pod.is_windows()),
        "seccompProfile_baseline",
    ),
    restricted("seccompProfile_restricted", 19, restricted::seccomp, "seccompProfile_baseline"),
];

/// What a pod violates of a level, as far as the release `newest` knows.
pub(super) fn violations(level: LevelVersion, newest: u32, pod: Pod<'_>) -> Vec<Violation> {
    let minor = match level.version {
        Version::Minor(minor) => minor.min(newest),
        Version::Latest => newest,
    };
    let mut seen = "";
    let in_force: Vec<&Row> = CHECKS
        .iter()
        .filter(|row| row.level <= level.level && row.since <= minor)
        .filter(|row| std::mem::replace(&mut seen, row.id) != row.id)
        .collect();
    let is_replaced = |row: &Row| in_force.iter().any(|other| other.instead_of == row.id);
    in_force.iter().filter(|row| !is_replaced(row)).filter_map(|row| (row.check)(pod)).collect()
}

/// The short form of violations.
pub(super) fn reasons(violations: &[Violation]) -> String {
    let reasons: Vec<&str> = violations.iter().map(|violation| violation.reason.as_ref()).collect();
    reasons.join(", ")
}

/// The long form of violations.
pub(super) fn details(violations: &[Violation]) -> String {
    let details: Vec<String> =
        violations.iter().map(|Violation { reason, detail }| format!("{reason} ({detail})")).collect();
    details.join(", ")
}

impl<'a> Pod<'a> {
    /// A pod, or a template of pods. Nothing if it has no spec.
    pub(super) fn of(object: &'a Object) -> Option<Self> {
        let annotations = metadata(object).get("annotations").and_then(Value::as_object);
        Some(Self { annotations, spec: object.get("spec").and_then(Value::as_object)? })
    }

    /// Its containers of all kinds, in the order in which upstream visits them.
    pub(super) fn containers(self) -> impl Iterator<Item = Container<'a>> {
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        let lists = lists.into_iter().filter_map(move |list| self.spec.get(list)?.as_array());
        lists.flatten().filter_map(Value::as_object).map(Container)
    }

    /// A member of the security context of the pod as a whole.
    pub(super) fn security(self, name: &str) -> Option<&'a Value> {
        self.spec.get("securityContext")?.get(name).filter(|value| !value.is_null())
    }

    /// A list of the spec.
    pub(super) fn list(self, name: &str) -> impl Iterator<Item = &'a Object> {
        self.spec.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
    }

    pub(super) fn annotation(self, name: &str) -> Option<&'a str> {
        self.annotations?.get(name)?.as_str()
    }

    /// Whether its users are not those of the node.
    fn has_own_users(self) -> bool {
        self.spec.get("hostUsers") == Some(&Value::Bool(false))
    }

    fn is_windows(self) -> bool {
        self.spec.get("os").and_then(|os| os.get("name")?.as_str()) == Some("windows")
    }
}

/// A container of a pod.
#[derive(Clone, Copy)]
pub(super) struct Container<'a>(pub(super) &'a Object);

impl<'a> Container<'a> {
    pub(super) fn name(self) -> &'a str {
        self.0.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    /// A member of its security context.
    pub(super) fn security(self, name: &str) -> Option<&'a Value> {
        self.0.get("securityContext")?.get(name).filter(|value| !value.is_null())
    }

    /// The texts of a list in its capabilities.
    pub(super) fn capabilities(self, list: &str) -> impl Iterator<Item = &'a str> {
        let found = self.security("capabilities").and_then(|all| all.get(list)?.as_array());
        found.into_iter().flatten().filter_map(Value::as_str)
    }
}

/// One word for one, another for more.
pub(super) fn plural<'a>(one: &'a str, many: &'a str, count: usize) -> &'a str {
    if count == 1 { one } else { many }
}

/// Names in quotes.
pub(super) fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}

/// Containers by name.
pub(super) fn containers(names: &[&str]) -> String {
    format!("{} {}", plural("container", "containers", names.len()), quoted(names.iter().copied()))
}

/// Those who set something: the pod as a whole, and containers.
pub(super) fn setters(pod: bool, names: &[&str]) -> Option<String> {
    let of_containers = (!names.is_empty()).then(|| containers(names));
    let all: Vec<String> = pod.then(|| "pod".to_owned()).into_iter().chain(of_containers).collect();
    (!all.is_empty()).then(|| all.join(" and "))
}

/// The values in order, each once.
pub(super) type Values<'a> = BTreeSet<&'a str>;

pub(super) fn violation(reason: &'static str, detail: String) -> Option<Violation> {
    Some(Violation { reason: Cow::Borrowed(reason), detail })
}
