use std::collections::VecDeque;

use concord_store::{Commit, Revision};

/// Followers further behind than this many bytes read from the file instead.
const RECENT_BYTES: usize = 16 << 20;

/// The newest commits, for followers that keep up.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    commits: VecDeque<(Commit, usize)>,
    bytes: usize,
}

impl Recent {
    /// Takes in the next commit, of roughly `size` bytes.
    pub(crate) fn push(&mut self, commit: Commit, size: usize) {
        self.commits.push_back((commit, size));
        self.bytes += size;
        while self.bytes > RECENT_BYTES && self.commits.len() > 1 {
            let Some((_, size)) = self.commits.pop_front() else { break };
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
}
