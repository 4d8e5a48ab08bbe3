//! The limits that a namespace has for what is made in it.

mod constraints;

use async_trait::async_trait;
use concord_meta::Status;
use concord_registry::{Admission, Attributes, Object, Operation, metadata, metadata_mut};
use serde_json::Value;

use crate::{Objects, at, concerns, forbidden, member};

/// Where a pod says which of its limits were not its own.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Gives containers the requests and limits that are the default in their namespace, and refuses pods and claims that ask
/// for too little or too much.
pub struct LimitRanger {
    ranges: Objects,
}

impl LimitRanger {
    /// By these limit ranges.
    pub fn new(ranges: Objects) -> Self {
        Self { ranges }
    }

    /// The limits of a namespace: of all its limit ranges, one after the other.
    fn ranges(&self, attributes: &Attributes<'_>) -> Result<Vec<Object>, Status> {
        let leaving = attributes.old.is_some_and(|old| metadata(old).is_terminating());
        if leaving {
            return Ok(Vec::new());
        }
        self.ranges.with(Some(attributes.namespace), b"\"limits\"")
    }
}

#[async_trait]
impl Admission for LimitRanger {
    fn name(&self) -> &'static str {
        "LimitRanger"
    }

    async fn admit(&self, attributes: &Attributes<'_>, object: Option<&mut Object>) -> Result<(), Status> {
        let Some(pod) = object.filter(|_| is_pod(attributes)) else { return Ok(()) };
        for range in self.ranges(attributes)? {
            set_defaults(pod, &range);
        }
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Object>) -> Result<(), Status> {
        let claim = concerns(attributes, "", "persistentvolumeclaims", "")
            && matches!(attributes.operation, Operation::Create | Operation::Update);
        let Some(object) = object.filter(|_| claim || is_pod(attributes)) else { return Ok(()) };
        for range in self.ranges(attributes)? {
            let errors = match claim {
                true => constraints::of_claim(object, limits(&range)),
                false => constraints::of_pod(object, limits(&range)),
            };
            if let Some(why) = aggregate(errors) {
                return Err(forbidden(attributes, &why));
            }
        }
        Ok(())
    }
}

/// A new pod, or one whose resources change: nothing else can change what its containers ask for.
fn is_pod(attributes: &Attributes<'_>) -> bool {
    match attributes.operation {
        Operation::Create => concerns(attributes, "", "pods", ""),
        Operation::Update => concerns(attributes, "", "pods", "resize"),
        Operation::Delete | Operation::Connect => false,
    }
}

fn limits(range: &Object) -> impl Iterator<Item = &Object> {
    let items = at(range, &["spec", "limits"]).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_object)
}

/// Several errors as Go shows them, each once.
fn aggregate(errors: Vec<String>) -> Option<String> {
    let mut unique: Vec<String> = Vec::new();
    for error in errors {
        if !unique.contains(&error) {
            unique.push(error);
        }
    }
    match unique.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}

fn set_defaults(pod: &mut Object, range: &Object) {
    let of_containers = || limits(range).filter(|limit| limit.get("type") == Some(&"Container".into()));
    let all = |list: &str| -> Object {
        let lists = of_containers().filter_map(|limit| limit.get(list)?.as_object());
        lists.flat_map(|list| list.clone()).collect()
    };
    let (requests, limits) = (all("defaultRequest"), all("default"));
    if requests.is_empty() && limits.is_empty() {
        return;
    }
    let mut told = Vec::new();
    let Some(spec) = member(pod, "spec") else { return };
    for (list, what) in [("containers", "container"), ("initContainers", "init container")] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let set_limits = fill(container, "limits", &limits);
            for (which, set) in [("request", fill(container, "requests", &requests)), ("limit", set_limits)] {
                if !set.is_empty() {
                    told.push(format!("{} {which} for {what} {name}", set.join(", ")));
                }
            }
        }
    }
    if !told.is_empty()
        && let Some(annotations) = member(metadata_mut(pod), "annotations")
    {
        let text = format!("LimitRanger plugin set: {}", told.join("; "));
        annotations.insert(ANNOTATION.to_owned(), text.into());
    }
}

/// Adds the amounts that a container does not have, and tells of what.
fn fill<'a>(container: &mut Object, list: &str, defaults: &'a Object) -> Vec<&'a str> {
    if defaults.is_empty() {
        return Vec::new();
    }
    let Some(own) = member(container, "resources").and_then(|resources| member(resources, list)) else {
        return Vec::new();
    };
    let mut set = Vec::new();
    for (name, amount) in defaults {
        if !own.contains_key(name) {
            own.insert(name.clone(), amount.clone());
            set.push(name.as_str());
        }
    }
    set
}

#[cfg(test)]
mod tests;
