//! What is to become of an object, as a function of what is known about it and its owners.

use concord_meta::{
    objectmeta::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN},
    options::PropagationPolicy,
};

use crate::Metadata;

/// What an owner was found to be, by the reference to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// There, and to stay.
    Solid,
    /// There, but being deleted in the foreground: it waits until its dependents are gone.
    Waiting,
    /// There, wherever that is, but being deleted: it waits until its dependents have been let go.
    Orphaning,
    /// Not there. Nothing with this uid is where the reference says, and nothing ever will be.
    Absent,
    /// Nobody here can say: its kind is not served, or what is stored cannot be read.
    Unknown,
    /// In a namespace, while the object that refers to it is in none. Such a reference says nothing.
    Misplaced,
}

/// What the graph says about an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dependents {
    /// Whether anything refers to it.
    pub any: bool,
    /// Whether something does that it has to wait for when it is deleted in the foreground.
    pub blocking: bool,
    /// Whether something that refers to it waits for dependents of its own.
    pub waiting: bool,
    /// Whether it waits for dependents that wait for it.
    pub circular: bool,
}

/// What to do with an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Nothing, until something changes.
    Keep,
    /// Nothing, until more is known about its owners.
    Ask,
    /// Delete it.
    Delete(PropagationPolicy),
    /// Remove these of its references, by their positions.
    Disown(Vec<usize>),
    /// Say in its references that no owner has to wait for it.
    Unblock,
    /// Remove this finalizer: it has waited long enough.
    Release(&'static str),
}

/// How many references are removed, or proved to lead nowhere, in one transaction: an etcd allows only so many conditions.
pub const MOST_OWNERS: usize = 64;

/// What to do with an object, given what each of its owners is, in the order of its references.
///
/// It is deleted if no owner is left that is to stay, and only if that is known of every single one.
#[must_use]
pub fn decide(item: &Metadata<'_>, owners: &[Owner], dependents: Dependents) -> Decision {
    debug_assert_eq!(item.owner_references.len(), owners.len());
    let which = |wanted: &[Owner]| -> Vec<usize> {
        let references = owners.iter().enumerate().filter(|(_, owner)| wanted.contains(owner));
        references.map(|(at, _)| at).collect()
    };
    if owners.contains(&Owner::Orphaning) {
        return disown(which(&[Owner::Orphaning]));
    }
    if item.is_deleting {
        return end(item, dependents);
    }
    let any = |wanted: Owner| owners.contains(&wanted);
    if owners.is_empty() || any(Owner::Misplaced) {
        return Decision::Keep;
    }
    if any(Owner::Unknown) {
        return Decision::Ask;
    }
    let absent = owners.iter().filter(|owner| **owner == Owner::Absent).count();
    if any(Owner::Solid) {
        // A waiting owner would wait for ever for what another one keeps.
        let lost = which(&[Owner::Absent, Owner::Waiting]);
        return if lost.is_empty() { Decision::Keep } else { disown(lost) };
    }
    if absent > MOST_OWNERS {
        return disown(which(&[Owner::Absent]));
    }
    if any(Owner::Waiting) && dependents.any {
        return match dependents.waiting && is_blocking(item) {
            true => Decision::Unblock,
            false => Decision::Delete(PropagationPolicy::Foreground),
        };
    }
    Decision::Delete(policy(item))
}

/// What to do with an object that is being deleted already.
fn end(item: &Metadata<'_>, dependents: Dependents) -> Decision {
    if item.is_orphaning() {
        return if dependents.any { Decision::Keep } else { Decision::Release(FINALIZER_ORPHAN) };
    }
    match item.is_waiting() {
        true if !dependents.blocking => Decision::Release(FINALIZER_FOREGROUND),
        true if dependents.circular && is_blocking(item) => Decision::Unblock,
        _ => Decision::Keep,
    }
}

fn disown(mut references: Vec<usize>) -> Decision {
    references.truncate(MOST_OWNERS);
    Decision::Disown(references)
}

fn is_blocking(item: &Metadata<'_>) -> bool {
    item.owner_references.iter().any(|reference| reference.is_blocking())
}

/// What is said by finalizers that are there already is respected.
fn policy(item: &Metadata<'_>) -> PropagationPolicy {
    if item.has(FINALIZER_ORPHAN) {
        PropagationPolicy::Orphan
    } else if item.has(FINALIZER_FOREGROUND) {
        PropagationPolicy::Foreground
    } else {
        PropagationPolicy::Background
    }
}

#[cfg(test)]
#[path = "decide/tests.rs"]
mod tests;
