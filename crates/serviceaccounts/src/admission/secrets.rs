//! Which secrets a pod refers to, and whether it may.

use std::collections::BTreeSet;

use concord_registry::{Object, metadata};
use serde_json::Value;

/// Where volumes refer to secrets.
const IN_VOLUMES: [&[&str]; 9] = [
    &["azureFile", "secretName"],
    &["cephfs", "secretRef"],
    &["csi", "nodePublishSecretRef"],
    &["flexVolume", "secretRef"],
    &["iscsi", "secretRef"],
    &["rbd", "secretRef"],
    &["scaleIO", "secretRef"],
    &["secret"],
    &["storageos", "secretRef"],
];

const CONTAINERS: [(&str, &str); 2] = [("initContainers", "init container"), ("containers", "container")];
const EPHEMERAL: (&str, &str) = ("ephemeralContainers", "ephemeral container");

/// The items of a list in the spec of a pod.
fn list<'a>(pod: &'a Object, name: &str) -> impl Iterator<Item = &'a Value> {
    pod.get("spec").and_then(|spec| spec.get(name)?.as_array()).into_iter().flatten()
}

fn items<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, name| value.get(*name)).filter(|value| !value.is_null())
}

/// Pods of a kubelet may refer to nothing that the server would have to give out for them.
pub(super) fn check_mirror(pod: &Object) -> Result<(), &'static str> {
    if !super::account_name(pod).is_empty() {
        return Err("a mirror pod may not reference service accounts");
    }
    if refers_to_secrets(pod) {
        return Err("a mirror pod may not reference secrets");
    }
    let mut sources = list(pod, "volumes").flat_map(|volume| items(&volume["projected"], "sources"));
    if sources.any(|source| at(source, &["serviceAccountToken"]).is_some()) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections");
    }
    Ok(())
}

fn refers_to_secrets(pod: &Object) -> bool {
    let in_container = |container: &Value| {
        items(container, "env").any(|variable| at(variable, &["valueFrom", "secretKeyRef"]).is_some())
            || items(container, "envFrom").any(|source| at(source, &["secretRef"]).is_some())
    };
    let in_volume = |volume: &Value| {
        IN_VOLUMES.iter().any(|path| at(volume, path).is_some())
            || items(&volume["projected"], "sources").any(|source| at(source, &["secret"]).is_some())
    };
    let kinds = CONTAINERS.into_iter().chain([EPHEMERAL]);
    list(pod, "imagePullSecrets").next().is_some()
        || kinds.flat_map(|(name, _)| list(pod, name)).any(in_container)
        || list(pod, "volumes").any(in_volume)
}

fn names<'a>(account: &'a Object, member: &str) -> BTreeSet<&'a str> {
    let references = account.get(member).and_then(Value::as_array).into_iter().flatten();
    references.map(|reference| text(reference, "name")).collect()
}

/// Whether the pod refers only to secrets that its account refers to.
pub(super) fn check(account: &Object, pod: &Object) -> Result<(), String> {
    let (allowed, name) = (names(account, "secrets"), metadata(account).name());
    for volume in list(pod, "volumes") {
        let Some(secret) = at(volume, &["secret"]).map(|secret| text(secret, "secretName")) else { continue };
        if !allowed.contains(secret) {
            return Err(format!(
                "volume with secret.secretName=\"{secret}\" is not allowed because service account {name} does not \
                 reference that secret"
            ));
        }
    }
    check_containers(account, pod, &CONTAINERS)?;
    let allowed = names(account, "imagePullSecrets");
    for (index, reference) in list(pod, "imagePullSecrets").enumerate() {
        let secret = text(reference, "name");
        if !allowed.contains(secret) {
            return Err(format!(
                "imagePullSecrets[{index}].name=\"{secret}\" is not allowed because service account {name} does not \
                 reference that imagePullSecret"
            ));
        }
    }
    Ok(())
}

/// The same for the containers that can be added to a pod that runs.
pub(super) fn check_ephemeral(account: &Object, pod: &Object) -> Result<(), String> {
    check_containers(account, pod, &[EPHEMERAL])
}

fn check_containers(account: &Object, pod: &Object, kinds: &[(&str, &str)]) -> Result<(), String> {
    let (allowed, name) = (names(account, "secrets"), metadata(account).name());
    let refuse = |container: &str, source: &str, secret: &str| {
        Err(format!(
            "{container} with {source} referencing secret.secretName=\"{secret}\" is not allowed because service \
             account {name} does not reference that secret"
        ))
    };
    for (member, what) in kinds {
        for container in list(pod, member) {
            let called = format!("{what} {}", text(container, "name"));
            for variable in items(container, "env") {
                let reference = at(variable, &["valueFrom", "secretKeyRef"]);
                let secret = reference.map(|reference| text(reference, "name"));
                if let Some(secret) = secret.filter(|secret| !allowed.contains(secret)) {
                    return refuse(&called, &format!("envVar {}", text(variable, "name")), secret);
                }
            }
            for source in items(container, "envFrom") {
                let secret = at(source, &["secretRef"]).map(|reference| text(reference, "name"));
                if let Some(secret) = secret.filter(|secret| !allowed.contains(secret)) {
                    return refuse(&called, "envFrom", secret);
                }
            }
        }
    }
    Ok(())
}
