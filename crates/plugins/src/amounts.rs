//! Amounts of resources, and what pods ask for as a whole.

use std::collections::BTreeMap;

use concord_meta::Quantity;
use concord_registry::Object;
use serde_json::Value;

use crate::at;

/// Amounts by the name of their resource.
pub type Amounts = BTreeMap<String, Quantity>;

/// What a pod can ask for as a whole, whatever its containers do.
const POD_LEVEL: [&str; 2] = ["cpu", "memory"];

/// A list of amounts. What is none is left out.
pub fn amounts(list: Option<&Value>) -> Amounts {
    let list = list.and_then(Value::as_object).into_iter().flatten();
    list.filter_map(|(name, amount)| Some((name.clone(), amount.as_str()?.parse().ok()?))).collect()
}

/// The `requests` or `limits` of a pod: of its containers and sidecars together, or what an init container needs beside
/// the sidecars that run already, if that is more.
pub fn of_pod(pod: &Object, list: &str) -> Amounts {
    let containers = |which: &str| at(pod, &["spec", which]).and_then(Value::as_array).into_iter().flatten();
    let own = |container: &Value| amounts(container.get("resources").and_then(|all| all.get(list)));
    let mut total = Amounts::new();
    for container in containers("containers") {
        add(&mut total, &own(container));
    }
    let (mut sidecars, mut most) = (Amounts::new(), Amounts::new());
    for container in containers("initContainers") {
        let mut needed = own(container);
        if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            add(&mut total, &needed);
            add(&mut sidecars, &needed);
            needed = sidecars.clone();
        } else {
            add(&mut needed, &sidecars);
        }
        raise(&mut most, needed);
    }
    raise(&mut total, most);
    let of_whole = amounts(at(pod, &["spec", "resources", list]));
    total.extend(of_whole.into_iter().filter(|(name, _)| POD_LEVEL.contains(&name.as_str())));
    total
}

/// Adds to each amount what there is more of it.
pub fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        match total.get_mut(name) {
            Some(sum) => *sum += amount,
            None => drop(total.insert(name.clone(), amount.clone())),
        }
    }
}

fn raise(total: &mut Amounts, least: Amounts) {
    for (name, amount) in least {
        if total.get(&name).is_none_or(|present| *present < amount) {
            total.insert(name, amount);
        }
    }
}
