//! What is to be decided about a definition, and told in its status.

use concord_merge::apply::Time;
use concord_registry::Object;
use concord_structural::crd;
use serde_json::{Value, json};

use crate::{
    conditions::{Condition, remove, set},
    definition::{Names, holds},
    names::Conflict,
};

/// The names that a definition asks for, and those that it has.
pub(crate) fn names(definition: &Object) -> (Names, Names) {
    let names = |part: &str, field: &str| {
        Names::of(definition.get(part).and_then(|part| part.get(field)).unwrap_or(&Value::Null))
    };
    (names("spec", "names"), names("status", "acceptedNames"))
}

/// Whether a definition has its names and says so. Its schemas are not looked at.
pub(crate) fn is_settled(definition: &Object) -> bool {
    let (wanted, accepted) = names(definition);
    wanted == accepted
        && holds(definition, "Established")
        && holds(definition, "NamesAccepted")
        && approval(definition).is_none_or(|condition| condition.is_in(definition))
}

/// Tells a definition which names it got and what is to be said of it. False if it says all that already.
pub(crate) fn tell(definition: &mut Object, given: &Names, conflict: Option<Conflict>, now: Time) -> bool {
    let (_, accepted) = names(definition);
    let accepted_all = of_names(conflict);
    let established =
        (!holds(definition, "Established")).then(|| established(definition, accepted_all.holds));
    let mut conditions = vec![accepted_all];
    conditions.extend(established);
    conditions.extend(approval(definition));
    let violations = crd::non_structural(definition);
    let status = definition.entry("status").or_insert_with(|| json!({}));
    status["acceptedNames"] = given.value();
    let mut changed = *given != accepted;
    for condition in conditions {
        changed |= set(status, condition, now);
    }
    changed |= match violations {
        Some(message) => {
            let name = "NonStructuralSchema";
            set(status, Condition { name, holds: true, reason: "Violations", message }, now)
        }
        None => remove(status, "NonStructuralSchema"),
    };
    changed
}

/// Whether all names were accepted.
fn of_names(conflict: Option<Conflict>) -> Condition {
    let holds = conflict.is_none();
    let (reason, message) = conflict.unwrap_or(("NoConflicts", "no conflicts found".to_owned()));
    Condition { name: "NamesAccepted", holds, reason, message }
}

/// Whether a definition is established now. What is stays so.
fn established(definition: &Object, accepted: bool) -> Condition {
    let (holds, reason, message) = match accepted {
        false => (false, "NotAccepted", "not all names are accepted"),
        true if crd::has_invalid_ca_bundle(definition) => {
            (false, "InvalidCABundle", "The conversion webhook CABundle is invalid")
        }
        true => (true, "InitialNamesAccepted", "the initial names have been accepted"),
    };
    Condition { name: "Established", holds, reason, message: message.to_owned() }
}

fn approval(definition: &Object) -> Option<Condition> {
    let crd::Approval { is_approved, reason, message } = crd::approval(definition)?;
    Some(Condition { name: "KubernetesAPIApprovalPolicyConformant", holds: is_approved, reason, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(schema: &Value) -> Object {
        let object = json!({
            "metadata": {"annotations": {"api-approved.kubernetes.io": "unapproved"}},
            "spec": {
                "group": "x.k8s.io", "names": {"plural": "foos", "kind": "Foo"},
                "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}],
            },
        });
        object.as_object().expect("an object").clone()
    }

    fn told(definition: &Object) -> Vec<String> {
        let conditions = definition["status"]["conditions"].as_array().expect("conditions");
        let text = |condition: &Value| {
            let of = |name: &str| condition[name].as_str().unwrap_or_default().to_owned();
            [of("type"), of("status"), of("reason"), of("message")].join("|")
        };
        conditions.iter().map(text).collect()
    }

    #[test]
    fn a_definition_is_told_all_there_is_to_say() {
        let mut definition = definition(&json!({"properties": {"a": {"type": "string"}}}));
        let (wanted, _) = names(&definition);
        assert!(!is_settled(&definition));
        assert!(tell(&mut definition, &wanted, None, Time { unix: 0 }));
        let violation =
            "spec.versions[0].schema.openAPIV3Schema.type: Required value: must not be empty at the root";
        assert_eq!(
            told(&definition),
            [
                "NamesAccepted|True|NoConflicts|no conflicts found",
                "Established|True|InitialNamesAccepted|the initial names have been accepted",
                "KubernetesAPIApprovalPolicyConformant|False|UnapprovedAnnotation|not approved: \"unapproved\"",
                &format!("NonStructuralSchema|True|Violations|{violation}"),
            ]
        );
        assert!(is_settled(&definition));
        assert!(!tell(&mut definition, &wanted, None, Time { unix: 9 }), "nothing new");

        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["type"] = json!("object");
        assert!(tell(&mut definition, &wanted, None, Time { unix: 9 }));
        assert_eq!(told(&definition).len(), 3, "the schema is structural now");
    }

    #[test]
    fn a_definition_whose_webhook_nobody_can_trust_is_not_established_until_it_is_mended() {
        let mut definition = definition(&json!({"type": "object"}));
        let config = json!({"url": "https://example.com", "caBundle": "Y2Fj"});
        definition["spec"]["conversion"] =
            json!({"strategy": "Webhook", "webhook": {"clientConfig": config}});
        let (wanted, _) = names(&definition);
        assert!(tell(&mut definition, &wanted, None, Time { unix: 0 }));
        let refused = "Established|False|InvalidCABundle|The conversion webhook CABundle is invalid";
        assert_eq!(told(&definition)[1], refused);
        assert!(!is_settled(&definition));
        assert!(!tell(&mut definition, &wanted, None, Time { unix: 9 }), "nothing new");

        definition["spec"]["conversion"] = json!({"strategy": "None"});
        assert!(tell(&mut definition, &wanted, None, Time { unix: 9 }));
        assert!(told(&definition)[1].starts_with("Established|True|InitialNamesAccepted|"));
    }
}
