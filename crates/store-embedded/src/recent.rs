use std::collections::{BTreeMap, VecDeque};

use concord_store::{Commit, Revision};

/// Followers further behind than this many bytes read from the file instead.
const RECENT_BYTES: usize = 16 << 20;

/// The newest commits that not all followers have taken, for those that keep up. What all of them have is let go of:
/// whoever follows knows best how much of the past it needs, and may have better ways to keep it.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    commits: VecDeque<(Commit, usize)>,
    bytes: usize,
    /// The last revision that each follower has taken.
    followers: BTreeMap<u64, Revision>,
    joined: u64,
}

impl Recent {
    /// Takes in the next commit, of roughly `size` bytes.
    pub(crate) fn push(&mut self, commit: Commit, size: usize) {
        self.commits.push_back((commit, size));
        self.bytes += size;
        while self.bytes > RECENT_BYTES && self.commits.len() > 1 {
            self.pop();
        }
    }

    /// Adds a follower that wants what comes after a revision. Answers how to call it.
    pub(crate) fn join(&mut self, after: Revision) -> u64 {
        self.joined += 1;
        self.followers.insert(self.joined, after);
        self.joined
    }

    /// A follower has everything up to a revision.
    pub(crate) fn taken(&mut self, follower: u64, through: Revision) {
        self.followers.insert(follower, through);
        self.release();
    }

    pub(crate) fn leave(&mut self, follower: u64) {
        self.followers.remove(&follower);
        self.release();
    }

    /// With nobody who follows everything stays: whoever comes next is likely to begin with something recent.
    fn release(&mut self) {
        let Some(all) = self.followers.values().min().copied() else { return };
        while self.commits.front().is_some_and(|(commit, _)| commit.revision <= all) {
            self.pop();
        }
    }

    fn pop(&mut self) {
        if let Some((_, size)) = self.commits.pop_front() {
            self.bytes -= size;
        }
    }

    /// Up to `limit` commits from `first` on, if it is still here.
    pub(crate) fn from(&self, first: Revision, limit: usize) -> Option<Vec<Commit>> {
        let oldest = self.commits.front()?.0.revision;
        let skip = usize::try_from(first.checked_sub(oldest)?).ok()?;
        let commits: Vec<_> = self.commits.range(skip.min(self.commits.len())..).take(limit).collect();
        (!commits.is_empty()).then(|| commits.into_iter().map(|(commit, _)| commit.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_commits_make_room_for_new_ones() {
        let mut recent = Recent::default();
        for revision in 2..=50 {
            recent.push(Commit { revision, changes: Vec::new() }, RECENT_BYTES / 10);
        }
        let revisions = |first, limit| {
            recent.from(first, limit).map(|commits| commits.iter().map(|c| c.revision).collect::<Vec<_>>())
        };
        assert_eq!(revisions(40, 9), None, "too old");
        assert_eq!(revisions(41, 3), Some(vec![41, 42, 43]));
        assert_eq!(revisions(49, 9), Some(vec![49, 50]));
        assert_eq!(revisions(51, 9), None, "not there yet");
        assert_eq!(revisions(99, 9), None);
        assert_eq!(Recent::default().from(1, 1), None);
    }

    #[test]
    fn what_all_followers_have_is_let_go_of() {
        let mut recent = Recent::default();
        let push = |recent: &mut Recent, revision| recent.push(Commit { revision, changes: Vec::new() }, 10);
        (2..=5).for_each(|revision| push(&mut recent, revision));
        let (fast, slow) = (recent.join(1), recent.join(3));
        recent.taken(fast, 5);
        assert_eq!(recent.from(3, 9), None, "nobody wants it any more");
        assert_eq!(recent.from(4, 9).map(|commits| commits.len()), Some(2), "the other one does");
        recent.leave(slow);
        assert_eq!((recent.commits.len(), recent.bytes), (0, 0));
        push(&mut recent, 6);
        assert_eq!(recent.from(6, 9).map(|commits| commits.len()), Some(1));
        recent.leave(fast);
        assert_eq!(recent.bytes, 10, "it may be wanted by the next one");
        // One that comes from far behind reads from the file, and hinders nobody from letting go later.
        let late = recent.join(2);
        push(&mut recent, 7);
        assert_eq!(recent.from(3, 9), None);
        recent.taken(late, 7);
        assert_eq!(recent.bytes, 0);
    }
}
