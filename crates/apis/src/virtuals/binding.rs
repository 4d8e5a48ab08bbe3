use std::sync::Arc;

use async_trait::async_trait;
use concord_builtins::FeatureGates;
use concord_merge::apply::Time;
use concord_meta::{GroupResource, Status, field};
use concord_registry::{Invocation, Object, ObjectName, Storage, Virtual, metadata, metadata_mut};
use concord_schema::Schema;
use serde_json::Value;

use super::{Later, success};
use crate::kinds::{member, set_pod_condition};

/// Says on which node a pod runs, once and for all.
pub(super) struct Binding {
    pub(super) schema: Arc<Schema>,
    pub(super) pods: Later,
    pub(super) features: Arc<FeatureGates>,
}

#[async_trait]
impl Virtual for Binding {
    fn schema(&self) -> Arc<Schema> {
        self.schema.clone()
    }

    async fn create(&self, invocation: Invocation<'_>, mut body: Object) -> Result<Object, Status> {
        let Invocation { registry, context, name, resource } = invocation;
        // Bindings that are not posted to their pod say themselves which one it is, and only that.
        if resource.storage().is_none() {
            metadata_mut(&mut body).remove("uid");
        } else if metadata(&body).name() != name.name {
            return Err(Status::bad_request("name in URL does not match name in Binding object"));
        }
        let errors = errors(&body);
        if !errors.is_empty() {
            // As upstream has it: an error without a reason, and the server's.
            return Err(Status::untyped(field::aggregate(&errors)));
        }
        let pods = self.pods.get().ok_or_else(Status::method_not_allowed)?;
        let storage = pods.storage().ok_or_else(Status::method_not_allowed)?;
        let name = ObjectName { name: metadata(&body).name(), ..name };
        let assignment = Assignment { binding: &body, name, now: context.now, features: &self.features };
        // What the pod says about its node is nobody else's to change, so nobody is asked about the pod.
        let assign = |pod: &mut Object| {
            assignment.check_preconditions(storage, pod)?;
            assignment.carry_out(pod)
        };
        registry.amend(context, pods, name, &assign).await?;
        Ok(success())
    }
}

/// What a binding does to its pod.
struct Assignment<'a> {
    binding: &'a Object,
    name: ObjectName<'a>,
    now: Time,
    features: &'a FeatureGates,
}

impl Assignment<'_> {
    /// The uid and the resource version of a binding are those that the pod must have.
    fn check_preconditions(&self, storage: &Storage, pod: &Object) -> Result<(), Status> {
        let (must, is) = (metadata(self.binding), metadata(pod));
        let key = storage.key(self.name);
        let key = String::from_utf8_lossy(&key);
        let (resource, name) = (&storage.resource, self.name.name);
        if !["", is.uid()].contains(&must.uid()) {
            return Err(Status::update_uid_mismatch(resource, name, &key, must.uid(), is.uid()));
        }
        let (required, actual) = (must.resource_version(), is.resource_version());
        if !["", actual].contains(&required) {
            return Err(Status::update_resource_version_mismatch(resource, name, &key, required, actual));
        }
        Ok(())
    }

    fn carry_out(&self, pod: &mut Object) -> Result<(), Status> {
        if let Some(why) = self.refusal(pod) {
            let resource = GroupResource::new("", "pods/binding");
            return Err(Status::conflict(&resource, self.name.name, why));
        }
        member(pod, "spec").insert("nodeName".to_owned(), target(self.binding, "name").into());
        if self.features.enabled("ClearingNominatedNodeNameAfterBinding") {
            member(pod, "status").remove("nominatedNodeName");
        }
        self.lay_over(pod, "annotations");
        if self.features.enabled("PodTopologyLabelsAdmission") {
            self.lay_over(pod, "labels");
        }
        set_pod_condition(pod, self.now, &[("type", "PodScheduled"), ("status", "True")]);
        Ok(())
    }

    /// Why the pod cannot be assigned to a node.
    fn refusal(&self, pod: &Object) -> Option<String> {
        let name = self.name.name;
        if metadata(pod).is_terminating() {
            return Some(format!("pod {name} is being deleted, cannot be assigned to a host"));
        }
        let spec = |field: &str| pod.get("spec").and_then(|spec| spec.get(field));
        let node = spec("nodeName").and_then(Value::as_str).unwrap_or_default();
        if !node.is_empty() {
            let node = concord_meta::go::quote(node);
            return Some(format!("pod {name} is already assigned to node {node}"));
        }
        let gates = spec("schedulingGates").and_then(Value::as_array);
        let gated = gates.is_some_and(|gates| !gates.is_empty());
        gated.then(|| format!("pod {name} has non-empty .spec.schedulingGates"))
    }

    /// What the binding says about the pod counts more than what the pod says.
    fn lay_over(&self, pod: &mut Object, field: &str) {
        let given = metadata(self.binding).get(field).and_then(Value::as_object).cloned().unwrap_or_default();
        if !given.is_empty() {
            member(metadata_mut(pod), field).extend(given);
        }
    }
}

fn target<'a>(binding: &'a Object, field: &str) -> &'a str {
    binding.get("target").and_then(|target| target.get(field)?.as_str()).unwrap_or_default()
}

fn errors(binding: &Object) -> Vec<field::Error> {
    let path = field::Path::new("target");
    let (kind, node) = (target(binding, "kind"), target(binding, "name"));
    let mut errors = Vec::new();
    if !["", "Node"].contains(&kind) {
        errors.push(field::Error::not_supported(&path.child("kind"), kind, &["Node", "<empty>"]));
    }
    if node.is_empty() {
        errors.push(field::Error::required(&path.child("name"), ""));
    }
    errors
}

#[cfg(test)]
mod tests {
    use concord_builtins::Release;
    use serde_json::json;

    use super::*;

    fn object(value: &Value) -> Object {
        value.as_object().expect("an object").clone()
    }

    fn bind(release: &str, pod: &Value) -> Result<Value, Status> {
        let binding = object(&json!({
            "metadata": {"name": "p", "labels": {"zone": "b"}, "annotations": {"a": "2", "b": "2"}},
            "target": {"name": "n"},
        }));
        let release: Release = release.parse().expect("a release");
        let features = FeatureGates::of(release);
        let name = ObjectName { namespace: "ns", name: "p" };
        let assignment = Assignment { binding: &binding, name, now: Time { unix: 0 }, features: &features };
        let mut pod = object(pod);
        assignment.carry_out(&mut pod)?;
        Ok(Value::Object(pod))
    }

    #[test]
    fn a_pod_comes_to_its_node() {
        let pod = json!({
            "metadata": {"labels": {"zone": "a"}, "annotations": {"a": "1", "c": "1"}},
            "spec": {"schedulerName": "s"},
            "status": {"nominatedNodeName": "other", "conditions": [{"type": "PodScheduled", "status": "False",
                "reason": "Unschedulable", "lastTransitionTime": "2020-01-01T00:00:00Z"}]},
        });
        let bound = json!({
            "metadata": {"labels": {"zone": "b"}, "annotations": {"a": "2", "b": "2", "c": "1"}},
            "spec": {"schedulerName": "s", "nodeName": "n"},
            "status": {"conditions": [{"type": "PodScheduled", "status": "True", "lastProbeTime": null,
                "lastTransitionTime": "1970-01-01T00:00:00Z"}]},
        });
        assert_eq!(bind("1.36", &pod).expect("bound"), bound);
        let mut older = bound;
        older["metadata"]["labels"]["zone"] = "a".into();
        older["status"]["nominatedNodeName"] = "other".into();
        assert_eq!(bind("1.33", &pod).expect("bound"), older);
    }

    #[test]
    fn only_a_pod_that_waits_for_a_node_gets_one() {
        for (pod, why) in [
            (
                json!({"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}),
                "pod p is being deleted, cannot be assigned to a host",
            ),
            (json!({"spec": {"nodeName": "m"}}), "pod p is already assigned to node \"m\""),
            (
                json!({"spec": {"schedulingGates": [{"name": "g"}]}}),
                "pod p has non-empty .spec.schedulingGates",
            ),
        ] {
            let refused = bind("1.36", &pod).expect_err(why);
            assert_eq!(refused.code, 409);
            assert_eq!(
                refused.message,
                format!("Operation cannot be fulfilled on pods/binding \"p\": {why}")
            );
        }
    }

    #[test]
    fn a_binding_names_a_node() {
        let texts = |binding: &Value| field::aggregate(&errors(&object(binding)));
        assert_eq!(texts(&json!({"target": {"kind": "Node", "name": "n"}})), "");
        assert_eq!(
            texts(&json!({"target": {"kind": "Pod"}})),
            "[target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\", target.name: Required value]"
        );
    }
}
