use async_trait::async_trait;
use concord_meta::{Quantity, Status};
use concord_registry::{Admission, Attributes, Object, Operation, metadata};
use serde_json::Value;

use crate::{Objects, at, concerns, forbidden};

/// Lets claims grow only where their storage class can make volumes grow.
pub struct PersistentVolumeClaimResize {
    classes: Objects,
}

impl PersistentVolumeClaimResize {
    /// Among these storage classes.
    pub fn new(classes: Objects) -> Self {
        Self { classes }
    }

    async fn can_grow(&self, new: &Object, old: &Object) -> Result<bool, Status> {
        let name = class(new);
        if name.is_empty() || name != class(old) {
            return Ok(false);
        }
        let class = self.classes.find(name).await?;
        Ok(class.is_some_and(|class| class.get("allowVolumeExpansion") == Some(&Value::Bool(true))))
    }
}

#[async_trait]
impl Admission for PersistentVolumeClaimResize {
    fn name(&self) -> &'static str {
        "PersistentVolumeClaimResize"
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Object>) -> Result<(), Status> {
        let concerned = attributes.operation == Operation::Update
            && concerns(attributes, "", "persistentvolumeclaims", "");
        let (Some(new), Some(old)) = (object.filter(|_| concerned), attributes.old) else { return Ok(()) };
        if size(new) <= size(old) {
            return Ok(());
        }
        if at(old, &["status", "phase"]).and_then(Value::as_str) != Some("Bound") {
            return Err(forbidden(attributes, "Only bound persistent volume claims can be expanded"));
        }
        match self.can_grow(new, old).await? {
            true => Ok(()),
            false => Err(forbidden(
                attributes,
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
                 support resize",
            )),
        }
    }
}

fn size(claim: &Object) -> Option<Quantity> {
    at(claim, &["spec", "resources", "requests", "storage"])?.as_str()?.parse().ok()
}

/// The class of a claim, by the annotation of old or by the field.
fn class(claim: &Object) -> &str {
    let annotations = metadata(claim).get("annotations");
    let old = annotations.and_then(|all| all.get("volume.beta.kubernetes.io/storage-class")?.as_str());
    let field = || at(claim, &["spec", "storageClassName"]).and_then(Value::as_str);
    old.or_else(field).unwrap_or_default()
}
