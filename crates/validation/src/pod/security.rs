//! Security contexts of pods and containers.

use concord_meta::{field::BadValue, names};

use super::Pod;
use crate::{gates::Gate, internal, node::Node, rules::local_descending_path};

const PROFILE_TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
const LOCALHOST_PROFILE_BYTES: usize = 4095;
const CREDENTIAL_SPEC_KIB: usize = 64;
const DOMAIN_BYTES: usize = 256;
const USER_BYTES: usize = 104;
const SYSCTL_BYTES: usize = 253;
const SYSCTL_REGEX: &str = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// The security context of a container.
pub(super) fn security_context(context: Node<'_>, pod: &Pod<'_>) {
    if !context.is_set() {
        return;
    }
    context.get("runAsUser").id();
    context.get("runAsGroup").id();
    let proc_mount = context.get("procMount");
    if proc_mount.is_set() {
        proc_mount.one_of(&["Default", "Unmasked"]);
        if pod.uses_host_users() && proc_mount.text() == "Unmasked" {
            proc_mount.invalid(BadValue::named("Unmasked"), "`hostUsers` must be false to use `Unmasked`");
        }
    }
    seccomp_profile(context.get("seccompProfile"));
    if context.option("allowPrivilegeEscalation") == Some(false) {
        no_escalation(context);
    }
    windows_options(context.get("windowsOptions"));
    app_armor_profile(context.get("appArmorProfile"));
}

fn no_escalation(context: Node<'_>) {
    let refuse = |what: &str| {
        let shown = internal::shown("SecurityContext", context.value());
        context.invalid(shown, format!("cannot set `allowPrivilegeEscalation` to false and {what}"));
    };
    if context.flag("privileged") {
        refuse("`privileged` to true");
    }
    for capability in context.get2("capabilities", "add").list() {
        if capability == "CAP_SYS_ADMIN" {
            refuse("`capabilities.Add` CAP_SYS_ADMIN");
        }
    }
}

/// The security context of a pod; part of it stands in the pod's spec.
pub(super) fn pod_security_context(context: Node<'_>, pod: &Pod<'_>) {
    for name in ["fsGroup", "runAsUser", "runAsGroup"] {
        context.get(name).id();
    }
    context.get("supplementalGroups").items().for_each(Node::id);
    if pod.spec.flag("hostPID") && pod.spec.flag("shareProcessNamespace") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        context.child("shareProcessNamespace").invalid(true, detail);
    }
    sysctls(context.get("sysctls"), pod);
    context.get("fsGroupChangePolicy").optional_one_of(&["Always", "OnRootMismatch"]);
    seccomp_profile(context.get("seccompProfile"));
    windows_options(context.get("windowsOptions"));
    app_armor_profile(context.get("appArmorProfile"));
    context.get("supplementalGroupsPolicy").optional_one_of(&["Merge", "Strict"]);
    let policies: &[&str] = match pod.options.any_selinux_change_policy || context.gate(Gate::SELinuxMount) {
        true => &["MountOption", "Recursive"],
        false => &["Recursive"],
    };
    context.get("seLinuxChangePolicy").optional_one_of(policies);
}

fn sysctls(sysctls: Node<'_>, pod: &Pod<'_>) {
    let mut seen: Vec<&str> = Vec::new();
    for sysctl in sysctls.items() {
        let name = sysctl.get("name");
        let text = name.text();
        if text.is_empty() {
            name.required("");
        } else if !is_sysctl(text) {
            let detail =
                format!("must have at most {SYSCTL_BYTES} characters and match regex {SYSCTL_REGEX}");
            name.invalid(text, detail);
        } else if seen.contains(&text) {
            name.duplicate(text);
        }
        if !pod.options.host_sysctls {
            host_sysctl(name, pod.spec);
        }
        seen.push(text);
    }
}

/// A sysctl of a namespace that is the host's.
pub(super) fn host_sysctl(name: Node<'_>, spec: Node<'_>) {
    let text = name.text();
    match sysctl_namespace(text) {
        Some("Net") if spec.flag("hostNetwork") => {
            name.invalid(text, "may not be specified when 'hostNetwork' is true");
        }
        Some("IPC") if spec.flag("hostIPC") => {
            name.invalid(text, "may not be specified when 'hostIPC' is true")
        }
        _ => {}
    }
}

fn is_sysctl(name: &str) -> bool {
    let segment = |segment: &str| {
        let bytes = segment.as_bytes();
        let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let ends = [bytes.first(), bytes.last()];
        ends.into_iter().all(|end| end.is_some_and(alphanumeric))
            && bytes.iter().all(|b| alphanumeric(b) || b"-_".contains(b))
    };
    name.len() <= SYSCTL_BYTES && name.split(['.', '/']).all(segment)
}

/// Slashes separate like dots, where they come first.
fn sysctl_namespace(name: &str) -> Option<&'static str> {
    const IPC: &str = "kernel.sem kernel.shmall kernel.shmmax kernel.shmmni kernel.shm_rmid_forced kernel.shm \
        kernel.msgmax kernel.msgmnb kernel.msgmni kernel.msg";
    let first_slash = name.find(['.', '/']).is_some_and(|at| name.as_bytes()[at] == b'/');
    let swap = |c: char| match c {
        '/' => '.',
        '.' => '/',
        other => other,
    };
    let name: String = if first_slash { name.chars().map(swap).collect() } else { name.to_owned() };
    let name = name.split('*').next().unwrap_or_default();
    match name {
        name if name.starts_with("net.") => Some("Net"),
        name if name.starts_with("fs.mqueue.") || IPC.split_whitespace().any(|ipc| ipc == name) => {
            Some("IPC")
        }
        _ => None,
    }
}

fn seccomp_profile(profile: Node<'_>) {
    if !profile.is_set() {
        return;
    }
    let (kind, localhost) = (profile.get("type"), profile.get("localhostProfile"));
    match kind.text() {
        "" => kind.required("type is required when seccompProfile is set"),
        _ => kind.one_of(&PROFILE_TYPES),
    }
    match (kind.text(), localhost.is_set()) {
        ("Localhost", true) => local_descending_path(localhost, localhost.text()),
        ("Localhost", false) => localhost.required("must be set when seccomp type is Localhost"),
        (_, true) => {
            let shown = internal::shown("SeccompProfile", profile.value());
            localhost.invalid(shown, "can only be set when seccomp type is Localhost");
        }
        (_, false) => {}
    }
}

fn app_armor_profile(profile: Node<'_>) {
    const NEEDED: &str = "must be set when AppArmor type is Localhost";
    if !profile.is_set() {
        return;
    }
    let (kind, localhost) = (profile.get("type"), profile.get("localhostProfile"));
    match (kind.text(), localhost.text()) {
        ("Localhost", _) if !localhost.is_set() => localhost.required(NEEDED),
        ("Localhost", text) => {
            if text.trim() != text {
                localhost.invalid(text, "must not be padded with whitespace");
            } else if text.is_empty() {
                localhost.required(NEEDED);
            }
            if text.len() > LOCALHOST_PROFILE_BYTES {
                localhost.too_long(LOCALHOST_PROFILE_BYTES);
            }
        }
        ("RuntimeDefault" | "Unconfined", text) if localhost.is_set() => {
            localhost.invalid(BadValue::named(text), "can only be set when AppArmor type is Localhost");
        }
        ("RuntimeDefault" | "Unconfined", _) => {}
        ("", _) => kind.required("type is required when appArmorProfile is set"),
        _ => kind.one_of(&PROFILE_TYPES),
    }
}

fn windows_options(options: Node<'_>) {
    if !options.is_set() {
        return;
    }
    let name = options.get("gmsaCredentialSpecName");
    if name.is_set() {
        for problem in names::dns1123_subdomain(name.text()) {
            name.invalid(BadValue::named(name.text()), problem);
        }
    }
    let spec = options.get("gmsaCredentialSpec");
    if spec.is_set() {
        let shown = BadValue::named(spec.text());
        match spec.text().len() {
            0 => spec.invalid(shown, "gmsaCredentialSpec cannot be an empty string"),
            length if length > CREDENTIAL_SPEC_KIB * 1024 => {
                spec.invalid(
                    shown,
                    format!("gmsaCredentialSpec size must be under {CREDENTIAL_SPEC_KIB} KiB"),
                );
            }
            _ => {}
        }
    }
    let user = options.get("runAsUserName");
    if user.is_set() {
        for problem in user_name(user.text()) {
            user.invalid(BadValue::named(user.text()), problem);
        }
    }
}

fn user_name(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["runAsUserName cannot be an empty string".to_owned()];
    }
    if name.contains(|c: char| c.is_ascii_control()) {
        return vec!["runAsUserName cannot contain control characters".to_owned()];
    }
    let parts: Vec<&str> = name.split('\\').collect();
    let (domain, user) = match parts.as_slice() {
        [user] => (None, *user),
        [domain, user] => (Some(*domain), *user),
        _ => return vec!["runAsUserName cannot contain more than one backslash".to_owned()],
    };
    let mut problems = Vec::new();
    if domain.is_some_and(|domain| domain.len() >= DOMAIN_BYTES) {
        problems.push(format!("runAsUserName's Domain length must be under {DOMAIN_BYTES} characters"));
    }
    if domain.is_some_and(|domain| !is_net_bios(domain) && !is_windows_dns(domain)) {
        problems.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format".to_owned());
    }
    if user.is_empty() {
        problems.push("runAsUserName's User cannot be empty".to_owned());
    } else if user.len() > USER_BYTES {
        problems.push(format!("runAsUserName's User length must not be longer than {USER_BYTES} characters"));
    }
    if !user.is_empty() && user.bytes().all(|b| b == b'.' || b == b' ') {
        problems.push("runAsUserName's User cannot contain only periods or spaces".to_owned());
    }
    if user.contains(|c| "\"/\\:;|=,+*?<>@[]".contains(c)) {
        let problem = r#"runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]"#;
        problems.push(problem.to_owned());
    }
    problems
}

fn is_net_bios(domain: &str) -> bool {
    let bad = |c: char| "\\/:*?\"<>|".contains(c);
    (1..=15).contains(&domain.chars().count()) && !domain.starts_with('.') && !domain.contains(bad)
}

fn is_windows_dns(domain: &str) -> bool {
    domain.split('.').all(|label| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    })
}
