use std::borrow::Cow;

use super::{
    Decision::{Ask, Delete, Disown, Keep, Release, Unblock},
    Owner::{Absent, Misplaced, Orphaning, Solid, Unknown, Waiting},
    *,
};
use crate::OwnerReference;

const BACKGROUND: Decision = Delete(PropagationPolicy::Background);
const FOREGROUND: Decision = Delete(PropagationPolicy::Foreground);
const NONE: Dependents = Dependents { any: false, blocking: false, waiting: false, circular: false };
const SOME: Dependents = Dependents { any: true, ..NONE };

fn item(owners: usize, is_blocking: bool, finalizers: &[&str], is_deleting: bool) -> Metadata<'static> {
    let reference = |at: usize| OwnerReference {
        uid: Cow::Owned(at.to_string()),
        block_owner_deletion: is_blocking.then_some(true),
        ..OwnerReference::default()
    };
    Metadata {
        uid: "item".into(),
        owner_references: (0..owners).map(reference).collect(),
        finalizers: finalizers.iter().map(|name| (*name).to_owned()).collect(),
        is_deleting,
    }
}

#[test]
fn an_object_goes_when_no_owner_is_left_that_stays() {
    for (owners, expected) in [
        (&[][..], Keep),
        (&[Solid], Keep),
        (&[Absent], BACKGROUND),
        (&[Absent, Absent], BACKGROUND),
        (&[Waiting], BACKGROUND),
        (&[Waiting, Absent], BACKGROUND),
        (&[Solid, Absent], Disown(vec![1])),
        (&[Waiting, Solid, Absent], Disown(vec![0, 2])),
        (&[Orphaning], Disown(vec![0])),
        (&[Absent, Orphaning], Disown(vec![1])),
        (&[Unknown, Orphaning], Disown(vec![1])),
        (&[Unknown], Ask),
        (&[Absent, Unknown], Ask),
        (&[Solid, Absent, Unknown], Ask),
        (&[Misplaced], Keep),
        (&[Absent, Misplaced], Keep),
    ] {
        assert_eq!(decide(&item(owners.len(), false, &[], false), owners, NONE), expected, "{owners:?}");
    }
}

#[test]
fn an_object_with_dependents_goes_as_its_waiting_owner_does() {
    let waiting = Dependents { waiting: true, ..SOME };
    for (owners, is_blocking, dependents, expected) in [
        (&[Waiting][..], true, SOME, FOREGROUND),
        (&[Waiting, Absent], true, SOME, FOREGROUND),
        (&[Absent], true, SOME, BACKGROUND),
        // It may be waited for by what it would wait for itself.
        (&[Waiting], true, waiting, Unblock),
        (&[Waiting], false, waiting, FOREGROUND),
        (&[Absent], true, waiting, BACKGROUND),
    ] {
        let item = item(owners.len(), is_blocking, &[], false);
        assert_eq!(decide(&item, owners, dependents), expected, "{owners:?} {dependents:?}");
    }
}

#[test]
fn finalizers_that_are_there_say_how_it_goes() {
    for (finalizers, policy) in [
        (&["orphan"][..], PropagationPolicy::Orphan),
        (&["foregroundDeletion"], PropagationPolicy::Foreground),
        (&["example.com/other"], PropagationPolicy::Background),
    ] {
        assert_eq!(decide(&item(1, false, finalizers, false), &[Absent], SOME), Delete(policy));
    }
}

#[test]
fn an_object_that_is_being_deleted_waits_for_its_dependents() {
    let blocking = Dependents { blocking: true, ..SOME };
    let circular = Dependents { circular: true, ..blocking };
    for (finalizers, is_blocking, dependents, expected) in [
        (&[][..], true, SOME, Keep),
        (&["example.com/other"], true, SOME, Keep),
        (&["foregroundDeletion"], true, blocking, Keep),
        (&["foregroundDeletion"], true, SOME, Release("foregroundDeletion")),
        (&["foregroundDeletion"], true, circular, Unblock),
        (&["foregroundDeletion"], false, circular, Keep),
        (&["orphan"], true, SOME, Keep),
        (&["orphan"], true, NONE, Release("orphan")),
    ] {
        for owner in [Solid, Absent, Waiting, Unknown, Misplaced] {
            let item = item(1, is_blocking, finalizers, true);
            assert_eq!(
                decide(&item, &[owner], dependents),
                expected,
                "{finalizers:?} {dependents:?} {owner:?}"
            );
        }
    }
}

#[test]
fn more_owners_than_fit_into_a_transaction_go_by_and_by() {
    let all = vec![Absent; MOST_OWNERS + 1];
    let expected = Disown((0..MOST_OWNERS).collect());
    assert_eq!(decide(&item(all.len(), false, &[], false), &all, NONE), expected);
    assert_eq!(decide(&item(MOST_OWNERS, false, &[], false), &all[1..], NONE), BACKGROUND);
}
