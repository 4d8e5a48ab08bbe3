//! What is known to give a pod more than pods usually have.

use std::borrow::Cow;

use concord_meta::go;
use concord_registry::Object;
use serde_json::Value;

use super::check::{Container, Pod, Values, Violation, containers, plural, quoted, setters, violation};

/// What container runtimes give by themselves.
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// In the order in which they became known to be safe.
const SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

/// The types of SELinux that are allowed; the last one is newer.
const SE_LINUX: [&str; 5] = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// The type of a profile, if there is one and it is neither the runtime's own nor one of the machine.
pub(super) fn bad_profile(profile: Option<&Value>) -> Option<&str> {
    let profile = profile?.get("type").and_then(Value::as_str).unwrap_or_default();
    Some(profile).filter(|profile| !["RuntimeDefault", "Localhost"].contains(profile))
}

/// Who sets a profile that is not allowed, and which ones these are.
pub(super) fn bad_profiles<'a>(pod: Pod<'a>, member: &str) -> (bool, Vec<&'a str>, Values<'a>) {
    let of_pod = bad_profile(pod.security(member));
    let mut values: Values<'a> = of_pod.into_iter().collect();
    let mut names = Vec::new();
    for container in pod.containers() {
        if let Some(profile) = bad_profile(container.security(member)) {
            names.push(container.name());
            values.insert(profile);
        }
    }
    (of_pod.is_some(), names, values)
}

pub(super) fn app_armor(pod: Pod<'_>) -> Option<Violation> {
    let (of_pod, names, values) = bad_profiles(pod, "appArmorProfile");
    let is_allowed =
        |value: &str| value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
    let annotations = pod.annotations.into_iter().flatten();
    let annotations = annotations.filter_map(|(key, value)| Some((key, value.as_str()?)));
    let bad = annotations.filter(|(key, value)| key.starts_with(APP_ARMOR) && !is_allowed(value));
    let bad: Vec<String> = bad.map(|(key, value)| format!("{key}={}", go::quote(value))).collect();
    let by_annotation = (!bad.is_empty()).then(|| plural("annotation", "annotations", bad.len()).to_owned());
    let setters: Vec<String> = setters(of_pod, &names).into_iter().chain(by_annotation).collect();
    if setters.is_empty() {
        return None;
    }
    let values: Vec<&str> = values.into_iter().chain(bad.iter().map(String::as_str)).collect();
    let reason = plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values.len());
    let detail =
        format!("{} must not set AppArmor profile type to {}", setters.join(" and "), quoted(values));
    Some(Violation { reason: Cow::Borrowed(reason), detail })
}

pub(super) fn capabilities(pod: Pod<'_>) -> Option<Violation> {
    let (mut names, mut added) = (Vec::new(), Values::new());
    for container in pod.containers() {
        let more: Vec<&str> =
            container.capabilities("add").filter(|name| !CAPABILITIES.contains(name)).collect();
        if !more.is_empty() {
            names.push(container.name());
            added.extend(more);
        }
    }
    if names.is_empty() {
        return None;
    }
    let (names, added) = (containers(&names), quoted(added));
    violation(
        "non-default capabilities",
        format!("{names} must not include {added} in securityContext.capabilities.add"),
    )
}

pub(super) fn privileged(pod: Pod<'_>) -> Option<Violation> {
    let is_privileged =
        |container: &Container<'_>| container.security("privileged") == Some(&Value::Bool(true));
    let names: Vec<&str> = pod.containers().filter(is_privileged).map(Container::name).collect();
    if names.is_empty() {
        return None;
    }
    violation("privileged", format!("{} must not set securityContext.privileged=true", containers(&names)))
}

pub(super) fn proc_mount(pod: Pod<'_>) -> Option<Violation> {
    let (mut names, mut types) = (Vec::new(), Values::new());
    for container in pod.containers() {
        if let Some(kind) =
            container.security("procMount").and_then(Value::as_str).filter(|kind| *kind != "Default")
        {
            names.push(container.name());
            types.insert(kind);
        }
    }
    if names.is_empty() {
        return None;
    }
    let detail =
        format!("{} must not set securityContext.procMount to {}", containers(&names), quoted(types));
    violation("procMount", detail)
}

pub(super) fn se_linux_0(pod: Pod<'_>) -> Option<Violation> {
    se_linux(pod, &SE_LINUX[..4])
}

pub(super) fn se_linux_31(pod: Pod<'_>) -> Option<Violation> {
    se_linux(pod, &SE_LINUX)
}

fn is_set(options: &Value, name: &str) -> bool {
    options.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty())
}

fn bad_type<'a>(options: &'a Value, allowed: &[&str]) -> Option<&'a str> {
    options.get("type").and_then(Value::as_str).filter(|kind| !allowed.contains(kind))
}

fn se_linux(pod: Pod<'_>, allowed: &[&str]) -> Option<Violation> {
    let is_bad = |options: &&Value| {
        is_set(options, "user") || is_set(options, "role") || bad_type(options, allowed).is_some()
    };
    let of_pod = pod.security("seLinuxOptions").filter(is_bad);
    let of_containers = pod.containers().filter_map(|container| {
        let options = container.security("seLinuxOptions").filter(is_bad)?;
        Some((container.name(), options))
    });
    let (names, options): (Vec<&str>, Vec<&Value>) = of_containers.unzip();
    let setters = setters(of_pod.is_some(), &names)?;
    let options: Vec<&Value> = of_pod.into_iter().chain(options).collect();
    let kinds: Values<'_> = options.iter().filter_map(|options| bad_type(options, allowed)).collect();
    let mut data = Vec::new();
    if !kinds.is_empty() {
        data.push(format!("{} {}", plural("type", "types", kinds.len()), quoted(kinds)));
    }
    for field in ["user", "role"] {
        if options.iter().any(|options| is_set(options, field)) {
            data.push(format!("{field} may not be set"));
        }
    }
    let data = data.join("; ");
    violation("seLinuxOptions", format!("{setters} set forbidden securityContext.seLinuxOptions: {data}"))
}

pub(super) fn seccomp_0(pod: Pod<'_>) -> Option<Violation> {
    let is_allowed = |value: &str| {
        ["runtime/default", "docker/default"].contains(&value) || value.starts_with("localhost/")
    };
    let of_containers =
        pod.containers().map(|container| format!("{SECCOMP_OF_CONTAINER}{}", container.name()));
    let bad = std::iter::once(SECCOMP_OF_POD.to_owned()).chain(of_containers).filter_map(|key| {
        let value = pod.annotation(&key).filter(|value| !is_allowed(value))?;
        Some(format!("{key}={}", go::quote(value)))
    });
    let bad: std::collections::BTreeSet<String> = bad.collect();
    if bad.is_empty() {
        return None;
    }
    let what = plural("annotation", "annotations", bad.len());
    let bad: Vec<String> = bad.into_iter().collect();
    violation("seccompProfile", format!("forbidden {what} {}", bad.join(", ")))
}

pub(super) fn seccomp_19(pod: Pod<'_>) -> Option<Violation> {
    let (of_pod, names, values) = bad_profiles(pod, "seccompProfile");
    let setters = setters(of_pod, &names)?;
    let detail = format!("{setters} must not set securityContext.seccompProfile.type to {}", quoted(values));
    violation("seccompProfile", detail)
}

/// All but the first so many of those that are known to be safe.
pub(super) fn sysctls(pod: Pod<'_>, known: usize) -> Option<Violation> {
    let all = pod.security("sysctls").and_then(Value::as_array).into_iter().flatten();
    let names =
        all.filter_map(Value::as_object).map(|sysctl: &Object| sysctl.get("name").and_then(Value::as_str));
    let unsafe_ones: Vec<&str> =
        names.map(Option::unwrap_or_default).filter(|name| !SYSCTLS[..known].contains(name)).collect();
    if unsafe_ones.is_empty() {
        return None;
    }
    violation("forbidden sysctls", unsafe_ones.join(", "))
}
