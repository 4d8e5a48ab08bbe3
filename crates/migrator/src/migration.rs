//! StorageVersionMigrations as they are stored.

use concord_meta::GroupResource;
use concord_registry::{Object, metadata};
use serde_json::{Value, json};

use crate::{decide::Orders, progress::Progress};

/// `"true"`: nothing is written until it is gone.
pub const PAUSED_ANNOTATION: &str = "storagemigration.concord.dev/paused";
/// `"true"`: the migration ends as it is.
pub const CANCELLED_ANNOTATION: &str = "storagemigration.concord.dev/cancelled";
/// `"true"`: nothing is written, only counted.
pub const DRY_RUN_ANNOTATION: &str = "storagemigration.concord.dev/dry-run";
/// At most so many objects are written in a second.
pub const RATE_ANNOTATION: &str = "storagemigration.concord.dev/max-requests-per-second";
/// How far it is: a [`Progress`].
pub const PROGRESS_ANNOTATION: &str = "storagemigration.concord.dev/progress";
/// `"false"` on a CustomResourceDefinition or a StorageVersion: its objects are not migrated unless somebody asks. On a
/// migration, `"true"`: nobody asked.
pub const AUTOMATIC_ANNOTATION: &str = "storagemigration.concord.dev/automatic";

/// What a StorageVersionMigration says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Migration {
    pub(crate) name: String,
    pub(crate) uid: String,
    /// In a form whose order is that of time.
    pub(crate) created: String,
    pub(crate) resource: GroupResource,
    /// The checkpoint, if it has been taken.
    pub(crate) checkpoint: Option<String>,
    pub(crate) conditions: Vec<Value>,
    pub(crate) orders: Orders,
    pub(crate) progress: Option<Progress>,
    /// Whether nobody asked for it.
    pub(crate) is_automatic: bool,
}

impl Migration {
    pub(crate) fn read(object: &Object) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let is = metadata(object);
        let part = |name: &str| object.get(name).cloned().unwrap_or_default();
        let (spec, status) = (part("spec"), part("status"));
        let annotation = |name: &str| is.get("annotations").and_then(|all| all[name].as_str());
        let said = |name: &str| annotation(name) == Some("true");
        let rate = annotation(RATE_ANNOTATION).and_then(|rate| rate.parse().ok());
        Self {
            name: is.name().to_owned(),
            uid: is.uid().to_owned(),
            created: is.text("creationTimestamp").to_owned(),
            resource: GroupResource::new(
                text(&spec["resource"]["group"]),
                text(&spec["resource"]["resource"]),
            ),
            checkpoint: Some(text(&status["resourceVersion"])).filter(|revision| !revision.is_empty()),
            conditions: status["conditions"].as_array().cloned().unwrap_or_default(),
            orders: Orders {
                is_paused: said(PAUSED_ANNOTATION),
                is_cancelled: said(CANCELLED_ANNOTATION),
                is_dry_run: said(DRY_RUN_ANNOTATION),
                rate: rate.filter(|rate: &f64| rate.is_finite() && *rate > 0.0),
            },
            progress: annotation(PROGRESS_ANNOTATION).and_then(|said| serde_json::from_str(said).ok()),
            is_automatic: said(AUTOMATIC_ANNOTATION),
        }
    }

    /// Whether a condition is true.
    pub(crate) fn holds(&self, kind: &str) -> bool {
        self.conditions.iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
    }

    /// Whether it has ended.
    pub(crate) fn is_terminal(&self) -> bool {
        self.holds("Succeeded") || self.holds("Failed")
    }
}

/// A condition to be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) kind: &'static str,
    pub(crate) holds: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Condition {
    /// Whether a migration is under way.
    pub(crate) fn running(holds: bool, reason: &'static str, message: &str) -> Self {
        Self { kind: "Running", holds, reason, message: message.to_owned() }
    }

    /// How it ended.
    pub(crate) fn ended(kind: &'static str, reason: &'static str, message: String) -> Self {
        Self { kind, holds: true, reason, message }
    }
}

/// What is written into `lastTransitionTime`, by the name that the version of the API has for it.
pub(crate) struct Transition<'a> {
    pub(crate) member: &'a str,
    pub(crate) now: &'a str,
}

/// Sets a condition among others. False if it is there already.
pub(crate) fn set(conditions: &mut Vec<Value>, condition: &Condition, at: &Transition<'_>) -> bool {
    let Condition { kind, holds, reason, message } = condition;
    let status = if *holds { "True" } else { "False" };
    // Upstream takes no more.
    let message: String = message.chars().take(8 << 10).collect();
    let mut new = json!({"type": kind, "status": status, "reason": reason, "message": message});
    let place = conditions.iter().position(|known| known["type"] == *kind);
    let known = place.map(|place| &conditions[place]);
    if known
        .is_some_and(|known| ["status", "reason", "message"].iter().all(|name| known[*name] == new[*name]))
    {
        return false;
    }
    new[at.member] = match known.filter(|known| known["status"] == status) {
        Some(known) => known[at.member].clone(),
        None => at.now.into(),
    };
    match place {
        Some(place) => conditions[place] = new,
        None => conditions.push(new),
    }
    true
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn migration(name: &str, created: &str, conditions: &[(&str, bool)]) -> Migration {
        let condition = |(kind, holds): &(&str, bool)| json!({"type": kind, "status": if *holds { "True" } else { "False" }});
        let conditions: Vec<Value> = conditions.iter().map(condition).collect();
        let object = json!({
            "metadata": {"name": name, "uid": "u", "creationTimestamp": created},
            "spec": {"resource": {"group": "g", "resource": "r"}},
            "status": {"conditions": conditions},
        });
        Migration::read(object.as_object().expect("an object"))
    }

    #[test]
    fn orders_are_annotations() {
        let object = json!({"metadata": {"name": "m", "annotations": {
            PAUSED_ANNOTATION: "true", CANCELLED_ANNOTATION: "yes", RATE_ANNOTATION: "12.5",
            PROGRESS_ANNOTATION: "{}",
        }}});
        let read = Migration::read(object.as_object().expect("an object"));
        assert!(read.orders.is_paused && !read.orders.is_cancelled && !read.orders.is_dry_run);
        assert_eq!((read.orders.rate, read.progress), (Some(12.5), Some(Progress::default())));
        for bad in ["-1", "0", "NaN", "fast"] {
            let object = json!({"metadata": {"annotations": {RATE_ANNOTATION: bad}}});
            assert_eq!(Migration::read(object.as_object().expect("an object")).orders.rate, None, "{bad}");
        }
    }

    #[test]
    fn a_condition_keeps_its_time_until_it_turns() {
        let mut conditions = vec![json!({"type": "Other", "status": "True"})];
        let at = |now| Transition { member: "lastTransitionTime", now };
        let running = |holds, message: &str| Condition {
            kind: "Running",
            holds,
            reason: "R",
            message: message.to_owned(),
        };
        assert!(set(&mut conditions, &running(true, "a"), &at("t1")));
        assert!(!set(&mut conditions, &running(true, "a"), &at("t2")));
        assert!(set(&mut conditions, &running(true, "b"), &at("t3")));
        assert_eq!(conditions[1]["lastTransitionTime"], "t1");
        assert!(set(&mut conditions, &running(false, "b"), &at("t4")));
        assert_eq!((conditions.len(), &conditions[1]["lastTransitionTime"]), (2, &json!("t4")));
    }
}
