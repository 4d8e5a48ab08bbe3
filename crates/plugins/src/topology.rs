use async_trait::async_trait;
use concord_meta::Status;
use concord_registry::{Admission, Attributes, Object, Operation, metadata, metadata_mut};
use serde_json::Value;

use crate::{Objects, at, concerns, member};

/// What pods are told about where they run.
const LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// Gives pods the labels of their node that say where it is, when they are bound to it.
pub struct PodTopologyLabels {
    nodes: Objects,
}

impl PodTopologyLabels {
    /// Those of these nodes.
    pub fn new(nodes: Objects) -> Self {
        Self { nodes }
    }
}

#[async_trait]
impl Admission for PodTopologyLabels {
    fn name(&self) -> &'static str {
        "PodTopologyLabels"
    }

    async fn admit(&self, attributes: &Attributes<'_>, object: Option<&mut Object>) -> Result<(), Status> {
        let Some(object) = object.filter(|_| attributes.operation == Operation::Create) else {
            return Ok(());
        };
        let text = |path: &[&str]| at(object, path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let node = if concerns(attributes, "", "pods", "") {
            text(&["spec", "nodeName"])
        } else if concerns(attributes, "", "pods", "binding") && text(&["target", "kind"]) == "Node" {
            text(&["target", "name"])
        } else {
            return Ok(());
        };
        if node.is_empty() {
            return Ok(());
        }
        if let Some(node) = self.nodes.mentioning(&node, b"topology.kubernetes.io/").await? {
            copy(object, &node);
        }
        Ok(())
    }
}

fn copy(object: &mut Object, node: &Object) {
    let labels = metadata(node).labels().into_iter().flatten();
    let wanted: Vec<_> = labels.filter(|(name, _)| LABELS.contains(&name.as_str())).collect();
    if wanted.is_empty() {
        return;
    }
    if let Some(own) = member(metadata_mut(object), "labels") {
        own.extend(wanted.into_iter().map(|(name, value)| (name.clone(), value.clone())));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_learns_where_its_node_is() {
        let object = |value: Value| value.as_object().expect("an object").clone();
        let node = object(json!({"metadata": {"labels": {"topology.kubernetes.io/zone": "z", "a": "b"}}}));
        let mut pod =
            object(json!({"metadata": {"labels": {"topology.kubernetes.io/zone": "mine", "own": "c"}}}));
        copy(&mut pod, &node);
        assert_eq!(pod["metadata"]["labels"], json!({"topology.kubernetes.io/zone": "z", "own": "c"}));
    }
}
