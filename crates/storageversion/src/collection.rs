use concord_store::Revision;

use crate::{Entry, Fence, Found, Holds, Step};

/// How long an object without entries is left alone: somebody may be about to fill it.
pub const EMPTY_GRACE_SECONDS: i64 = 60;

/// What the lease of an ID says about the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// There is a lease that says that it is a server's identity.
    Member,
    /// There is no lease of that name.
    Absent,
    /// There is a lease, last written at this revision, but not that of a server.
    Foreign(Revision),
}

/// What is to be done about entries whose servers are gone; `None` if there are none. That they are gone is a condition
/// of the step, for each of them: a server that comes back at the same moment is never stripped.
///
/// A store takes only so many conditions at once, and anybody can write entries of servers that never were. So at most
/// `most` of them are removed, and at least one; the rest is left for the next step.
pub fn collection(
    fence: &Fence,
    name: &str,
    found: &Found<'_>,
    membership: impl Fn(&str) -> Membership,
    most: usize,
) -> Option<Step> {
    let mut holds = vec![fence.holds(), Found::unchanged(Some(found), name)];
    let mut left: Vec<Entry> = Vec::new();
    for entry in found.entries {
        let id = &entry.api_server_id;
        let is_enough = holds.len() >= most.max(1).saturating_add(2);
        match membership(id) {
            Membership::Absent if !is_enough => holds.push(Holds::LeaseAbsent(id.clone())),
            Membership::Foreign(revision) if !is_enough => holds.push(Holds::LeaseAt(id.clone(), revision)),
            _ => left.push(entry.clone()),
        }
    }
    if left.len() == found.entries.len() {
        return None;
    }
    Some(Step { name: name.to_owned(), holds, entries: (!left.is_empty()).then_some(left) })
}

/// What is to be done about an object that nobody ever filled; `None` if it is not such an object, or still young. Times
/// are in seconds.
pub fn abandoned(fence: &Fence, name: &str, found: &Found<'_>, created: i64, now: i64) -> Option<Step> {
    let old = now.saturating_sub(created) >= EMPTY_GRACE_SECONDS;
    (found.entries.is_empty() && old).then(|| Step {
        name: name.to_owned(),
        holds: vec![fence.holds(), Found::unchanged(Some(found), name)],
        entries: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(ids: &[&str]) -> Vec<Entry> {
        let entry = |id: &&str| Entry { api_server_id: (*id).to_owned(), ..Entry::default() };
        ids.iter().map(entry).collect()
    }

    /// Who is what it begins with: a member, gone, or foreign.
    fn membership(id: &str) -> Membership {
        match id.as_bytes().first() {
            Some(b'm') => Membership::Member,
            Some(b'f') => Membership::Foreign(4),
            _ => Membership::Absent,
        }
    }

    #[test]
    fn entries_go_with_their_servers() {
        let fence = Fence::Held { id: "m1".to_owned(), since: 2 };
        for (before, after) in [
            (&["m1", "m2"][..], None),
            (&["m1", "gone", "m2", "foreign"], Some(Some(2))),
            (&["gone"], Some(None)),
            (&[], None),
        ] {
            let before = entries(before);
            let found = Found { revision: 9, entries: &before };
            let step = collection(&fence, "core.pods", &found, membership, 9);
            assert_eq!(step.map(|step| step.entries.map(|left| left.len())), after, "{before:?}");
        }
    }

    #[test]
    fn the_evidence_is_part_of_the_step() {
        let fence = Fence::Held { id: "m1".to_owned(), since: 2 };
        let before = entries(&["m1", "gone", "foreign"]);
        let found = Found { revision: 9, entries: &before };
        let step = collection(&fence, "core.pods", &found, membership, 9).expect("something to do");
        let expected = [
            Holds::LeaseSince("m1".to_owned(), 2),
            Holds::StorageVersionAt("core.pods".to_owned(), 9),
            Holds::LeaseAbsent("gone".to_owned()),
            Holds::LeaseAt("foreign".to_owned(), 4),
        ];
        assert_eq!(step.holds, expected);
    }

    #[test]
    fn not_more_is_removed_at_once_than_a_store_compares() {
        let fence = Fence::Held { id: "m1".to_owned(), since: 2 };
        let before = entries(&["gone1", "m1", "gone2", "foreign", "gone3"]);
        let found = Found { revision: 9, entries: &before };
        for (most, holds, left) in [(0, 3, 4), (1, 3, 4), (2, 4, 3), (4, 6, 1), (9, 6, 1)] {
            let step = collection(&fence, "core.pods", &found, membership, most).expect("something to do");
            assert_eq!(
                (step.holds.len(), step.entries.map(|left| left.len())),
                (holds, Some(left)),
                "{most}"
            );
        }
    }

    #[test]
    fn what_nobody_fills_is_not_kept() {
        let fence = Fence::Held { id: "m1".to_owned(), since: 2 };
        let (none, one) = (entries(&[]), entries(&["m1"]));
        let is_abandoned = |entries: &[Entry], age: i64| {
            abandoned(&fence, "core.pods", &Found { revision: 9, entries }, 1000, 1000 + age).is_some()
        };
        assert!(is_abandoned(&none, EMPTY_GRACE_SECONDS));
        assert!(!is_abandoned(&none, EMPTY_GRACE_SECONDS - 1));
        assert!(!is_abandoned(&one, EMPTY_GRACE_SECONDS));
    }
}
