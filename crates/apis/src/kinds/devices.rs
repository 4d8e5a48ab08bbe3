use concord_registry::{Context, Object, Part};
use serde_json::Value;

use super::{Hooks, member};

pub(super) const HOOKS: Hooks = Hooks { create: Some(create), update: Some(update), ..Hooks::NONE };

/// ResourceClaims.
pub(super) const CLAIMS: Hooks = Hooks { update: Some(update_claim), ..Hooks::NONE };

/// ResourcePoolStatusRequests, which have no status until they are answered.
pub(super) const REQUESTS: Hooks =
    Hooks { create: Some(|_, request| drop(request.remove("status"))), ..Hooks::NONE };

fn update_claim(_: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
    if part.subresource() == "status" {
        forget_deallocated(new, old);
    }
}

/// What was said about a device that was taken back goes with it.
fn forget_deallocated(new: &mut Object, old: &Object) {
    let results = |object: &Object| -> Vec<[String; 4]> {
        let results = object.get("status").and_then(|status| status.pointer("/allocation/devices/results"));
        results.and_then(Value::as_array).into_iter().flatten().map(identity).collect()
    };
    let (before, now) = (results(old), results(new));
    let Some(Value::Object(status)) = new.get_mut("status") else { return };
    let Some(Value::Array(devices)) = status.get_mut("devices") else { return };
    devices.retain(|device| {
        let identity = identity(device);
        now.contains(&identity) || !before.contains(&identity)
    });
    if devices.is_empty() {
        status.remove("devices");
    }
}

fn identity(device: &Value) -> [String; 4] {
    ["driver", "pool", "device", "shareID"].map(|name| device[name].as_str().unwrap_or_default().to_owned())
}

fn create(context: &Context, object: &mut Object) {
    date_taints(context, object);
}

fn update(context: &Context, _: Part<'_>, new: &mut Object, old: &Object) {
    forget_date(new, old);
    date_taints(context, new);
}

/// A taint that gets another effect is a new one, unless somebody says since when there is it.
fn forget_date(new: &mut Object, old: &Object) {
    let Some(before) = old.get("spec").and_then(|spec| spec.get("taint")) else { return };
    let taint = new.get_mut("spec").and_then(|spec| spec.get_mut("taint"));
    let Some(Value::Object(taint)) = taint else { return };
    let same = |name: &str| taint.get(name) == before.get(name);
    if !same("effect") && same("timeAdded") {
        taint.remove("timeAdded");
    }
}

/// A taint without a time was added now. Upstream has it among the defaults, which have no clock here.
fn date_taints(context: &Context, object: &mut Object) {
    let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
    // One in a rule, any number in each device of a slice.
    if let Some(Value::Object(taint)) = spec.get_mut("taint") {
        date(context, taint);
    }
    let devices = spec.get_mut("devices").and_then(Value::as_array_mut).into_iter().flatten();
    for device in devices.filter_map(Value::as_object_mut) {
        // In v1beta1, in which 1.33 stores them, what a device has is a level deeper.
        let device = if device.contains_key("basic") { member(device, "basic") } else { device };
        let taints = device.get_mut("taints").and_then(Value::as_array_mut).into_iter().flatten();
        taints.filter_map(Value::as_object_mut).for_each(|taint| date(context, taint));
    }
}

fn date(context: &Context, taint: &mut Object) {
    taint.entry("timeAdded").or_insert_with(|| context.now.to_string().into());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_taint_with_another_effect_is_dated_again() {
        let rule = |effect: &str, time: &str| {
            let taint = json!({"key": "a", "effect": effect, "timeAdded": time});
            Object::from_iter([("spec".to_owned(), json!({"taint": taint}))])
        };
        let old = rule("NoSchedule", "t");
        for (effect, time, kept) in
            [("NoSchedule", "t", true), ("NoExecute", "t", false), ("NoExecute", "u", true)]
        {
            let mut new = rule(effect, time);
            forget_date(&mut new, &old);
            assert_eq!(new["spec"]["taint"].get("timeAdded").is_some(), kept, "{effect} {time}");
        }
    }

    #[test]
    fn what_is_said_about_devices_goes_with_their_allocation() {
        let claim = |allocated: &[&str], told: &[&str]| {
            let devices = |names: &[&str]| -> Vec<Value> {
                names.iter().map(|name| json!({"driver": "a", "pool": "b", "device": name})).collect()
            };
            let status =
                json!({"allocation": {"devices": {"results": devices(allocated)}}, "devices": devices(told)});
            Object::from_iter([("status".to_owned(), status)])
        };
        let old = claim(&["x", "y"], &["x", "y"]);
        for (allocated, told, left) in [
            (&["x", "y"][..], &["x", "y"][..], 2),
            (&["y"], &["x", "y"], 1),
            (&[], &["x", "z"], 1),
            (&[], &["x"], 0),
        ] {
            let mut new = claim(allocated, told);
            forget_deallocated(&mut new, &old);
            let devices = new["status"].get("devices").and_then(Value::as_array).map_or(0, Vec::len);
            assert_eq!(devices, left, "{allocated:?} {told:?}");
        }
    }
}
