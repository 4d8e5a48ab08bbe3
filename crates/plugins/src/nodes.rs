use async_trait::async_trait;
use concord_meta::Status;
use concord_registry::{Admission, Attributes, Object, Operation};
use serde_json::json;

use crate::{concerns, member};

/// Keeps pods off a node until somebody has seen that it is ready.
#[derive(Debug, Default)]
pub struct TaintNodesByCondition;

#[async_trait]
impl Admission for TaintNodesByCondition {
    fn name(&self) -> &'static str {
        "TaintNodesByCondition"
    }

    async fn admit(&self, attributes: &Attributes<'_>, object: Option<&mut Object>) -> Result<(), Status> {
        let concerned = attributes.operation == Operation::Create && concerns(attributes, "", "nodes", "");
        if let Some(spec) = object.filter(|_| concerned).and_then(|node| member(node, "spec")) {
            taint(spec);
        }
        Ok(())
    }
}

fn taint(spec: &mut Object) {
    let (key, effect) = ("node.kubernetes.io/not-ready", "NoSchedule");
    let taints = spec.entry("taints").or_insert_with(|| json!([]));
    if taints.is_null() {
        *taints = json!([]);
    }
    let Some(taints) = taints.as_array_mut() else { return };
    if !taints.iter().any(|taint| taint["key"] == key && taint["effect"] == effect) {
        taints.push(json!({"key": key, "effect": effect}));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_node_is_not_ready() {
        let taint_of = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
        for (given, wanted) in [
            (json!({}), json!([taint_of])),
            (json!({"taints": [taint_of]}), json!([taint_of])),
            (
                json!({"taints": [{"key": "a", "effect": "b"}]}),
                json!([{"key": "a", "effect": "b"}, taint_of]),
            ),
        ] {
            let mut spec = given.as_object().expect("an object").clone();
            taint(&mut spec);
            assert_eq!(spec["taints"], wanted);
        }
    }
}
