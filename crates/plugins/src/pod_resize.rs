use async_trait::async_trait;
use concord_meta::{CauseType, Quantity, QuantityFormat, Status, StatusCause};
use concord_registry::{Admission, Attributes, Object, Operation, metadata};
use serde_json::Value;

use crate::{
    Objects,
    amounts::{self, Amounts},
    at, concerns, forbidden,
};

/// Lets a pod that runs ask for more only as far as its node has it.
pub struct PodResizeValidator {
    nodes: Objects,
}

impl PodResizeValidator {
    /// On these nodes.
    pub fn new(nodes: Objects) -> Self {
        Self { nodes }
    }
}

#[async_trait]
impl Admission for PodResizeValidator {
    fn name(&self) -> &'static str {
        "PodResizeValidator"
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Object>) -> Result<(), Status> {
        let concerned =
            attributes.operation == Operation::Update && concerns(attributes, "", "pods", "resize");
        let Some((pod, old)) = object.filter(|_| concerned).zip(attributes.old) else { return Ok(()) };
        let name = at(pod, &["spec", "nodeName"]).and_then(Value::as_str).unwrap_or_default();
        if name.is_empty() || metadata(pod).generation() == metadata(old).generation() {
            return Ok(());
        }
        let Some(node) = self.nodes.find(name).await? else {
            return Err(forbidden(attributes, &format!("node {name:?} not found")));
        };
        let system = metadata(&node).labels().and_then(|labels| labels.get("kubernetes.io/os")?.as_str());
        if let Some(system) = system.filter(|system| *system != "linux") {
            let why = format!("pod resize is only supported on linux nodes, node {name:?} is {system:?}");
            return Err(refused(attributes, &why, "UnsupportedPlatform"));
        }
        let allocatable = amounts::amounts(at(&node, &["status", "allocatable"]));
        match lacking(&amounts::of_pod(pod, "requests"), &allocatable) {
            None => Ok(()),
            Some(what) => {
                let why = format!("node didn't have enough allocatable resources: {what}");
                Err(refused(attributes, &why, "NodeCapacity"))
            }
        }
    }
}

fn refused(attributes: &Attributes<'_>, why: &str, cause: &'static str) -> Status {
    let mut status = forbidden(attributes, why);
    if let Some(details) = &mut status.details {
        let reason = CauseType::new(cause);
        details.causes.push(StatusCause { reason, message: String::new(), field: String::new() });
    }
    status
}

/// What is asked for and not there.
fn lacking(requests: &Amounts, allocatable: &Amounts) -> Option<String> {
    let amount = |list: &Amounts, name: &str| {
        list.get(name).cloned().unwrap_or_else(|| Quantity::new(0, QuantityFormat::DecimalSi))
    };
    let mut lacking = Vec::new();
    for (name, shown) in [("cpu", Quantity::milli_value as fn(&Quantity) -> i64), ("memory", Quantity::value)]
    {
        let (asked, there) = (amount(requests, name), amount(allocatable, name));
        if asked > there {
            lacking.push(format!("{name}, requested: {}, allocatable: {}", shown(&asked), shown(&there)));
        }
    }
    (!lacking.is_empty()).then(|| lacking.join("; "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_node_does_not_have_is_told_in_upstreams_words() {
        let list = |value: Value| amounts::amounts(Some(&value));
        let node = list(json!({"cpu": "2", "memory": "1Gi"}));
        assert_eq!(lacking(&list(json!({"cpu": "2"})), &node), None);
        assert_eq!(
            lacking(&list(json!({"cpu": "2500m", "memory": "2Gi"})), &node).as_deref(),
            Some(
                "cpu, requested: 2500, allocatable: 2000; memory, requested: 2147483648, allocatable: 1073741824"
            )
        );
    }
}
