//! Resources of a pod as a whole.

use std::collections::BTreeMap;

use concord_meta::Quantity;

use super::{Pod, containers::claims};
use crate::{gates::Gate, node::Node, resources};

type Amounts<'v> = BTreeMap<&'v str, Quantity>;

pub(super) fn pod_resources(pod: &Pod<'_>) {
    let spec = pod.spec;
    if !spec.has("resources") || !spec.gate(Gate::PodLevelResources) {
        return;
    }
    let node = spec.get("resources");
    if pod.os() == Some("windows") {
        return node.forbidden("may not be set for a windows pod");
    }
    if node.has("claims") {
        node.child("claims").forbidden("claims may not be set for Resources at pod-level");
    }
    resources::requirements(node, resources::pod_name, pod.options.indivisible_hugepages);
    claims(node.get("claims"), &pod.claims);
    consistency(node, spec);
}

fn consistency<'v>(node: Node<'v>, spec: Node<'v>) {
    let (requests, limits) = (node.get("requests"), node.get("limits"));
    for (name, total) in aggregate(spec, "requests") {
        if let Some(asked) = requests.raw(name).and_then(resources::quantity)
            && total > asked
        {
            let detail = format!("must be greater than or equal to aggregate container requests of {total}");
            requests.key(name).invalid(resources::shown(&asked), detail);
        }
    }
    for (name, total) in
        aggregate(spec, "limits").into_iter().filter(|(name, _)| resources::is_hugepages(name))
    {
        if let Some(limit) = limits.raw(name).and_then(resources::quantity)
            && total > limit
        {
            let detail = format!("must be greater than or equal to aggregate container limits of {total}");
            limits.key(name).invalid(resources::shown(&limit), detail);
        }
    }
    for (index, container) in spec.get("containers").items().enumerate() {
        for (name, limit) in container.get2("resources", "limits").entries() {
            let (Some(limit), Some(most)) =
                (limit.quantity(), limits.raw(name).and_then(resources::quantity))
            else {
                continue;
            };
            if limit > most {
                // The odd path is upstream's.
                let at = node.child("containers").at(index).key(name).child("limits");
                at.invalid(
                    resources::shown(&limit),
                    format!("must be less than or equal to pod limits of {most}"),
                );
            }
        }
    }
}

/// What all containers together take: regular ones and those that restart along, or more while the others start.
fn aggregate<'v>(spec: Node<'v>, list: &'static str) -> Amounts<'v> {
    let mut total = Amounts::new();
    for container in spec.get("containers").items() {
        add(&mut total, &amounts(container, list));
    }
    let (mut restarting, mut most) = (Amounts::new(), Amounts::new());
    for container in spec.get("initContainers").items() {
        let mut own = amounts(container, list);
        if container.str("restartPolicy") == "Always" {
            add(&mut total, &own);
            add(&mut restarting, &own);
            own = restarting.clone();
        } else {
            add(&mut own, &restarting);
        }
        raise(&mut most, own);
    }
    raise(&mut total, most);
    total
}

fn amounts<'v>(container: Node<'v>, list: &'static str) -> Amounts<'v> {
    let entries = container.get2("resources", list).entries();
    entries.filter_map(|(name, amount)| Some((name, amount.quantity()?))).collect()
}

fn add<'v>(total: &mut Amounts<'v>, more: &Amounts<'v>) {
    for (name, amount) in more {
        match total.get_mut(name) {
            Some(sum) => *sum += amount,
            None => drop(total.insert(name, amount.clone())),
        }
    }
}

fn raise<'v>(total: &mut Amounts<'v>, at_least: Amounts<'v>) {
    for (name, amount) in at_least {
        if total.get(name).is_none_or(|sum| *sum < amount) {
            total.insert(name, amount);
        }
    }
}
