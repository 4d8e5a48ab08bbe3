//! What a pod needs that is in the API. Pods that a node makes by itself cannot: nobody decided that it may see that.

use concord_registry::Object;
use serde_json::Value;

use crate::at;

/// Sources of volumes, with what they need; nothing needs nothing.
const VOLUMES: [(&str, &str); 29] = [
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ("azureFile", "secrets (via azureFile volumes)"),
    ("awsElasticBlockStore", ""),
    ("azureDisk", ""),
    ("cephfs", ""),
    ("cinder", ""),
    ("downwardAPI", ""),
    ("emptyDir", ""),
    ("fc", ""),
    ("flexVolume", ""),
    ("flocker", ""),
    ("gcePersistentDisk", ""),
    ("gitRepo", ""),
    ("hostPath", ""),
    ("image", ""),
    ("iscsi", ""),
    ("nfs", ""),
    ("photonPersistentDisk", ""),
    ("portworxVolume", ""),
    ("quobyte", ""),
    ("rbd", ""),
    ("scaleIO", ""),
    ("storageos", ""),
    ("vsphereVolume", ""),
];
const PROJECTED: [(&str, &str); 6] = [
    ("configMap", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
    ("downwardAPI", ""),
];

/// The first thing in the API that a pod refers to, in upstream's words.
pub(super) fn reference(pod: &Object) -> Option<String> {
    let list = |name: &str| at(pod, &["spec", name]).and_then(Value::as_array).into_iter().flatten();
    if at(pod, &["spec", "serviceAccountName"]).is_some_and(|name| name != "") {
        return Some("serviceaccounts".to_owned());
    }
    let volumes = || list("volumes");
    if list("imagePullSecrets").next().is_some() || reads(pod, "secret") || volumes().any(has_secret) {
        return Some("secrets".to_owned());
    }
    let projects = |volume: &Value| sources(volume).any(|source| source["configMap"].is_object());
    if reads(pod, "configMap") || volumes().any(|volume| volume["configMap"].is_object() || projects(volume))
    {
        return Some("configmaps".to_owned());
    }
    if list("resourceClaims").next().is_some() {
        return Some("resourceclaims".to_owned());
    }
    volumes().find_map(of_volume)
}

/// Whether a container takes part of its environment from an object of a kind.
fn reads(pod: &Object, what: &str) -> bool {
    let lists = ["initContainers", "containers", "ephemeralContainers"].into_iter();
    let containers = lists.filter_map(|list| at(pod, &["spec", list])?.as_array()).flatten();
    let items = |container: &'_ Value, list: &str| container[list].as_array().cloned().unwrap_or_default();
    containers.into_iter().any(|container| {
        items(container, "envFrom").iter().any(|from| from[format!("{what}Ref")].is_object())
            || items(container, "env").iter().any(|env| env["valueFrom"][format!("{what}KeyRef")].is_object())
    })
}

fn sources(volume: &Value) -> impl Iterator<Item = &Value> {
    volume["projected"]["sources"].as_array().into_iter().flatten()
}

fn has_secret(volume: &Value) -> bool {
    let by_reference = ["cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"];
    volume["secret"].is_object()
        || volume["azureFile"].is_object()
        || volume["csi"]["nodePublishSecretRef"].is_object()
        || by_reference.iter().any(|kind| volume[*kind]["secretRef"].is_object())
        || sources(volume).any(|source| source["secret"].is_object())
}

fn of_volume(volume: &Value) -> Option<String> {
    let found = |table: &[(&str, &'static str)], value: &Value| {
        table.iter().find(|(name, _)| value[*name].is_object()).map(|(_, what)| *what)
    };
    if volume["projected"].is_object() {
        let needed =
            sources(volume).map(|source| found(&PROJECTED, source).unwrap_or("unknown projected volumes"));
        return needed.filter(|what| !what.is_empty()).map(str::to_owned).next();
    }
    let what = found(&VOLUMES, volume).unwrap_or("unknown volumes");
    Some(what.to_owned()).filter(|what| !what.is_empty())
}
