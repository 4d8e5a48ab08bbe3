mod budget;

use std::sync::Arc;

use async_trait::async_trait;
use concord_meta::{
    GroupKind, Reason, Status, field,
    options::{DeleteOptions, ListOptions, Preconditions, Query, ReadAt},
};
use concord_registry::{
    Context, Invocation, Item, ListRequest, Object, ObjectName, Part, Resource, Virtual, metadata,
};
use concord_schema::Schema;
use serde_json::{Value, json};

use super::{Later, success};
use crate::kinds::set_pod_condition;

/// How often a pod is looked at again that changes while it is being evicted, as upstream.
const ATTEMPTS: usize = 20;

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
        let options = options(&body, invocation.name.name, &invocation.context.options)?;
        let under_way = UnderWay { invocation, options, budgets: self.budgets.get().map(AsRef::as_ref) };
        under_way.evict().await?;
        Ok(success())
    }
}

/// How the pod is to be deleted. A dry run can be asked for in the request and in the eviction.
fn options(eviction: &Object, name: &str, request: &Object) -> Result<DeleteOptions, Status> {
    if metadata(eviction).name() != name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let mut given = eviction.get("deleteOptions").cloned().unwrap_or_else(|| json!({}));
    let ignores = "ignoreStoreReadErrorWithClusterBreakingPotential";
    if given.get(ignores) == Some(&Value::Bool(true)) {
        let why = "can not be set for pod eviction, try after removing the option";
        let error = field::Error::invalid(&field::Path::new("deleteOptions").child(ignores), true, why);
        return Err(Status::invalid(&GroupKind::new("policy", "Eviction"), name, &[error]));
    }
    let own = given.as_object_mut().and_then(|given| given.remove("dryRun"));
    let (own, asked) = (texts(own.as_ref()), texts(request.get("dryRun")));
    if !own.is_empty() && !asked.is_empty() && own != asked {
        let (asked, own) = (asked.join(" "), own.join(" "));
        let why = format!("Non-matching dry-run options in request and content: [{asked}] and [{own}]");
        return Err(Status::untyped(why));
    }
    let options = DeleteOptions::from_body(&given)?;
    Ok(DeleteOptions { dry_run: !own.is_empty() || !asked.is_empty(), ..options })
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

/// One eviction.
struct UnderWay<'a> {
    invocation: Invocation<'a>,
    options: DeleteOptions,
    budgets: Option<&'a Resource>,
}

impl UnderWay<'_> {
    async fn evict(&self) -> Result<(), Status> {
        let Invocation { registry, name, resource, .. } = self.invocation;
        let storage = resource.storage().ok_or_else(Status::method_not_allowed)?;
        let mut attempts = 1..ATTEMPTS;
        loop {
            let pod = resource.object(&registry.get(storage, name, ReadAt::MostRecent).await?)?;
            if needs_a_budget(&pod) {
                return self.within_budget(&pod).await;
            }
            // One that has not begun to run may do so in the meantime, and then it needs a budget.
            let deleted = match may_become_ready(&pod) {
                true => self.delete(&self.only_in_this_state(&pod)).await,
                false => self.delete(&self.options).await,
            };
            match deleted {
                // Whoever says which state of the pod is meant wants to know that it is another one.
                Err(status)
                    if is_conflict(&status) && !self.is_about_a_version() && attempts.next().is_some() => {}
                outcome => return outcome,
            }
        }
    }

    async fn within_budget(&self, pod: &Object) -> Result<(), Status> {
        let Some(resource) = self.budgets else { return self.delete(&self.options).await };
        let budgets = self.budgets_of(resource, pod).await?;
        let budget = match budgets.as_slice() {
            [] => return self.delete(&self.options).await,
            [budget] => budget,
            _ => {
                return Err(Status::untyped(
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
                ));
            }
        };
        if budget::is_free(budget, pod) {
            // Whatever version the client asked for: as upstream.
            let mut options = self.options.clone();
            options.preconditions.resource_version = Some(metadata(pod).resource_version().to_owned());
            let outcome = self.delete(&options).await;
            return outcome.map_err(|status| match is_conflict(&status) && !self.is_about_a_version() {
                true => budget::not_yet(metadata(budget).name()),
                false => status,
            });
        }
        self.spend(resource, budget).await?;
        self.delete(&self.options).await
    }

    /// Takes one disruption from the budget of the pod, in the name of the server: whoever evicts need not be allowed to.
    async fn spend(&self, budgets: &Resource, budget: &Object) -> Result<(), Status> {
        let Invocation { registry, context, name, .. } = self.invocation;
        let spend = |budget: &mut Object| budget::spend(budget, name.name, context.now);
        if self.options.dry_run {
            return spend(&mut budget.clone());
        }
        let server = Context::of_the_server(context.now);
        let budget = ObjectName { name: metadata(budget).name(), ..name };
        registry.revise(&server, budgets, (budget, Part::Sub("status")), &spend).await?;
        Ok(())
    }

    /// The budgets that the pod falls under.
    async fn budgets_of(&self, budgets: &Resource, pod: &Object) -> Result<Vec<Object>, Status> {
        let Invocation { registry, name, .. } = self.invocation;
        let storage = budgets.storage().ok_or_else(Status::method_not_allowed)?;
        let options = ListOptions::from_query(Query::<&str>(&[]))?;
        let request = ListRequest { namespace: Some(name.namespace), options: &options };
        let listing = registry.list(storage, request).await?;
        let all = listing.entries.iter().map(|entry| budgets.object(&Item::from(entry)));
        all.filter(|budget| budget.as_ref().map_or(true, |budget| budget::selects(budget, pod))).collect()
    }

    /// Deletes the pod, which says why before it goes.
    async fn delete(&self, options: &DeleteOptions) -> Result<(), Status> {
        let Invocation { registry, context, name, resource } = self.invocation;
        let mut options = options.clone();
        if !options.dry_run {
            let mark = |pod: &mut Object| {
                check(&options.preconditions, pod)?;
                set_pod_condition(pod, context.now, &CONDITION);
                Ok(())
            };
            let marked = registry.amend(context, resource, name, &mark).await?;
            let version = marked.revision.map(|revision| revision.to_string());
            options.preconditions.resource_version = options.preconditions.resource_version.and(version);
        }
        registry.delete_admitted(context, resource, name, &options).await?;
        Ok(())
    }

    fn is_about_a_version(&self) -> bool {
        self.options.preconditions.resource_version.is_some()
    }

    /// The options, for this state of the pod alone; if they name another one, that counts.
    fn only_in_this_state(&self, pod: &Object) -> DeleteOptions {
        let mut options = self.options.clone();
        let version = metadata(pod).resource_version().to_owned();
        options.preconditions.resource_version.get_or_insert(version);
        options
    }
}

/// What is said about a pod that is being evicted.
const CONDITION: [(&str, &str); 4] = [
    ("type", "DisruptionTarget"),
    ("status", "True"),
    ("reason", "EvictionByEvictionAPI"),
    ("message", "Eviction API: evicting"),
];

fn check(must: &Preconditions, pod: &Object) -> Result<(), Status> {
    let (is, kind) = (metadata(pod), GroupKind::new("", "Pod"));
    let differs = |required: &Option<String>, actual: &str| -> Option<String> {
        required.clone().filter(|required| !required.is_empty() && required != actual)
    };
    if let Some(uid) = differs(&must.uid, is.uid()) {
        return Err(Status::delete_uid_mismatch(&kind, is.name(), &uid, is.uid()));
    }
    let actual = is.resource_version();
    match differs(&must.resource_version, actual) {
        Some(version) => Err(Status::delete_resource_version_mismatch(&kind, is.name(), &version, actual)),
        None => Ok(()),
    }
}

fn is_conflict(status: &Status) -> bool {
    status.reason == Reason::CONFLICT
}

fn phase(pod: &Object) -> &str {
    pod.get("status").and_then(|status| status.get("phase")).and_then(Value::as_str).unwrap_or_default()
}

/// Pods that have ended, or are ending, cannot be disrupted any more.
fn needs_a_budget(pod: &Object) -> bool {
    may_become_ready(pod) && phase(pod) != "Pending"
}

fn may_become_ready(pod: &Object) -> bool {
    !["Succeeded", "Failed"].contains(&phase(pod)) && !metadata(pod).is_terminating()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: &Value) -> Object {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn options_come_from_the_eviction_and_the_request() {
        let read = |of: Value, request: Value| {
            let eviction = object(&json!({"metadata": {"name": "p"}, "deleteOptions": of}));
            options(&eviction, "p", &object(&request)).map_err(|status| (status.code, status.message))
        };
        let plain = read(json!({"gracePeriodSeconds": 3}), json!({})).expect("good");
        assert_eq!((plain.grace_period_seconds, plain.dry_run), (Some(3), false));
        for (own, asked) in
            [(json!(["All"]), json!([])), (json!([]), json!(["All"])), (json!(["All"]), json!(["All"]))]
        {
            assert!(read(json!({"dryRun": own}), json!({"dryRun": asked})).expect("good").dry_run);
        }
        let differ = "Non-matching dry-run options in request and content: [All] and [All All]";
        let both = read(json!({"dryRun": ["All", "All"]}), json!({"dryRun": ["All"]}));
        assert_eq!(both, Err((500, differ.to_owned())));
        let ignores = read(json!({"ignoreStoreReadErrorWithClusterBreakingPotential": true}), json!({}));
        assert_eq!(ignores.map_err(|(code, _)| code), Err(422));
        let other = options(&object(&json!({"metadata": {"name": "q"}})), "p", &Object::new());
        assert_eq!(
            other.expect_err("another pod").message,
            "name in URL does not match name in Eviction object"
        );
    }

    #[test]
    fn a_budget_is_for_pods_that_run() {
        for (phase, needs, may) in [
            ("Running", true, true),
            ("Unknown", true, true),
            ("Pending", false, true),
            ("Failed", false, false),
            ("Succeeded", false, false),
        ] {
            let pod = object(&json!({"status": {"phase": phase}}));
            assert_eq!((needs_a_budget(&pod), may_become_ready(&pod)), (needs, may), "{phase}");
            let ending = object(
                &json!({"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}, "status": {"phase": phase}}),
            );
            assert_eq!((needs_a_budget(&ending), may_become_ready(&ending)), (false, false), "{phase}");
        }
    }

    #[test]
    fn preconditions_are_about_the_pod_as_it_is() {
        let pod = object(&json!({"metadata": {"name": "p", "uid": "u", "resourceVersion": "7"}}));
        let must = |uid: &str, version: &str| Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: Some(version.to_owned()),
        };
        assert!(check(&must("u", "7"), &pod).is_ok() && check(&must("", ""), &pod).is_ok());
        let text = |must: &Preconditions| check(must, &pod).map_err(|status| (status.code, status.message));
        let wrong = "Operation cannot be fulfilled on Pod \"p\": the UID in the precondition (v) does not match the UID in record (u). The object might have been deleted and then recreated";
        assert_eq!(text(&must("v", "7")), Err((409, wrong.to_owned())));
        let wrong = "Operation cannot be fulfilled on Pod \"p\": the ResourceVersion in the precondition (6) does not match the ResourceVersion in record (7). The object might have been modified";
        assert_eq!(text(&must("u", "6")), Err((409, wrong.to_owned())));
    }
}
