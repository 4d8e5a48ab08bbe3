use async_trait::async_trait;
use concord_meta::Status;
use concord_registry::{Admission, Attributes, Object, Operation};
use serde_json::{Value, json};

use crate::{concerns, member};

/// The taints of nodes that are lost, which pods bear for a while.
const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
/// For how many seconds, by default.
const SECONDS: i64 = 300;

/// Lets pods stay for five minutes on a node that is not ready or cannot be reached, unless they say what they bear.
#[derive(Debug, Default)]
pub struct DefaultTolerationSeconds;

#[async_trait]
impl Admission for DefaultTolerationSeconds {
    fn name(&self) -> &'static str {
        "DefaultTolerationSeconds"
    }

    async fn admit(&self, attributes: &Attributes<'_>, object: Option<&mut Object>) -> Result<(), Status> {
        let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
        let pod = object.filter(|_| writes && concerns(attributes, "", "pods", ""));
        if let Some(spec) = pod.and_then(|pod| member(pod, "spec")) {
            tolerate(spec);
        }
        Ok(())
    }
}

fn tolerate(spec: &mut Object) {
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    if tolerations.is_null() {
        *tolerations = json!([]);
    }
    let Some(tolerations) = tolerations.as_array_mut() else { return };
    for taint in TAINTS {
        if !tolerations.iter().any(|toleration| is_borne(toleration, taint)) {
            let operator = "Exists";
            tolerations.push(json!({
                "key": taint, "operator": operator, "effect": "NoExecute", "tolerationSeconds": SECONDS,
            }));
        }
    }
}

/// Whether a toleration is about a taint that makes pods leave. A key or an effect that is not given is any.
fn is_borne(toleration: &Value, taint: &str) -> bool {
    let is = |name: &str, wanted: &str| {
        toleration.get(name).and_then(Value::as_str).is_none_or(|value| value.is_empty() || value == wanted)
    };
    is("key", taint) && is("effect", "NoExecute")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_bear_lost_nodes_for_five_minutes_unless_they_say_otherwise() {
        let added = |taint: &str| json!({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
        let any = json!({"operator": "Exists"});
        let other = json!({"key": "a", "effect": "NoExecute"});
        let own = json!({"key": TAINTS[0], "effect": "NoExecute", "tolerationSeconds": 1});
        for (given, wanted) in [
            (json!({}), json!([added(TAINTS[0]), added(TAINTS[1])])),
            (json!({"tolerations": null}), json!([added(TAINTS[0]), added(TAINTS[1])])),
            (json!({"tolerations": [any]}), json!([any])),
            (json!({"tolerations": [other]}), json!([other, added(TAINTS[0]), added(TAINTS[1])])),
            (json!({"tolerations": [own]}), json!([own, added(TAINTS[1])])),
        ] {
            let mut spec = given.as_object().expect("an object").clone();
            tolerate(&mut spec);
            assert_eq!(spec["tolerations"], wanted, "{given}");
        }
    }
}
