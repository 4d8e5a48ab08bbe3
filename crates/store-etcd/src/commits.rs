//! Commits from watch events: complete revisions only, and every one of them.

use concord_store::{Change, Commit, KeyRange, Revision};

use crate::{
    convert,
    pb::mvccpb::{Event, event::EventType},
    watch::Batch,
};

/// A revision was left out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    pub(crate) expected: Revision,
    pub(crate) got: Revision,
}

/// Puts events together to commits. Keys that are not visible leave commits with fewer changes, never
/// fewer commits.
#[derive(Debug)]
pub(crate) struct Commits {
    visible: KeyRange,
    /// The last revision given out.
    last: Revision,
    /// The revision of which more events may come.
    open: Option<Commit>,
}

impl Commits {
    /// The commits after `last`.
    pub(crate) fn after(last: Revision, visible: KeyRange) -> Self {
        Self { visible, last, open: None }
    }

    /// The last revision given out.
    pub(crate) fn last(&self) -> Revision {
        self.last
    }

    /// Takes events and gives the commits they complete. Events up to the last revision are skipped. After
    /// a hole the events of this batch are gone: watch again from the last revision.
    pub(crate) fn add(&mut self, batch: Batch) -> Result<Vec<Commit>, Hole> {
        let mut complete = Vec::new();
        for event in batch.events {
            self.event(&event, &mut complete)?;
        }
        if !batch.partial {
            complete.extend(self.open.take());
        }
        if let Some(newest) = complete.last() {
            self.last = newest.revision;
        }
        Ok(complete)
    }

    fn event(&mut self, event: &Event, complete: &mut Vec<Commit>) -> Result<(), Hole> {
        let Some(kv) = &event.kv else { return Ok(()) };
        let revision = convert::key_revision(kv.mod_revision);
        if revision <= self.last {
            return Ok(());
        }
        let newest = match (&self.open, complete.last()) {
            (Some(open), _) => open.revision,
            (None, Some(commit)) => commit.revision,
            (None, None) => self.last,
        };
        if revision == newest + 1 {
            let next = Commit { revision, changes: Vec::new() };
            complete.extend(self.open.replace(next));
        }
        match &mut self.open {
            Some(open) if open.revision == revision => {
                if self.visible.contains(&kv.key) {
                    open.changes.push(change(event.r#type(), kv));
                }
                Ok(())
            }
            _ => Err(Hole { expected: newest + 1, got: revision }),
        }
    }
}

fn change(kind: EventType, kv: &crate::pb::mvccpb::KeyValue) -> Change {
    match kind {
        EventType::Put => Change::Put(convert::key_value(kv)),
        EventType::Delete => Change::Delete { key: bytes::Bytes::copy_from_slice(&kv.key) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pb::mvccpb::KeyValue;

    fn event(key: &'static str, revision: i64) -> Event {
        let kv =
            KeyValue { key: key.into(), mod_revision: revision, create_revision: 1, ..Default::default() };
        Event { kv: Some(kv), ..Default::default() }
    }

    fn batch<const N: usize>(partial: bool, events: [(&'static str, i64); N]) -> Batch {
        Batch { events: events.map(|(key, revision)| event(key, revision)).into(), partial }
    }

    fn shape(commits: Vec<Commit>) -> Vec<(Revision, usize)> {
        commits.into_iter().map(|commit| (commit.revision, commit.changes.len())).collect()
    }

    #[test]
    fn events_of_one_revision_are_one_commit() {
        let mut commits = Commits::after(5, KeyRange::all());
        let got = commits.add(batch(false, [("a", 6), ("b", 6), ("a", 7)])).expect("no hole");
        assert_eq!(shape(got), [(6, 2), (7, 1)]);
        assert_eq!(commits.last(), 7);
    }

    #[test]
    fn a_revision_in_pieces_is_given_when_it_is_whole() {
        let mut commits = Commits::after(5, KeyRange::all());
        let mut add =
            |partial, key, revision| shape(commits.add(batch(partial, [(key, revision)])).expect("no hole"));
        assert_eq!(add(true, "a", 6), []);
        assert_eq!(add(true, "b", 6), []);
        assert_eq!(add(true, "a", 7), [(6, 2)]);
        assert_eq!(add(false, "b", 7), [(7, 2)]);
        assert_eq!(add(false, "a", 8), [(8, 1)]);
    }

    #[test]
    fn invisible_keys_leave_empty_commits() {
        let mut commits = Commits::after(5, KeyRange::prefix("a"));
        let got = commits.add(batch(false, [("b", 6), ("a", 7), ("b", 7)])).expect("no hole");
        assert_eq!(shape(got), [(6, 0), (7, 1)]);
    }

    #[test]
    fn what_was_seen_is_skipped() {
        let mut commits = Commits::after(5, KeyRange::all());
        assert_eq!(shape(commits.add(batch(false, [("a", 4), ("a", 5)])).expect("no hole")), []);
        assert_eq!(shape(commits.add(batch(false, [("a", 5), ("a", 6)])).expect("no hole")), [(6, 1)]);
        assert_eq!(shape(commits.add(batch(false, [])).expect("no hole")), []);
    }

    #[test]
    fn a_hole_is_not_passed_on() {
        for events in [[("a", 7), ("a", 8)], [("a", 6), ("a", 8)], [("a", 8), ("a", 6)]] {
            let mut commits = Commits::after(5, KeyRange::all());
            assert!(commits.add(batch(false, events)).is_err(), "{events:?}");
            assert_eq!(commits.last(), 5);
        }
        let mut commits = Commits::after(5, KeyRange::all());
        commits.add(batch(true, [("a", 6)])).expect("no hole");
        assert_eq!(commits.add(batch(false, [("a", 8)])), Err(Hole { expected: 7, got: 8 }));
    }
}
