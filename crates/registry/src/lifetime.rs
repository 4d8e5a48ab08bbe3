use std::sync::atomic::{AtomicU64, Ordering};

use concord_store::Revision;
use tokio_util::sync::CancellationToken;

/// How long what is served lasts. A resource that is defined in the log is another one as soon as its definition is:
/// whoever watches the old one is told what happened until then, and comes back for the rest.
#[derive(Debug, Default)]
pub struct Lifetime {
    token: CancellationToken,
    /// The revision at which something else took its place, once that happened.
    end: AtomicU64,
}

impl Lifetime {
    /// It ended with the change at this revision.
    pub fn end(&self, revision: Revision) {
        self.end.store(revision, Ordering::Release);
        self.token.cancel();
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Whether it had ended before the change at this revision happened.
    pub(crate) fn was_over_at(&self, revision: Revision) -> bool {
        self.is_over() && revision > self.end.load(Ordering::Acquire)
    }

    pub(crate) async fn over(&self) {
        self.token.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_before_the_end_is_told() {
        let lifetime = Lifetime::default();
        assert!(!lifetime.is_over() && !lifetime.was_over_at(9));
        lifetime.end(7);
        assert!(lifetime.is_over() && lifetime.was_over_at(8) && !lifetime.was_over_at(7));
    }
}
