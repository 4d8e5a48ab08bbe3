//! The classes of claims and ingresses that name none.

use async_trait::async_trait;
use concord_meta::Status;
use concord_registry::{Admission, Attributes, Object, Operation, metadata};
use serde_json::Value;

use crate::{Objects, at, concerns, member};

const CLASS_OF_CLAIM: &str = "volume.beta.kubernetes.io/storage-class";
const CLASS_OF_INGRESS: &str = "kubernetes.io/ingress.class";
const DEFAULT_STORAGE: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
const DEFAULT_INGRESS: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];

/// Gives claims that name no storage class the one that is marked as the default.
pub struct DefaultStorageClass {
    classes: Objects,
}

impl DefaultStorageClass {
    /// Among these storage classes.
    pub fn new(classes: Objects) -> Self {
        Self { classes }
    }
}

#[async_trait]
impl Admission for DefaultStorageClass {
    fn name(&self) -> &'static str {
        "DefaultStorageClass"
    }

    async fn admit(&self, attributes: &Attributes<'_>, object: Option<&mut Object>) -> Result<(), Status> {
        let concerned = attributes.operation == Operation::Create
            && concerns(attributes, "", "persistentvolumeclaims", "");
        let Some(claim) = object.filter(|_| concerned) else { return Ok(()) };
        if at(claim, &["spec", "storageClassName"]).is_none() && annotation(claim, CLASS_OF_CLAIM).is_none() {
            set(claim, "storageClassName", default(&self.classes, &DEFAULT_STORAGE)?);
        }
        Ok(())
    }
}

/// Gives ingresses that name no class the one that is marked as the default.
pub struct DefaultIngressClass {
    classes: Objects,
}

impl DefaultIngressClass {
    /// Among these ingress classes.
    pub fn new(classes: Objects) -> Self {
        Self { classes }
    }
}

#[async_trait]
impl Admission for DefaultIngressClass {
    fn name(&self) -> &'static str {
        "DefaultIngressClass"
    }

    async fn admit(&self, attributes: &Attributes<'_>, object: Option<&mut Object>) -> Result<(), Status> {
        let concerned = attributes.operation == Operation::Create
            && concerns(attributes, "networking.k8s.io", "ingresses", "");
        let Some(ingress) = object.filter(|_| concerned) else { return Ok(()) };
        if at(ingress, &["spec", "ingressClassName"]).is_none()
            && annotation(ingress, CLASS_OF_INGRESS).is_none()
        {
            set(ingress, "ingressClassName", default(&self.classes, &DEFAULT_INGRESS)?);
        }
        Ok(())
    }
}

fn annotation<'a>(object: &'a Object, name: &str) -> Option<&'a str> {
    metadata(object).get("annotations").and_then(|annotations| annotations.get(name)?.as_str())
}

fn set(object: &mut Object, field: &str, class: Option<String>) {
    if let (Some(class), Some(spec)) = (class, member(object, "spec")) {
        spec.insert(field.to_owned(), Value::String(class));
    }
}

/// The class that is marked as the default. Of several it is the one that was made last, then the first by name.
fn default(classes: &Objects, marks: &[&str]) -> Result<Option<String>, Status> {
    let marked = classes.with(None, b"is-default-class")?;
    Ok(newest(marked.iter().filter(|class| marks.iter().any(|mark| annotation(class, mark) == Some("true")))))
}

fn newest<'a>(classes: impl Iterator<Item = &'a Object>) -> Option<String> {
    let made = |class: &Object| metadata(class).text("creationTimestamp").to_owned();
    let order = |one: &&Object, other: &&Object| {
        let by_name = || metadata(other).name().cmp(metadata(one).name());
        made(one).cmp(&made(other)).then_with(by_name)
    };
    classes.max_by(order).map(|class| metadata(class).name().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_class_that_was_made_last_is_the_default() {
        let class = |name: &str, made: &str| {
            let class = json!({"metadata": {"name": name, "creationTimestamp": made}});
            class.as_object().expect("an object").clone()
        };
        let classes = [
            class("b", "2026-01-01T00:00:00Z"),
            class("d", "2026-01-02T00:00:00Z"),
            class("c", "2026-01-02T00:00:00Z"),
        ];
        assert_eq!(newest(classes.iter()).as_deref(), Some("c"));
        assert_eq!(newest([].into_iter()), None);
    }
}
