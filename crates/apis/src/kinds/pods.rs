use concord_meta::options::DeleteOptions;
use concord_registry::{Context, Object, Part};
use serde_json::Value;

use super::{Hooks, keep};

pub(super) const HOOKS: Hooks = Hooks { update: Some(update), graceful_deletion: Some(grace), ..Hooks::NONE };

/// The doors for ephemeral containers and resources change the spec, like the main one.
fn update(_: &Context, part: Part<'_>, new: &mut Object, old: &Object) {
    if matches!(part, Part::Sub("ephemeralcontainers" | "resize")) {
        keep(new, old, "status");
    }
}

/// How long the pod has to end: as asked, or as it says itself; no time at all if it runs nowhere.
fn grace(object: &Object, options: &DeleteOptions) -> i64 {
    let text = |part: &str, name: &str| {
        object.get(part).and_then(|part| part.get(name)).and_then(Value::as_str).unwrap_or_default()
    };
    if text("spec", "nodeName").is_empty() || ["Failed", "Succeeded"].contains(&text("status", "phase")) {
        return 0;
    }
    let own = || object.get("spec")?.get("terminationGracePeriodSeconds")?.as_i64();
    match options.grace_period_seconds.or_else(own) {
        None => 0,
        Some(negative) if negative < 0 => 1,
        Some(period) => period,
    }
}
