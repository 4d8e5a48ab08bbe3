//! Small plugins that operators turn on to forbid or force something.

use std::collections::BTreeSet;

use async_trait::async_trait;
use concord_meta::{Status, field};
use concord_registry::{Admission, Attributes, Object, Operation};
use serde_json::Value;

use crate::{at, concerns, forbidden};

const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Has the images of all pods pulled, so that whoever uses one is somebody who may. Not on by default.
#[derive(Debug, Default)]
pub struct AlwaysPullImages;

#[async_trait]
impl Admission for AlwaysPullImages {
    fn name(&self) -> &'static str {
        "AlwaysPullImages"
    }

    async fn admit(&self, attributes: &Attributes<'_>, object: Option<&mut Object>) -> Result<(), Status> {
        let Some(pod) = object.filter(|pod| runs_images(attributes, pod)) else { return Ok(()) };
        let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return Ok(()) };
        for list in LISTS {
            let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
            for container in containers.filter_map(Value::as_object_mut) {
                container.insert("imagePullPolicy".to_owned(), "Always".into());
            }
        }
        let volumes = spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten();
        for image in volumes.filter_map(|volume| volume.get_mut("image")?.as_object_mut()) {
            image.insert("pullPolicy".to_owned(), "Always".into());
        }
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Object>) -> Result<(), Status> {
        let Some(pod) = object.filter(|pod| runs_images(attributes, pod)) else { return Ok(()) };
        let spec = field::Path::new("spec");
        for list in LISTS {
            let containers = at(pod, &["spec", list]).and_then(Value::as_array).into_iter().flatten();
            for (index, container) in containers.enumerate() {
                let policy = container["imagePullPolicy"].as_str().unwrap_or_default();
                if policy != "Always" {
                    let path = spec.child(list).index(index).child("imagePullPolicy");
                    let error = field::Error::not_supported(&path, policy, &["Always"]);
                    return Err(forbidden(attributes, &error.to_string()));
                }
            }
        }
        Ok(())
    }
}

/// A new pod, or one that is to run an image that it did not run before.
fn runs_images(attributes: &Attributes<'_>, pod: &Object) -> bool {
    if !concerns(attributes, "", "pods", "") {
        return false;
    }
    match (attributes.operation, attributes.old) {
        (Operation::Create, _) => true,
        (Operation::Update, Some(old)) => !images(pod).is_subset(&images(old)),
        _ => false,
    }
}

fn images(pod: &Object) -> BTreeSet<&str> {
    let lists = LISTS.into_iter().filter_map(|list| at(pod, &["spec", list])?.as_array());
    lists.flatten().map(|container| container["image"].as_str().unwrap_or_default()).collect()
}

/// Lets no Service have external addresses that it did not have before. Not on by default.
#[derive(Debug, Default)]
pub struct DenyServiceExternalIPs;

#[async_trait]
impl Admission for DenyServiceExternalIPs {
    fn name(&self) -> &'static str {
        "DenyServiceExternalIPs"
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Object>) -> Result<(), Status> {
        let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
        let Some(service) = object.filter(|_| writes && concerns(attributes, "", "services", "")) else {
            return Ok(());
        };
        let addresses = |service: &'_ Object| -> BTreeSet<String> {
            let list = at(service, &["spec", "externalIPs"]).and_then(Value::as_array).into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let before = attributes.old.map(addresses).unwrap_or_default();
        match addresses(service).is_subset(&before) {
            true => Ok(()),
            false => Err(forbidden(attributes, "Use of external IPs is denied by admission control")),
        }
    }
}

/// Refuses everything. Not on by default.
#[derive(Debug, Default)]
pub struct AlwaysDeny;

#[async_trait]
impl Admission for AlwaysDeny {
    fn name(&self) -> &'static str {
        "AlwaysDeny"
    }

    async fn validate(&self, attributes: &Attributes<'_>, _object: Option<&Object>) -> Result<(), Status> {
        Err(forbidden(attributes, "admission control is denying all modifications"))
    }
}
