//! StorageVersionMigrations, which were made anew between v1alpha1 and v1beta1. No release of upstream's serves both or
//! converts them; but what an older server has left in the store has to be readable.

use serde_json::Value;

use crate::{Object, items, member, put, take};

/// The version of the resource and the continue token are gone: any version stands for all.
pub(crate) fn from_alpha(object: &mut Object) {
    if let Some(spec) = member(object, "spec") {
        spec.remove("continueToken");
        if let Some(resource) = member(spec, "resource") {
            resource.remove("version");
            resource.entry("group").or_insert_with(|| Value::from(""));
        }
    }
    rename_times(object, "lastUpdateTime", "lastTransitionTime");
}

/// Which version of the resource is meant is not known. Any will do; but one has to be said.
pub(crate) fn to_alpha(object: &mut Object) {
    if let Some(resource) = member(object, "spec").and_then(|spec| member(spec, "resource")) {
        resource.entry("version").or_insert_with(|| Value::from("v1"));
    }
    rename_times(object, "lastTransitionTime", "lastUpdateTime");
    let Some(status) = member(object, "status") else { return };
    items(status, "conditions").for_each(|condition| drop(condition.remove("observedGeneration")));
}

fn rename_times(object: &mut Object, from: &str, to: &str) {
    let Some(status) = member(object, "status") else { return };
    for condition in items(status, "conditions") {
        let time = take(condition, from);
        put(condition, to, time);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_older_server_left_is_readable() {
        let alpha = json!({
            "spec": {"resource": {"group": "apps", "version": "v1", "resource": "deployments"}, "continueToken": "t"},
            "status": {"resourceVersion": "7",
                "conditions": [{"type": "Running", "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z"}]},
        });
        let beta = json!({
            "spec": {"resource": {"group": "apps", "resource": "deployments"}},
            "status": {"resourceVersion": "7",
                "conditions": [{"type": "Running", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        });
        let mut object = alpha.as_object().expect("an object").clone();
        from_alpha(&mut object);
        assert_eq!(Value::Object(object.clone()), beta);
        to_alpha(&mut object);
        assert_eq!(object["status"], alpha["status"]);
        assert_eq!(object["spec"]["resource"], alpha["spec"]["resource"], "it requires a version");
    }
}
