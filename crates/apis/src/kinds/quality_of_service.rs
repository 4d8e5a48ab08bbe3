//! How sure a pod can be of what it asks for.

use std::collections::BTreeMap;

use concord_meta::Quantity;
use concord_registry::Object;
use serde_json::Value;

/// What counts.
const RESOURCES: [&str; 2] = ["cpu", "memory"];

type Amounts = BTreeMap<&'static str, Quantity>;

/// `Guaranteed` if every container has limits for all that counts, and requests no less; `BestEffort` if nobody asks for
/// anything; `Burstable` otherwise. A pod that asks as a whole is judged by that alone.
pub(super) fn class(pod: &Object) -> &'static str {
    let spec = pod.get("spec");
    let whole = spec.and_then(|spec| spec.get("resources")).filter(|resources| resources.is_object());
    let containers = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| spec.and_then(|spec| spec.get(list)?.as_array()).into_iter().flatten());
    let asked: Vec<Option<&Value>> = match whole {
        Some(whole) => vec![Some(whole)],
        None => containers.map(|container| container.get("resources")).collect(),
    };
    let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
    let mut guaranteed = true;
    for resources in asked {
        add(&mut requests, resources, "requests");
        let limited = add(&mut limits, resources, "limits");
        // Of a pod that limits nothing as a whole, nothing is said here: its requests decide.
        let says_nothing = whole.is_some() && list(resources, "limits").is_none_or(Object::is_empty);
        guaranteed &= limited == RESOURCES.len() || says_nothing;
    }
    if requests.is_empty() && limits.is_empty() {
        return "BestEffort";
    }
    match guaranteed && requests == limits {
        true => "Guaranteed",
        false => "Burstable",
    }
}

fn list<'a>(resources: Option<&'a Value>, name: &str) -> Option<&'a Object> {
    resources.and_then(|resources| resources.get(name)?.as_object())
}

/// Adds what is asked for, and tells of how many resources something is.
fn add(total: &mut Amounts, resources: Option<&Value>, name: &str) -> usize {
    let mut found = 0;
    for resource in RESOURCES {
        let amount = list(resources, name).and_then(|list| list.get(resource)?.as_str()?.parse().ok());
        let Some(amount) = amount.filter(|amount: &Quantity| amount.milli_value() > 0) else { continue };
        found += 1;
        match total.get_mut(resource) {
            Some(sum) => *sum += &amount,
            None => drop(total.insert(resource, amount)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_are_as_sure_as_they_ask() {
        let all = json!({"cpu": "1", "memory": "1Gi"});
        let both = json!({"requests": all, "limits": all});
        for (spec, wanted) in [
            (json!({"containers": [{}]}), "BestEffort"),
            (json!({"containers": [{"resources": {"requests": {"cpu": "0"}}}]}), "BestEffort"),
            (json!({"containers": [{"resources": {"requests": {"nvidia.com/gpu": "1"}}}]}), "BestEffort"),
            (json!({"containers": [{"resources": {"requests": {"cpu": "1"}}}]}), "Burstable"),
            (json!({"containers": [{"resources": both}]}), "Guaranteed"),
            (json!({"containers": [{"resources": both}, {}]}), "Burstable"),
            (json!({"containers": [{"resources": both}], "initContainers": [{}]}), "Burstable"),
            (json!({"containers": [{"resources": both}, {"resources": both}]}), "Guaranteed"),
            (
                json!({"containers": [{"resources": {"requests": {"cpu": "1000m", "memory": "1Gi"}, "limits": all}}]}),
                "Guaranteed",
            ),
            (json!({"containers": [{}], "resources": both}), "Guaranteed"),
            (json!({"containers": [{}], "resources": {"requests": {"cpu": "1"}}}), "Burstable"),
            (
                json!({"containers": [{"resources": both}], "resources": {"limits": {"cpu": "1"}}}),
                "Burstable",
            ),
        ] {
            let pod = json!({"spec": spec});
            assert_eq!(class(pod.as_object().expect("an object")), wanted, "{spec}");
        }
    }
}
