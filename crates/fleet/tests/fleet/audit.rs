//! Reads the log afterwards and proves that everybody kept to what they said.

use concord_store::Store as _;
use concord_testing::audit::Auditor;
use futures_util::StreamExt as _;

use crate::support::Log;

/// Replays every revision, and answers how many objects were looked at.
pub(crate) async fn audit(log: &Log, resources: &[(&str, &str)]) -> usize {
    let last = log.revision().await;
    let mut commits = log.store.follow(1);
    let mut auditor = Auditor::new(resources);
    let mut seen = 1;
    while seen < last {
        for commit in commits.next().await.expect("more").expect("readable") {
            seen = commit.revision;
            auditor.commit(&commit).unwrap_or_else(|complaint| panic!("{complaint}"));
        }
    }
    auditor.checked()
}
