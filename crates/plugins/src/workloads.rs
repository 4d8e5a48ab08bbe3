//! Groups of pods are made for workloads that exist.

use async_trait::async_trait;
use concord_meta::Status;
use concord_registry::{Admission, Attributes, Object, Operation, metadata};
use serde_json::Value;

use crate::{Objects, at, concerns, forbidden};

/// Refuses new groups of pods whose template no workload has.
pub struct PodGroupWorkloadExists {
    workloads: Objects,
}

impl PodGroupWorkloadExists {
    /// Among these workloads.
    pub fn new(workloads: Objects) -> Self {
        Self { workloads }
    }
}

#[async_trait]
impl Admission for PodGroupWorkloadExists {
    fn name(&self) -> &'static str {
        "PodGroupWorkloadExists"
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Object>) -> Result<(), Status> {
        let creates = attributes.operation == Operation::Create;
        let concerned = creates && concerns(attributes, "scheduling.k8s.io", "podgroups", "");
        let reference = object.filter(|_| concerned);
        let reference = reference.and_then(|group| at(group, &["spec", "podGroupTemplateRef", "workload"]));
        let Some(reference) = reference else { return Ok(()) };
        let text = |name: &str| reference.get(name).and_then(Value::as_str).unwrap_or_default();
        let (name, template) = (text("workloadName"), text("podGroupTemplateName"));
        let workload = self.workloads.find_in(attributes.namespace, name).await?;
        match complaint(workload.as_ref(), name, template) {
            Some(why) => Err(forbidden(attributes, &format!("PodGroup rejected: {why}"))),
            None => Ok(()),
        }
    }
}

fn complaint(workload: Option<&Object>, name: &str, template: &str) -> Option<String> {
    let Some(workload) = workload else { return Some(format!("Workload {name:?} not found")) };
    if metadata(workload).get("deletionTimestamp").is_some() {
        return Some(format!("Workload {name:?} is being deleted"));
    }
    let templates = at(workload, &["spec", "podGroupTemplates"]).and_then(Value::as_array);
    let found = templates.into_iter().flatten().any(|known| known["name"] == template);
    (!found).then(|| format!("PodGroupTemplate {template:?} not found in Workload {name:?}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_group_has_a_template() {
        let workload = |metadata: Value| {
            let spec = json!({"podGroupTemplates": [{"name": "a"}]});
            Object::from_iter([("metadata".to_owned(), metadata), ("spec".to_owned(), spec)])
        };
        let (there, leaving) = (workload(json!({})), workload(json!({"deletionTimestamp": "now"})));
        for (workload, template, expected) in [
            (Some(&there), "a", None),
            (Some(&there), "b", Some("PodGroupTemplate \"b\" not found in Workload \"w\"")),
            (Some(&leaving), "a", Some("Workload \"w\" is being deleted")),
            (None, "a", Some("Workload \"w\" not found")),
        ] {
            assert_eq!(complaint(workload, "w", template).as_deref(), expected);
        }
    }
}
