//! Pods, beyond what their table says.

use serde_json::{Value, json};

use super::{same_first, text};
use crate::Object;

/// Where ancient clients kept init containers. Such annotations are never stored, lest somebody believe them.
const INIT_CONTAINER_ANNOTATIONS: [&str; 4] = [
    "pod.alpha.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.beta.kubernetes.io/init-containers",
];

/// Of a pod or the template of one.
pub(super) fn drop_init_container_annotations(pod: &mut Object) {
    let Some(Value::Object(metadata)) = pod.get_mut("metadata") else { return };
    let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else { return };
    for name in INIT_CONTAINER_ANNOTATIONS {
        annotations.remove(name);
    }
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
}

/// A volume that does not say what it is, is an empty directory: all other fields of a volume are its source.
pub(super) fn empty_dir(volume: &mut Object) {
    if !volume.iter().any(|(name, value)| name != "name" && !value.is_null()) {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
}

/// A negative time to end is a second. Templates of pods keep theirs.
pub(super) fn positive_grace_period(pod: &mut Object) {
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return };
    if let Some(period) = spec.get_mut("terminationGracePeriodSeconds")
        && period.as_i64().is_some_and(|seconds| seconds < 0)
    {
        *period = 1.into();
    }
}

/// `serviceAccount` is the old name of `serviceAccountName`. Objects have both; the new one wins.
pub(super) fn service_account_alias(spec: &mut Object) {
    let (old, new) = (text(spec, "serviceAccount"), text(spec, "serviceAccountName"));
    if old == new {
        return;
    }
    if new.is_empty() {
        let name = Value::from(old);
        spec.insert("serviceAccountName".to_owned(), name);
    } else {
        let name = Value::from(new);
        spec.insert("serviceAccount".to_owned(), name);
    }
}

/// `podIP` is the first of `podIPs`, and says what they are where they differ.
pub(super) fn pod_ips(status: &mut Object) {
    same_first(status, "podIP", "podIPs", |item| item.get("ip")?.as_str(), |ip| json!({"ip": ip}));
}
