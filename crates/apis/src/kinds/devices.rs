use concord_registry::{Context, Object, Part};
use serde_json::Value;

use super::{Hooks, member};

pub(super) const HOOKS: Hooks = Hooks { create: Some(create), update: Some(update), ..Hooks::NONE };

fn create(context: &Context, object: &mut Object) {
    date_taints(context, object);
}

fn update(context: &Context, _: Part<'_>, new: &mut Object, _: &Object) {
    date_taints(context, new);
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
