//! The counts in workloads' statuses.

use crate::node::{Node, Root};

const MORE_THAN_ALL: &str = "cannot be greater than status.replicas";

/// None of these numbers is negative.
fn counts(status: Node<'_>, names: &[&'static str]) {
    names.iter().for_each(|name| status.get(name).nonnegative());
}

/// None of these numbers is greater than the number of replicas.
fn parts(status: Node<'_>, names: &[&'static str], ready: &'static str) {
    let replicas = status.num("replicas");
    for name in names {
        let number = status.num(name);
        if number > replicas {
            status.child(name).invalid(number, MORE_THAN_ALL);
        }
    }
    let available = status.num("availableReplicas");
    if available > status.num("readyReplicas") {
        status.child("availableReplicas").invalid(available, ready);
    }
}

/// A counter that only goes up.
fn not_decremented<'v>(status: Node<'v>, before: Node<'v>) {
    let (new, old) = (status.get("collisionCount").int(), before.get("collisionCount").int());
    if old.is_some_and(|old| new.is_none_or(|new| new < old)) {
        status.child("collisionCount").invalid(new.unwrap_or_default(), "cannot be decremented");
    }
}

pub(super) fn deployment<'v>(new: Root<'v>, old: Root<'v>) {
    let status = new.get("status");
    counts(
        status,
        &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
    );
    parts(
        status,
        &["updatedReplicas", "readyReplicas", "availableReplicas"],
        "cannot be greater than readyReplicas",
    );
    not_decremented(status, old.get("status"));
}

/// ReplicationControllers count no terminating replicas.
pub(super) fn replica_set(status: Node<'_>, terminating: bool) {
    counts(
        status,
        &["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"],
    );
    if terminating {
        status.get("terminatingReplicas").nonnegative();
    }
    parts(
        status,
        &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        "cannot be greater than readyReplicas",
    );
}

pub(super) fn stateful_set<'v>(new: Root<'v>, old: Root<'v>) {
    let status = new.get("status");
    counts(
        status,
        &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
    );
    parts(
        status,
        &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
        "cannot be greater than status.readyReplicas",
    );
    crate::meta::update(new, old);
    not_decremented(status, old.get("status"));
}

pub(super) fn daemon_set<'v>(new: Root<'v>, old: Root<'v>) {
    let status = new.get("status");
    counts(
        status,
        &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ],
    );
    not_decremented(status, old.get("status"));
}
