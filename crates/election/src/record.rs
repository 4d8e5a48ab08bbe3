//! The Lease, and what it calls for.

use std::time::Duration;

use concord_registry::{Object, metadata_mut};
use serde_json::{Value, json};

/// What a Lease says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// Who leads; empty if it was given back.
    pub(crate) holder: String,
    /// For how long it is good after it was last seen to change.
    pub(crate) duration: Duration,
}

impl Record {
    /// What somebody wrote; anything that makes no sense is taken for a Lease that is over.
    pub(crate) fn read(lease: &Object) -> Self {
        let spec = lease.get("spec").unwrap_or(&Value::Null);
        let seconds = spec["leaseDurationSeconds"].as_u64().unwrap_or_default();
        Self {
            holder: spec["holderIdentity"].as_str().unwrap_or_default().to_owned(),
            duration: Duration::from_secs(seconds),
        }
    }
}

/// What a candidate has to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// There is no Lease.
    Create,
    /// Nobody holds it.
    Take,
    /// This candidate holds it.
    Renew,
    /// Somebody else holds it, for so long.
    Wait(Duration),
}

/// What to do about a Lease that has not changed for a while, as seen from here.
pub(crate) fn step(own: &str, lease: Option<&Record>, unchanged_for: Duration) -> Step {
    match lease {
        None => Step::Create,
        Some(lease) if lease.holder == own => Step::Renew,
        Some(lease) if lease.holder.is_empty() || unchanged_for >= lease.duration => Step::Take,
        Some(lease) => Step::Wait(lease.duration - unchanged_for),
    }
}

/// Writes into a Lease that `holder` leads, since now unless it did before.
pub(crate) fn hold(lease: &mut Object, holder: &str, duration: Duration, now: &str) {
    let spec = lease.entry("spec").or_insert_with(|| json!({}));
    if !spec.is_object() {
        *spec = json!({});
    }
    if spec["holderIdentity"].as_str() != Some(holder) {
        let transitions = spec["leaseTransitions"].as_i64();
        // The first holder is no transition.
        let transitions = transitions.map_or(0, |transitions| transitions.saturating_add(1));
        spec["leaseTransitions"] = transitions.into();
        spec["acquireTime"] = now.into();
    }
    spec["holderIdentity"] = holder.into();
    spec["leaseDurationSeconds"] = duration.as_secs().max(1).into();
    spec["renewTime"] = now.into();
}

/// Writes into a Lease that nobody leads, as client-go does.
pub(crate) fn give_back(lease: &mut Object, now: &str) {
    let spec = lease.entry("spec").or_insert_with(|| json!({}));
    spec["holderIdentity"] = "".into();
    spec["leaseDurationSeconds"] = 1.into();
    spec["renewTime"] = now.into();
    spec["acquireTime"] = now.into();
}

/// A Lease of this name that nobody has held yet.
pub(crate) fn new(name: &str) -> Object {
    let mut lease = Object::new();
    lease.insert("kind".to_owned(), "Lease".into());
    lease.insert("apiVersion".to_owned(), "coordination.k8s.io/v1".into());
    metadata_mut(&mut lease).insert("name".to_owned(), name.into());
    lease
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(holder: &str, seconds: u64) -> Record {
        Record { holder: holder.into(), duration: Duration::from_secs(seconds) }
    }

    #[test]
    fn what_a_lease_calls_for() {
        let seconds = Duration::from_secs;
        for (lease, unchanged_for, expected) in [
            (None, 0, Step::Create),
            (Some(record("me", 15)), 0, Step::Renew),
            (Some(record("me", 15)), 100, Step::Renew),
            (Some(record("", 1)), 0, Step::Take),
            (Some(record("other", 15)), 0, Step::Wait(seconds(15))),
            (Some(record("other", 15)), 14, Step::Wait(seconds(1))),
            (Some(record("other", 15)), 15, Step::Take),
            (Some(record("other", 0)), 0, Step::Take),
        ] {
            assert_eq!(step("me", lease.as_ref(), seconds(unchanged_for)), expected, "{lease:?}");
        }
    }

    #[test]
    fn holders_are_written_down_as_client_go_does() {
        let mut lease = new("x");
        hold(&mut lease, "a", Duration::from_secs(15), "t1");
        let spec = |lease: &Object| lease["spec"].clone();
        let expected = json!({
            "holderIdentity": "a", "leaseDurationSeconds": 15, "acquireTime": "t1", "renewTime": "t1", "leaseTransitions": 0,
        });
        assert_eq!(spec(&lease), expected);
        hold(&mut lease, "a", Duration::from_secs(15), "t2");
        assert_eq!((&spec(&lease)["acquireTime"], &spec(&lease)["renewTime"]), (&json!("t1"), &json!("t2")));
        hold(&mut lease, "b", Duration::from_secs(15), "t3");
        assert_eq!(
            (&spec(&lease)["acquireTime"], &spec(&lease)["leaseTransitions"]),
            (&json!("t3"), &json!(1))
        );
        give_back(&mut lease, "t4");
        assert_eq!(Record::read(&lease), record("", 1));
        assert_eq!(spec(&lease)["leaseTransitions"], 1);
    }

    #[test]
    fn nonsense_is_a_lease_that_is_over() {
        for spec in
            [json!(null), json!([]), json!({"holderIdentity": 1}), json!({"leaseDurationSeconds": -5})]
        {
            let mut lease = new("x");
            lease.insert("spec".to_owned(), spec);
            assert_eq!(step("me", Some(&Record::read(&lease)), Duration::ZERO), Step::Take);
            hold(&mut lease, "me", Duration::from_secs(15), "t");
            assert_eq!(Record::read(&lease), record("me", 15));
        }
    }
}
