//! Storage and groups of pods that are in use stay.

use async_trait::async_trait;
use concord_meta::Status;
use concord_registry::{Admission, Attributes, Object, Operation, metadata, metadata_mut};
use serde_json::Value;

/// The finalizers, by the group and the plural of what they protect.
const FINALIZERS: [(&str, &str, &str); 3] = [
    ("", "persistentvolumeclaims", "kubernetes.io/pvc-protection"),
    ("", "persistentvolumes", "kubernetes.io/pv-protection"),
    ("storage.k8s.io", "volumeattributesclasses", "kubernetes.io/vac-protection"),
];

/// Gives claims, volumes and classes of their attributes a finalizer. Whoever knows that they are not in use removes it.
#[derive(Debug, Clone, Copy)]
pub struct StorageObjectInUseProtection {
    classes: bool,
}

impl StorageObjectInUseProtection {
    /// `classes` says whether VolumeAttributesClasses are protected, too: the feature of that name.
    pub fn new(classes: bool) -> Self {
        Self { classes }
    }
}

#[async_trait]
impl Admission for StorageObjectInUseProtection {
    fn name(&self) -> &'static str {
        "StorageObjectInUseProtection"
    }

    async fn admit(&self, attributes: &Attributes<'_>, object: Option<&mut Object>) -> Result<(), Status> {
        let version = &attributes.resource.version;
        let about = (version.group.as_str(), attributes.resource.names.plural.as_str());
        let creates = attributes.operation == Operation::Create && attributes.subresource.is_empty();
        let finalizer =
            FINALIZERS.iter().find(|row| (row.0, row.1) == about && (self.classes || row.0.is_empty()));
        if let Some((object, (_, _, finalizer))) = object.filter(|_| creates).zip(finalizer) {
            protect(object, finalizer);
        }
        Ok(())
    }
}

/// Gives groups of pods a finalizer.
#[derive(Debug, Clone, Copy)]
pub struct PodGroupProtection;

const GROUP_FINALIZER: &str = "scheduling.k8s.io/podgroup-protection";

#[async_trait]
impl Admission for PodGroupProtection {
    fn name(&self) -> &'static str {
        "PodGroupProtection"
    }

    async fn admit(&self, attributes: &Attributes<'_>, object: Option<&mut Object>) -> Result<(), Status> {
        let (version, names) = (&attributes.resource.version, &attributes.resource.names);
        let is_group = version.group == "scheduling.k8s.io" && names.plural == "podgroups";
        let creates = attributes.operation == Operation::Create && attributes.subresource.is_empty();
        if let Some(object) = object.filter(|_| is_group && creates) {
            protect(object, GROUP_FINALIZER);
        }
        Ok(())
    }
}

fn protect(object: &mut Object, finalizer: &str) {
    if metadata(object).finalizers().contains(&finalizer) {
        return;
    }
    let finalizers = metadata_mut(object).entry("finalizers").or_insert_with(|| Value::Array(Vec::new()));
    if let Some(finalizers) = finalizers.as_array_mut() {
        finalizers.push(finalizer.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_finalizer_is_set_once() {
        let claim = json!({"metadata": {"finalizers": ["example.com/own"]}});
        let mut claim = claim.as_object().expect("an object").clone();
        for _ in 0..2 {
            protect(&mut claim, FINALIZERS[0].2);
            assert_eq!(metadata(&claim).finalizers(), ["example.com/own", "kubernetes.io/pvc-protection"]);
        }
    }
}
