use std::sync::Arc;

use async_trait::async_trait;
use concord_meta::{
    CauseType, Status, StatusCause,
    labels::LabelSelector,
    options::{DeleteOptions, ListOptions, Query, ReadAt},
};
use concord_registry::{
    Context, Invocation, Item, ListRequest, Object, ObjectName, Part, Registry, Resource, UpdateRequest,
    Virtual, metadata,
};
use concord_schema::Schema;
use serde::Deserialize as _;
use serde_json::Value;

use super::{Later, success};
use crate::kinds::member;

/// Deletes a pod, unless its disruption budget forbids it.
pub(super) struct Eviction {
    pub(super) schema: Arc<Schema>,
    pub(super) budgets: Later,
}

#[async_trait]
impl Virtual for Eviction {
    fn schema(&self) -> Arc<Schema> {
        self.schema.clone()
    }

    async fn create(&self, invocation: Invocation<'_>, body: Object) -> Result<Object, Status> {
        let Invocation { registry, context, name, resource } = invocation;
        let options =
            body.get("deleteOptions").map(DeleteOptions::from_body).transpose()?.unwrap_or_default();
        let storage = resource.storage().ok_or_else(Status::method_not_allowed)?;
        let pod = resource.object(&registry.get(storage, name, ReadAt::MostRecent).await?)?;
        if needs_a_budget(&pod)
            && let Some(budgets) = self.budgets.get()
        {
            spend(registry, context, budgets, name, &pod).await?;
        }
        registry.delete(context, resource, name, &options).await?;
        Ok(success())
    }
}

/// Pods that have ended, or are ending, cannot be disrupted any more.
fn needs_a_budget(pod: &Object) -> bool {
    let phase = pod.get("status").and_then(|status| status.get("phase")).and_then(Value::as_str);
    let over = ["Succeeded", "Failed", "Pending"].contains(&phase.unwrap_or_default());
    !over && !metadata(pod).is_terminating()
}

/// Takes one disruption from the budget of the pod.
async fn spend(
    registry: &Registry,
    context: &Context,
    budgets: &Resource,
    pod: ObjectName<'_>,
    object: &Object,
) -> Result<(), Status> {
    let Some(budget) = budget_of(registry, budgets, pod.namespace, object).await? else { return Ok(()) };
    let mut budget = budget;
    let name = metadata(&budget).name().to_owned();
    let status = member(&mut budget, "status");
    let allowed = status.get("disruptionsAllowed").and_then(Value::as_i64).unwrap_or_default();
    if allowed <= 0 {
        return Err(refusal(&name, status));
    }
    status.insert("disruptionsAllowed".to_owned(), (allowed - 1).into());
    member(status, "disruptedPods").insert(pod.name.to_owned(), context.now.to_string().into());
    if context.dry_run {
        return Ok(());
    }
    let request = UpdateRequest {
        name: ObjectName { namespace: pod.namespace, name: &name },
        part: Part::Sub("status"),
        object: budget,
    };
    registry.update(context, budgets, request).await?;
    Ok(())
}

/// The one budget that the pod falls under.
async fn budget_of(
    registry: &Registry,
    budgets: &Resource,
    namespace: &str,
    pod: &Object,
) -> Result<Option<Object>, Status> {
    let storage = budgets.storage().ok_or_else(Status::method_not_allowed)?;
    let options = ListOptions::from_query(Query::<&str>(&[]))?;
    let listing =
        registry.list(storage, ListRequest { namespace: Some(namespace), options: &options }).await?;
    let mut found = None;
    for entry in &listing.entries {
        let budget = budgets.object(&Item::from(entry))?;
        if !selects(&budget, pod) {
            continue;
        }
        if found.is_some() {
            return Err(Status::internal_error(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
        found = Some(budget);
    }
    Ok(found)
}

fn selects(budget: &Object, pod: &Object) -> bool {
    let selector = budget.get("spec").and_then(|spec| spec.get("selector"));
    let selector = selector.and_then(|selector| LabelSelector::deserialize(selector).ok());
    let selector = selector.and_then(|selector| selector.to_selector().ok());
    selector.is_some_and(|selector| selector.matches(&metadata(pod).labels()))
}

fn refusal(budget: &str, status: &Object) -> Status {
    let number = |name: &str| status.get(name).and_then(Value::as_i64).unwrap_or_default();
    let text = "Cannot evict pod as it would violate the pod's disruption budget.";
    let cause = StatusCause {
        reason: CauseType::new("DisruptionBudget"),
        message: format!(
            "The disruption budget {budget} needs {} healthy pods and has {} currently",
            number("desiredHealthy"),
            number("currentHealthy")
        ),
        field: String::new(),
    };
    Status::too_many_requests(text, 0).with_cause(cause)
}
