//! Events: one object, which the core group and events.k8s.io call differently.

use crate::{Object, put, take};

/// Fields by their names in the core group and in events.k8s.io. All others have the same name in both.
const NAMES: [(&str, &str); 7] = [
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("involvedObject", "regarding"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
];

pub(crate) fn from_core(object: &mut Object) {
    for (core, events) in NAMES {
        rename(object, core, events);
    }
}

pub(crate) fn to_core(object: &mut Object) {
    for (core, events) in NAMES {
        rename(object, events, core);
    }
}

fn rename(object: &mut Object, from: &str, to: &str) {
    let value = take(object, from);
    put(object, to, value);
}
