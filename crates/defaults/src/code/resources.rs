//! Amounts of resources.

use std::collections::BTreeMap;

use concord_meta::{Quantity, QuantityFormat};
use serde_json::Value;

use super::text;
use crate::Object;

/// Amounts by the name of their resource.
type Amounts = BTreeMap<String, Quantity>;

/// Amounts are exact to a thousandth; what is finer is rounded up.
pub(super) fn round_up(list: &mut Object) {
    for amount in list.values_mut() {
        if let Value::String(text) = amount
            && let Some(rounded) = rounded(text)
        {
            *text = rounded;
        }
    }
}

/// The amount rounded up, if it is too fine. In normal form it is only if it ends like this.
fn rounded(text: &str) -> Option<String> {
    if !text.ends_with(['n', 'u']) && !text.contains("e-") {
        return None;
    }
    let quantity: Quantity = text.parse().ok()?;
    let unit = if quantity.format() == QuantityFormat::DecimalExponent { "e-3" } else { "m" };
    let rounded: Quantity = format!("{}{unit}", quantity.milli_value()).parse().ok()?;
    Some(rounded.to_string())
}

/// A pod that limits its resources as a whole requests as a whole what its containers request together, or up to its
/// limits if they request nothing. Huge pages, of which nobody may use more than they request, work the other way around:
/// the limits of the containers together are that of the pod.
pub(super) fn pod_level_resources(pod: &mut Object) {
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return };
    let own = |list: &str| amounts(spec.get("resources"), list);
    let (limits, requests) = (own("limits"), own("requests"));
    if limits.is_empty() && requests.is_empty() {
        return;
    }
    let mut more_limits = aggregate(spec, "limits");
    more_limits
        .retain(|name, _| is_huge_page(name) && !requests.contains_key(name) && !limits.contains_key(name));
    let mut more_requests = Amounts::new();
    if !limits.is_empty() || !more_limits.is_empty() {
        more_requests = aggregate(spec, "requests");
        more_requests.retain(|name, _| is_overcommittable(name));
        for (name, amount) in limits.iter().chain(&more_limits).filter(|(name, _)| is_supported(name)) {
            more_requests.entry(name.clone()).or_insert_with(|| amount.clone());
        }
        more_requests.retain(|name, _| !requests.contains_key(name));
    }
    add(spec, "limits", more_limits);
    add(spec, "requests", more_requests);
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// What a pod may ask for as a whole, and more of than there is.
fn is_overcommittable(name: &str) -> bool {
    ["cpu", "memory"].contains(&name)
}

/// What a pod may ask for as a whole.
fn is_supported(name: &str) -> bool {
    is_overcommittable(name) || is_huge_page(name)
}

fn add(spec: &mut Object, list: &str, more: Amounts) {
    if more.is_empty() {
        return;
    }
    let Some(Value::Object(resources)) = spec.get_mut("resources") else { return };
    let more = more.into_iter().map(|(name, amount)| (name, Value::String(amount.to_string())));
    match resources.get_mut(list) {
        Some(Value::Object(amounts)) => amounts.extend(more),
        _ => drop(resources.insert(list.to_owned(), Value::Object(more.collect()))),
    }
}

/// The requests or limits of all containers of a pod. Containers run together; init containers before them, one at a
/// time, except those that always restart: they stay and run beside all that begin after them.
fn aggregate(spec: &Object, list: &str) -> Amounts {
    let mut running = Amounts::new();
    for container in containers(spec, "containers") {
        plus(&mut running, &amounts(container.get("resources"), list));
    }
    let mut staying = Amounts::new();
    let mut most = Amounts::new();
    for container in containers(spec, "initContainers") {
        let mut own = amounts(container.get("resources"), list);
        if text(container, "restartPolicy") == "Always" {
            plus(&mut running, &own);
            plus(&mut staying, &own);
            own.clone_from(&staying);
        } else {
            plus(&mut own, &staying);
        }
        at_least(&mut most, own);
    }
    at_least(&mut running, most);
    running
}

fn containers<'a>(spec: &'a Object, list: &str) -> impl Iterator<Item = &'a Object> {
    spec.get(list).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

fn amounts(resources: Option<&Value>, list: &str) -> Amounts {
    let list = resources.and_then(|resources| resources.get(list)).and_then(Value::as_object);
    let parsed = |(name, amount): (&String, &Value)| Some((name.clone(), amount.as_str()?.parse().ok()?));
    list.into_iter().flatten().filter_map(parsed).collect()
}

fn plus(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        match total.get_mut(name) {
            Some(sum) => *sum += amount,
            None => drop(total.insert(name.clone(), amount.clone())),
        }
    }
}

fn at_least(total: &mut Amounts, other: Amounts) {
    for (name, amount) in other {
        if total.get(&name).is_none_or(|known| amount > *known) {
            total.insert(name, amount);
        }
    }
}

#[cfg(test)]
mod tests;
