use concord_store::Revision;

use crate::{Entry, Fence, Found, Holds, Step};

/// How long an object without entries is left alone: somebody may be about to fill it.
pub const EMPTY_GRACE_SECONDS: i64 = 60;

/// What the lease of an ID says about the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// There is a lease of a component that registers versions.
    Member,
    /// There is no lease of that name.
    Absent,
    /// There is a lease, last written at this revision, but not that of a server.
    Foreign(Revision),
}

/// What is to be done about entries whose servers are gone; `None` if there are none. That they are gone is a condition
/// of the step, for each of them: a server that comes back at the same moment is never stripped.
pub fn collection(
    fence: &Fence,
    name: &str,
    found: &Found<'_>,
    membership: impl Fn(&str) -> Membership,
) -> Option<Step> {
    let mut holds = vec![fence.holds(), Found::unchanged(Some(found), name)];
    let mut left: Vec<Entry> = Vec::new();
    for entry in found.entries {
        let id = &entry.api_server_id;
        match membership(id) {
            Membership::Member => left.push(entry.clone()),
            Membership::Absent => holds.push(Holds::LeaseAbsent(id.clone())),
            Membership::Foreign(revision) => holds.push(Holds::LeaseAt(id.clone(), revision)),
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
            let step = collection(&fence, "core.pods", &found, membership);
            assert_eq!(step.map(|step| step.entries.map(|left| left.len())), after, "{before:?}");
        }
    }

    #[test]
    fn the_evidence_is_part_of_the_step() {
        let fence = Fence::Held { id: "m1".to_owned(), since: 2 };
        let before = entries(&["m1", "gone", "foreign"]);
        let found = Found { revision: 9, entries: &before };
        let step = collection(&fence, "core.pods", &found, membership).expect("something to do");
        let expected = [
            Holds::LeaseSince("m1".to_owned(), 2),
            Holds::StorageVersionAt("core.pods".to_owned(), 9),
            Holds::LeaseAbsent("gone".to_owned()),
            Holds::LeaseAt("foreign".to_owned(), 4),
        ];
        assert_eq!(step.holds, expected);
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
