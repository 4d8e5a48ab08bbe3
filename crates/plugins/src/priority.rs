use async_trait::async_trait;
use concord_meta::Status;
use concord_registry::{Admission, Attributes, Object, Operation, metadata};
use serde_json::Value;

use crate::{Objects, at, concerns, forbidden, member};

/// Gives pods, and groups of them, the priority of their class, or of the class for those that name none.
pub struct Priority {
    classes: Objects,
    groups: bool,
}

impl Priority {
    /// Among these priority classes. `groups` says whether groups of pods have a priority: the feature
    /// WorkloadAwarePreemption.
    pub fn new(classes: Objects, groups: bool) -> Self {
        Self { classes, groups }
    }

    async fn admit_group(&self, attributes: &Attributes<'_>, group: &mut Object) -> Result<(), Status> {
        let Some(spec) = member(group, "spec") else { return Ok(()) };
        let class = self.class(attributes, spec).await?;
        prioritize_group(spec, class.as_ref()).map_err(|why| forbidden(attributes, &why))
    }

    /// The class for pods that name none. Of several, which a race can make, it is the lowest.
    fn default(&self) -> Result<Option<Object>, Status> {
        let marked = self.classes.with(None, b"\"globalDefault\":true")?;
        let defaults = marked.into_iter().filter(|class| class.get("globalDefault") == Some(&true.into()));
        Ok(defaults.min_by_key(value))
    }

    /// The class of a pod, if it has one.
    async fn class(&self, attributes: &Attributes<'_>, spec: &Object) -> Result<Option<Object>, Status> {
        let name = spec.get("priorityClassName").and_then(Value::as_str).unwrap_or_default();
        if name.is_empty() {
            return self.default();
        }
        let class = self.classes.find(name).await?;
        let unknown = || forbidden(attributes, &format!("no PriorityClass with name {name} was found"));
        class.ok_or_else(unknown).map(Some)
    }

    fn validate_class(&self, attributes: &Attributes<'_>, class: &Object) -> Result<(), Status> {
        if class.get("globalDefault") != Some(&true.into()) {
            return Ok(());
        }
        let Some(default) = self.default()? else { return Ok(()) };
        let default = metadata(&default).name();
        if attributes.operation == Operation::Update && default == metadata(class).name() {
            return Ok(());
        }
        let why = format!("PriorityClass {default} is already marked as default. Only one default can exist");
        Err(forbidden(attributes, &why))
    }
}

#[async_trait]
impl Admission for Priority {
    fn name(&self) -> &'static str {
        "Priority"
    }

    async fn admit(&self, attributes: &Attributes<'_>, object: Option<&mut Object>) -> Result<(), Status> {
        let groups = self.groups && attributes.operation == Operation::Create;
        let Some(pod) = object else { return Ok(()) };
        if groups && concerns(attributes, "scheduling.k8s.io", "podgroups", "") {
            return self.admit_group(attributes, pod).await;
        }
        if !concerns(attributes, "", "pods", "") {
            return Ok(());
        }
        match (attributes.operation, attributes.old) {
            (Operation::Create, _) => {
                let Some(spec) = member(pod, "spec") else { return Ok(()) };
                let class = self.class(attributes, spec).await?;
                prioritize(spec, class.as_ref()).map_err(|why| forbidden(attributes, &why))
            }
            // What was decided when it was made stays, also if the client does not repeat it.
            (Operation::Update, Some(old)) => {
                for field in ["priority", "preemptionPolicy"] {
                    keep(pod, old, field);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Object>) -> Result<(), Status> {
        let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
        let concerned = writes && concerns(attributes, "scheduling.k8s.io", "priorityclasses", "");
        object.filter(|_| concerned).map_or(Ok(()), |class| self.validate_class(attributes, class))
    }
}

fn value(class: &Object) -> i64 {
    class.get("value").and_then(Value::as_i64).unwrap_or_default()
}

fn keep(pod: &mut Object, old: &Object, field: &str) {
    if let Some(before) = at(old, &["spec", field])
        && at(pod, &["spec", field]).is_none()
        && let Some(spec) = member(pod, "spec")
    {
        spec.insert(field.to_owned(), before.clone());
    }
}

/// Sets what a class says about a group of pods.
fn prioritize_group(spec: &mut Object, class: Option<&Object>) -> Result<(), String> {
    let priority = class.map_or(0, value);
    if let Some(given) = spec.get("priority").and_then(Value::as_i64)
        && given != priority
    {
        return Err(format!(
            "priority set in the pod group ({given}) must match the priority computed ({priority}) based on the priority \
             class set in the spec"
        ));
    }
    if let Some(class) = class {
        spec.insert("priorityClassName".to_owned(), metadata(class).name().into());
    }
    spec.insert("priority".to_owned(), priority.into());
    Ok(())
}

/// Sets what a class says, and what pods without any class have.
fn prioritize(spec: &mut Object, class: Option<&Object>) -> Result<(), String> {
    let priority = class.map_or(0, value);
    if let Some(given) = spec.get("priority").and_then(Value::as_i64)
        && given != priority
    {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {priority} from the given PriorityClass name"
        ));
    }
    let policy = match class {
        None => Some("PreemptLowerPriority"),
        Some(class) => class.get("preemptionPolicy").and_then(Value::as_str),
    };
    if let Some(class) = class {
        spec.insert("priorityClassName".to_owned(), metadata(class).name().into());
    }
    spec.insert("priority".to_owned(), priority.into());
    let Some(policy) = policy else { return Ok(()) };
    if let Some(given) = spec.get("preemptionPolicy").and_then(Value::as_str)
        && given != policy
    {
        return Err(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        ));
    }
    spec.insert("preemptionPolicy".to_owned(), policy.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn prioritized(spec: &Value, class: Option<&Value>) -> Result<Value, String> {
        let mut spec = spec.as_object().expect("an object").clone();
        prioritize(&mut spec, class.map(|class| class.as_object().expect("an object")))?;
        Ok(Value::Object(spec))
    }

    #[test]
    fn a_group_has_the_priority_of_its_class() {
        let class = json!({"metadata": {"name": "high"}, "value": 7});
        let class = class.as_object();
        for (spec, class, expected) in [
            (json!({}), None, Ok(json!({"priority": 0}))),
            (json!({}), class, Ok(json!({"priority": 7, "priorityClassName": "high"}))),
            (
                json!({"priority": 1}),
                class,
                Err(
                    "priority set in the pod group (1) must match the priority computed (7) based on the priority class \
                     set in the spec",
                ),
            ),
        ] {
            let mut spec = spec.as_object().expect("an object").clone();
            let told = prioritize_group(&mut spec, class).map(|()| Value::Object(spec));
            assert_eq!(told, expected.map_err(ToOwned::to_owned));
        }
    }

    #[test]
    fn a_pod_has_the_priority_of_its_class() {
        let class = json!({"metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"});
        let high = json!({"priorityClassName": "high", "priority": 7, "preemptionPolicy": "Never"});
        assert_eq!(prioritized(&json!({}), Some(&class)), Ok(high.clone()));
        assert_eq!(prioritized(&high, Some(&class)), Ok(high));
        let none = json!({"priority": 0, "preemptionPolicy": "PreemptLowerPriority"});
        assert_eq!(prioritized(&json!({}), None), Ok(none));
        let error = prioritized(&json!({"priority": 3}), Some(&class)).expect_err("another priority");
        assert_eq!(
            error,
            "the integer value of priority (3) must not be provided in pod spec; priority admission controller computed 7 \
             from the given PriorityClass name"
        );
        let error = prioritized(&json!({"preemptionPolicy": "Never"}), None).expect_err("another policy");
        assert_eq!(
            error,
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission controller \
             computed PreemptLowerPriority from the given PriorityClass name"
        );
    }
}
