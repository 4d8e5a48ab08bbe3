//! What a disruption budget says about an eviction.

use concord_merge::apply::Time;
use concord_meta::{CauseType, GroupResource, Status, StatusCause, labels::LabelSelector};
use concord_registry::{Object, metadata};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::kinds::member;

/// How many pods may be on their way out before evictions wait for the controller to take notice of them.
const MOST_DISRUPTED: usize = 2000;

const FORBIDDEN: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
const ALLOWED: &str = "DisruptionAllowed";

/// Whether the budget is about the pod. One whose selector cannot be read is about none.
pub(super) fn selects(budget: &Object, pod: &Object) -> bool {
    let selector = budget.get("spec").and_then(|spec| spec.get("selector"));
    let selector = selector.and_then(|selector| LabelSelector::deserialize(selector).ok());
    let selector = selector.and_then(|selector| selector.to_selector().ok());
    selector.is_some_and(|selector| selector.matches(&metadata(pod).labels()))
}

/// Whether the pod can go without a disruption: it is not ready, so that nobody counts on it.
pub(super) fn is_free(budget: &Object, pod: &Object) -> bool {
    if is_ready(pod) {
        return false;
    }
    let policy = budget.get("spec").and_then(|spec| spec.get("unhealthyPodEvictionPolicy"));
    let (current, desired) = (number(budget, "currentHealthy"), number(budget, "desiredHealthy"));
    policy.and_then(Value::as_str) == Some("AlwaysAllow") || (current >= desired && desired > 0)
}

fn is_ready(pod: &Object) -> bool {
    let conditions = pod.get("status").and_then(|status| status.get("conditions")?.as_array());
    let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
    ready.is_some_and(|condition| condition["status"] == "True")
}

/// Takes one disruption from the budget for the pod of that name, if it has one left.
pub(super) fn spend(budget: &mut Object, pod: &str, now: Time) -> Result<(), Status> {
    let name = metadata(budget).name();
    if number(budget, "observedGeneration") < metadata(budget).generation() {
        return Err(not_yet(name));
    }
    let forbidden =
        |why| Err(Status::forbidden(&GroupResource::new("policy", "poddisruptionbudget"), name, why));
    let allowed = number(budget, "disruptionsAllowed");
    if allowed < 0 {
        return forbidden("pdb disruptions allowed is negative");
    }
    let disrupted = budget.get("status").and_then(|status| status.get("disruptedPods")?.as_object());
    if disrupted.is_some_and(|pods| pods.len() > MOST_DISRUPTED) {
        return forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    }
    if allowed == 0 {
        return Err(Status::too_many_requests(FORBIDDEN, 0).with_cause(cause(refusal(budget))));
    }
    let status = member(budget, "status");
    status.insert("disruptionsAllowed".to_owned(), (allowed - 1).into());
    if allowed == 1 {
        say_that_none_is_left(status, now);
    }
    member(status, "disruptedPods").insert(pod.to_owned(), now.to_string().into());
    Ok(())
}

/// The server is not done with the budget, or with the pod: it can be tried again soon.
pub(super) fn not_yet(budget: &str) -> Status {
    let why = format!("The disruption budget {budget} is still being processed by the server.");
    Status::too_many_requests(FORBIDDEN, 10).with_cause(cause(why))
}

fn cause(message: String) -> StatusCause {
    StatusCause { reason: CauseType::new("DisruptionBudget"), message, field: String::new() }
}

/// Why there is no disruption left.
fn refusal(budget: &Object) -> String {
    let name = metadata(budget).name();
    let conditions = budget.get("status").and_then(|status| status.get("conditions")?.as_array());
    let condition = conditions.into_iter().flatten().find(|condition| condition["type"] == ALLOWED);
    let text =
        |field: &str| condition.and_then(|condition| condition.get(field)?.as_str()).unwrap_or_default();
    let (reason, message) = (text("reason"), text("message"));
    let is_said = text("status") == "False" && !message.is_empty();
    // Where the controller failed, the numbers mean nothing.
    if is_said && reason == "SyncFailed" {
        return format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        );
    }
    let (current, desired) = (number(budget, "currentHealthy"), number(budget, "desiredHealthy"));
    if current <= desired {
        return format!(
            "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        );
    }
    let not_allowed = format!("The disruption budget {name} does not allow evicting pods currently");
    if is_said { format!("{not_allowed} ({reason}): {message}") } else { not_allowed }
}

fn say_that_none_is_left(status: &mut Object, now: Time) {
    let observed = status.get("observedGeneration").cloned();
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    let mut condition = json!({
        "type": ALLOWED, "status": "False", "reason": "InsufficientPods", "message": "",
        "lastTransitionTime": now.to_string(),
    });
    if let Some(observed) = observed {
        condition["observedGeneration"] = observed;
    }
    match conditions.iter_mut().find(|known| known["type"] == ALLOWED) {
        Some(known) => {
            if known["status"] == "False" {
                condition["lastTransitionTime"] = known["lastTransitionTime"].take();
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
}

fn number(budget: &Object, field: &str) -> i64 {
    budget.get("status").and_then(|status| status.get(field)?.as_i64()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Object {
        let Value::Object(object) = value else { panic!("not an object") };
        object
    }

    fn budget(status: Value) -> Object {
        let mut budget = object(json!({"metadata": {"name": "b", "generation": 2}, "spec": {}}));
        budget.insert("status".to_owned(), status);
        budget
    }

    #[test]
    fn a_disruption_is_taken_and_the_last_one_said_to_be() {
        let mut two = budget(json!({"observedGeneration": 2, "disruptionsAllowed": 2}));
        spend(&mut two, "p", Time { unix: 0 }).expect("two are left");
        assert_eq!(
            two["status"],
            json!({"observedGeneration": 2, "disruptionsAllowed": 1, "disruptedPods": {"p": "1970-01-01T00:00:00Z"}})
        );
        spend(&mut two, "q", Time { unix: 1 }).expect("one is left");
        let expected = json!({
            "observedGeneration": 2, "disruptionsAllowed": 0,
            "disruptedPods": {"p": "1970-01-01T00:00:00Z", "q": "1970-01-01T00:00:01Z"},
            "conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
                "observedGeneration": 2, "lastTransitionTime": "1970-01-01T00:00:01Z"}],
        });
        assert_eq!(two["status"], expected);
        assert_eq!(spend(&mut two, "r", Time { unix: 2 }).expect_err("none is left").code, 429);
        let mut said = budget(json!({"observedGeneration": 2, "disruptionsAllowed": 1, "conditions": [
            {"type": "DisruptionAllowed", "status": "True", "reason": "SufficientPods", "message": "",
             "lastTransitionTime": "2020-01-01T00:00:00Z"}]}));
        spend(&mut said, "p", Time { unix: 1 }).expect("one is left");
        assert_eq!(said["status"]["conditions"], expected["conditions"]);
    }

    #[test]
    fn why_a_budget_refuses() {
        let full: Object = (0..2001).map(|number| (number.to_string(), json!("t"))).collect();
        let said = |reason: &str| json!([{"type": "DisruptionAllowed", "status": "False", "reason": reason, "message": "no"}]);
        let forbidden = |why: &str| format!("poddisruptionbudget.policy \"b\" is forbidden: {why}");
        for (status, code, why) in [
            (json!({}), 429, "The disruption budget b is still being processed by the server.".to_owned()),
            (
                json!({"observedGeneration": 2, "disruptionsAllowed": -1}),
                403,
                forbidden("pdb disruptions allowed is negative"),
            ),
            (
                json!({"observedGeneration": 2, "disruptionsAllowed": 1, "disruptedPods": full}),
                403,
                forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller"),
            ),
            (
                json!({"observedGeneration": 2, "currentHealthy": 1, "desiredHealthy": 2, "conditions": said("X")}),
                429,
                "The disruption budget b needs 2 healthy pods and has 1 currently".to_owned(),
            ),
            (
                json!({"observedGeneration": 2, "conditions": said("SyncFailed")}),
                429,
                "The disruption budget b does not allow evicting pods currently because it failed sync: no"
                    .to_owned(),
            ),
            (
                json!({"observedGeneration": 2, "currentHealthy": 3, "desiredHealthy": 2, "conditions": said("X")}),
                429,
                "The disruption budget b does not allow evicting pods currently (X): no".to_owned(),
            ),
            (
                json!({"observedGeneration": 2, "currentHealthy": 3, "desiredHealthy": 2}),
                429,
                "The disruption budget b does not allow evicting pods currently".to_owned(),
            ),
        ] {
            let mut budget = budget(status);
            let before = budget.clone();
            let refused = spend(&mut budget, "p", Time { unix: 0 }).expect_err(&why);
            assert_eq!((refused.code, &before), (code, &budget));
            let causes = refused.details.as_ref().map(|details| details.causes.clone()).unwrap_or_default();
            let text = causes.first().map_or(&refused.message, |cause| &cause.message);
            assert_eq!(text, &why);
            let soon = why.contains("processed").then_some(10);
            assert_eq!(refused.retry_after_seconds(), soon, "{why}");
        }
    }

    #[test]
    fn what_is_not_ready_is_no_loss_where_enough_is() {
        let pod =
            |ready: &str| object(json!({"status": {"conditions": [{"type": "Ready", "status": ready}]}}));
        for (policy, current, desired, free) in [
            (None, 2, 2, true),
            (None, 1, 2, false),
            (None, 0, 0, false),
            (Some("IfHealthyBudget"), 1, 2, false),
            (Some("AlwaysAllow"), 0, 2, true),
        ] {
            let mut budget = budget(json!({"currentHealthy": current, "desiredHealthy": desired}));
            if let Some(policy) = policy {
                budget["spec"]["unhealthyPodEvictionPolicy"] = policy.into();
            }
            assert_eq!(is_free(&budget, &pod("False")), free, "{policy:?} {current} of {desired}");
            assert_eq!(is_free(&budget, &Object::new()), free);
            assert!(!is_free(&budget, &pod("True")));
        }
    }

    #[test]
    fn a_budget_is_about_pods_with_its_labels() {
        let pod = object(json!({"metadata": {"labels": {"app": "a"}}}));
        for (selector, is) in [
            (json!({"matchLabels": {"app": "a"}}), true),
            (json!({}), true),
            (json!({"matchLabels": {"app": "b"}}), false),
            (json!({"matchExpressions": [{"key": "app", "operator": "Wrong"}]}), false),
        ] {
            let budget = object(json!({"spec": {"selector": selector}}));
            assert_eq!(selects(&budget, &pod), is, "{selector}");
        }
        assert!(!selects(&object(json!({"spec": {}})), &pod));
    }
}
