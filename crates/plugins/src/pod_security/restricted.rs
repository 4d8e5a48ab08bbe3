//! What a pod has to give up to be as safe as pods can be.

use serde_json::Value;

use super::{
    baseline::bad_profiles,
    check::{Container, Pod, Values, Violation, containers, plural, quoted, setters, violation},
};

/// The sources of volumes that are allowed.
const ALLOWED: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// All others, in upstream's order.
const FORBIDDEN: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

pub(super) fn escalation(pod: Pod<'_>) -> Option<Violation> {
    let may = |container: &Container<'_>| {
        container.security("allowPrivilegeEscalation") != Some(&Value::Bool(false))
    };
    let names: Vec<&str> = pod.containers().filter(may).map(Container::name).collect();
    if names.is_empty() {
        return None;
    }
    let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", containers(&names));
    violation("allowPrivilegeEscalation != false", detail)
}

pub(super) fn capabilities(pod: Pod<'_>) -> Option<Violation> {
    let (mut keeping, mut adding, mut added) = (Vec::new(), Vec::new(), Values::new());
    for container in pod.containers() {
        if !container.capabilities("drop").any(|name| name == "ALL") {
            keeping.push(container.name());
        }
        let more: Vec<&str> =
            container.capabilities("add").filter(|name| *name != "NET_BIND_SERVICE").collect();
        if !more.is_empty() {
            adding.push(container.name());
            added.extend(more);
        }
    }
    let mut details = Vec::new();
    if !keeping.is_empty() {
        details
            .push(format!(r#"{} must set securityContext.capabilities.drop=["ALL"]"#, containers(&keeping)));
    }
    if !adding.is_empty() {
        let (names, added) = (containers(&adding), quoted(added));
        details.push(format!("{names} must not include {added} in securityContext.capabilities.add"));
    }
    if details.is_empty() {
        return None;
    }
    violation("unrestricted capabilities", details.join("; "))
}

pub(super) fn volumes(pod: Pod<'_>) -> Option<Violation> {
    let (mut names, mut types) = (Vec::new(), Values::new());
    for volume in pod.list("volumes") {
        if !ALLOWED.iter().any(|source| volume.contains_key(*source)) {
            names.push(volume.get("name").and_then(Value::as_str).unwrap_or_default());
            let source = FORBIDDEN.into_iter().find(|source| volume.contains_key(*source));
            types.insert(source.unwrap_or("unknown"));
        }
    }
    if names.is_empty() {
        return None;
    }
    let (volumes, uses) = (plural("volume", "volumes", names.len()), plural("uses", "use", names.len()));
    let what = plural("restricted volume type", "restricted volume types", types.len());
    violation(
        "restricted volume types",
        format!("{volumes} {} {uses} {what} {}", quoted(names), quoted(types)),
    )
}

pub(super) fn non_root(pod: Pod<'_>) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    let of_pod = pod.security("runAsNonRoot").and_then(Value::as_bool);
    let said = |container: Container<'_>| container.security("runAsNonRoot").and_then(Value::as_bool);
    let with = |wanted: Option<bool>| -> Vec<&str> {
        pod.containers().filter(|container| said(*container) == wanted).map(Container::name).collect()
    };
    if let Some(setters) = setters(of_pod == Some(false), &with(Some(false))) {
        return violation(REASON, format!("{setters} must not set securityContext.runAsNonRoot=false"));
    }
    let silent = with(None);
    if of_pod == Some(true) || silent.is_empty() {
        return None;
    }
    violation(REASON, format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&silent)))
}

pub(super) fn user(pod: Pod<'_>) -> Option<Violation> {
    let is_root = |user: Option<&Value>| user.and_then(Value::as_i64) == Some(0);
    let roots = pod.containers().filter(|container| is_root(container.security("runAsUser")));
    let names: Vec<&str> = roots.map(Container::name).collect();
    let setters = setters(is_root(pod.security("runAsUser")), &names)?;
    violation("runAsUser=0", format!("{setters} must not set runAsUser=0"))
}

pub(super) fn seccomp(pod: Pod<'_>) -> Option<Violation> {
    const REASON: &str = "seccompProfile";
    let (of_pod, names, values) = bad_profiles(pod, "seccompProfile");
    if let Some(setters) = setters(of_pod, &names) {
        let detail =
            format!("{setters} must not set securityContext.seccompProfile.type to {}", quoted(values));
        return violation(REASON, detail);
    }
    let silent = pod.containers().filter(|container| container.security("seccompProfile").is_none());
    let silent: Vec<&str> = silent.map(Container::name).collect();
    if pod.security("seccompProfile").is_some() || silent.is_empty() {
        return None;
    }
    let names = containers(&silent);
    let detail = format!(
        r#"pod or {names} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost""#
    );
    violation(REASON, detail)
}
