use std::sync::Arc;

use async_trait::async_trait;
use concord_codec::{FieldValidation, PatchType};
use concord_meta::{GroupKind, Status, field, options::ReadAt};
use concord_registry::{Invocation, Object, Part, PatchRequest, Virtual, metadata};
use concord_schema::Schema;
use serde_json::{Value, json};

use super::success;

/// How often an assignment is tried while others change the pod.
const ATTEMPTS: usize = 10;

/// Says on which node a pod runs, once and for all.
pub(super) struct Binding(pub(super) Arc<Schema>);

#[async_trait]
impl Virtual for Binding {
    fn schema(&self) -> Arc<Schema> {
        self.0.clone()
    }

    async fn create(&self, invocation: Invocation<'_>, body: Object) -> Result<Object, Status> {
        let target = |name: &str| body.get("target").and_then(|target| target.get(name)?.as_str());
        let node = target("name").unwrap_or_default();
        let errors = errors(target("kind").unwrap_or_default(), node);
        if !errors.is_empty() {
            return Err(Status::invalid(&GroupKind::new("", "Binding"), metadata(&body).name(), &errors));
        }
        for _ in 1..ATTEMPTS {
            match assign(invocation, node, &body).await {
                Err(status) if status.code == 409 && !is_assigned(&status) => {}
                outcome => return outcome,
            }
        }
        assign(invocation, node, &body).await
    }
}

const ASSIGNED: &str = "is already assigned to node";

fn is_assigned(status: &Status) -> bool {
    status.message.contains(ASSIGNED)
}

/// Assigns the pod if it is not assigned, as of the state that was read. It gets the labels and annotations of the binding.
async fn assign(invocation: Invocation<'_>, node: &str, binding: &Object) -> Result<Object, Status> {
    let Invocation { registry, context, name, resource } = invocation;
    let storage = resource.storage().ok_or_else(Status::method_not_allowed)?;
    let pod = resource.object(&registry.get(storage, name, ReadAt::MostRecent).await?)?;
    let conflict = |why: String| Err(Status::conflict(&resource.group_resource(), name.name, why));
    if metadata(&pod).is_terminating() {
        return conflict(format!("pod {} is being deleted, cannot be assigned to a host", name.name));
    }
    let assigned = pod.get("spec").and_then(|spec| spec.get("nodeName")).and_then(Value::as_str);
    if let Some(other) = assigned.filter(|other| !other.is_empty()) {
        return conflict(format!("pod {} {ASSIGNED} \"{other}\"", name.name));
    }
    let gates = pod.get("spec").and_then(|spec| spec.get("schedulingGates")?.as_array());
    if gates.is_some_and(|gates| !gates.is_empty()) {
        return conflict(format!("pod {} has non-empty .spec.schedulingGates", name.name));
    }
    let version = metadata(&pod).resource_version();
    let mut patch = json!({"metadata": {"resourceVersion": version}, "spec": {"nodeName": node}});
    for field in ["labels", "annotations"] {
        if let Some(given) = metadata(binding).get(field) {
            patch["metadata"][field] = given.clone();
        }
    }
    let patch = patch.to_string();
    let request = PatchRequest {
        name,
        part: Part::Main,
        patch_type: PatchType::Merge,
        body: patch.as_bytes(),
        force: false,
        validation: FieldValidation::Ignore,
    };
    registry.patch(context, resource, request).await?;
    Ok(success())
}

fn errors(kind: &str, node: &str) -> Vec<field::Error> {
    let path = field::Path::new("target");
    let mut errors = Vec::new();
    if !["", "Node"].contains(&kind) {
        errors.push(field::Error::not_supported(&path.child("kind"), kind, &["Node", "<empty>"]));
    }
    if node.is_empty() {
        errors.push(field::Error::required(&path.child("name"), ""));
    }
    errors
}
