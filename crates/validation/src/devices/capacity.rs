//! How much of a device can be had at once.

use concord_meta::Quantity;

use crate::{node::Node, resources::shown};

const MAX_OPTIONS: usize = 10;

pub(super) fn capacity(capacity: Node<'_>, shared: bool) {
    let policy = capacity.get("requestPolicy");
    if !policy.is_set() {
        return;
    }
    if !shared {
        return policy.forbidden("allowMultipleAllocations must be true");
    }
    let (values, range) = (policy.get("validValues"), policy.get("validRange"));
    let (default, most) = (policy.get("default"), capacity.get("value").quantity());
    match (values.is_empty(), range.is_set()) {
        (false, true) => policy.forbidden(
            "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time",
        ),
        (false, false) => match default.quantity().zip(most) {
            None => default.required("required when validValues is defined"),
            Some((default, most)) => options(values, &default, &most),
        },
        (true, true) => match default.quantity().zip(most) {
            None => default.required("required when validRange is defined"),
            Some((default, most)) => bounds(range, &default, &most),
        },
        (true, false) => {}
    }
}

fn options(values: Node<'_>, default: &Quantity, most: &Quantity) {
    let all: Vec<(Node<'_>, Quantity)> =
        values.items().filter_map(|item| Some((item, item.quantity()?))).collect();
    for pair in all.windows(2) {
        let [(_, one), (node, next)] = pair else { continue };
        if one > next {
            node.invalid(shown(next), "values must be sorted in ascending order");
        }
    }
    if all.len() > MAX_OPTIONS {
        values.too_many(all.len(), MAX_OPTIONS);
    } else {
        for (node, option) in all.iter().filter(|(_, option)| option > most) {
            node.invalid(shown(option), format!("option is larger than capacity value: {most}"));
        }
        let mut seen: Vec<i64> = Vec::new();
        for (node, option) in &all {
            match seen.contains(&option.value()) {
                true => node.duplicate(&option.value().to_string()),
                false => seen.push(option.value()),
            }
        }
    }
    if all.len() > MAX_OPTIONS || !all.iter().any(|(_, option)| option == default) {
        values.invalid(shown(default), "default value is not valid according to the requestPolicy");
    }
}

fn bounds(range: Node<'_>, default: &Quantity, most: &Quantity) {
    let Some(min) = range.get("min").quantity() else {
        return range.child("min").required("required when validRange is defined");
    };
    let complain = |name: &'static str, wrong: bool, value: &Quantity, why: String| {
        if wrong {
            range.child(name).invalid(shown(value), why);
        }
    };
    complain("min", min > *most, &min, format!("min is larger than capacity value: {most}"));
    complain("min", *default < min, default, format!("default is less than min: {min}"));
    let max = range.get("max").quantity();
    if let Some(max) = &max {
        complain("max", min > *max, &min, format!("min is larger than max: {max}"));
        complain("max", max > most, max, format!("max is larger than capacity value: {most}"));
        complain("max", default > max, default, format!("default is more than max: {max}"));
    }
    let Some(step) = range.get("step").quantity() else { return };
    let mut first = min.clone();
    first += &step;
    let why = format!("one step {first} is larger than capacity value: {most}");
    complain("step", first > *most, &step, why);
    for value in [Some(default), max.as_ref()].into_iter().flatten() {
        let off = value.value().checked_sub(min.value()).and_then(|more| more.checked_rem(step.value()));
        let why = format!("value is not a multiple of a given step ({step}) from ({min})");
        complain("step", off != Some(0), value, why);
    }
}
