//! What every engine must do, as code: the same cases run on each of them.
//!
//! A case owns the keys below `/registry/conformance/<case>/` and assumes nothing about other keys,
//! the revision it starts at, or what was compacted before, so all cases may share one real etcd.
//! Cases run one after another: nobody else writes meanwhile.
//!
//! Cases panic where an engine is wrong; [`run_all`] prints which case was running.

mod bad_input;
mod compact;
mod concurrency;
mod follow;
mod scan;
mod ttl;
mod txn;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, future::BoxFuture};

use crate::{Commit, CommitStream, Committed, KeyRange, KeyValue, Revision, Scan, Store, Txn};

/// The prefix of every key the suite writes.
pub const PREFIX: &str = "/registry/conformance/";

/// No step of any case may take longer; far more than any engine needs, so it only ends hangs.
const PATIENCE: Duration = Duration::from_secs(60);

type Case = (&'static str, fn(Subject) -> BoxFuture<'static, ()>);

macro_rules! cases {
    ($($module:ident :: $case:ident),* $(,)?) => {
        &[$((concat!(stringify!($module), "_", stringify!($case)), |s| Box::pin($module::$case(s)))),*]
    };
}

const CASES: &[Case] = cases![
    txn::puts_and_deletes_move_the_key_revisions,
    txn::a_commit_takes_exactly_one_revision,
    txn::each_condition_holds_exactly_when_it_should,
    txn::a_failed_compare_changes_nothing_and_tells_the_current_values,
    txn::a_hundred_compares_on_keys_that_are_not_written,
    txn::what_changes_nothing_takes_no_revision,
    scan::pages_cover_a_range_once_while_others_write,
    scan::every_revision_can_be_read_again,
    scan::ranges_mean_what_they_say,
    scan::a_full_last_page_has_no_next,
    follow::a_follower_sees_every_commit_once,
    follow::following_from_any_revision_gives_the_rest,
    follow::a_follower_waits_for_what_comes,
    follow::a_long_backlog_arrives_whole,
    compact::history_before_the_compaction_is_gone,
    compact::compacting_again_does_nothing,
    ttl::an_expired_key_is_deleted_by_a_commit_of_its_own,
    ttl::a_new_put_replaces_the_time_to_live,
    ttl::many_keys_expire,
    ttl::a_refreshed_key_lives_on_without_a_revision,
    bad_input::senseless_requests_are_refused_and_change_nothing,
    bad_input::the_future_is_not_readable,
    bad_input::values_up_to_the_limit_are_kept_whole,
    concurrency::counters_lose_no_increment,
    concurrency::counters_lose_no_increment_together,
    concurrency::what_comes_together_is_as_if_it_came_one_after_the_other,
    concurrency::the_current_revision_is_never_behind_an_answer,
    concurrency::scans_agree_with_the_log,
];

/// Runs every case, each on the store that `fixture` gives for it.
///
/// # Panics
///
/// When the engine does not do what the trait says.
#[allow(clippy::print_stdout, reason = "test output: names the case a panic belongs to")]
pub async fn run_all<F>(mut fixture: impl FnMut() -> F)
where
    F: Future<Output = Arc<dyn Store>>,
{
    for (name, case) in CASES {
        println!("conformance: {name}");
        let subject = Subject { store: fixture().await, name };
        within(case(subject)).await;
    }
}

/// The store under test and the corner of the keyspace a case owns.
#[derive(Clone)]
struct Subject {
    store: Arc<dyn Store>,
    name: &'static str,
}

impl Subject {
    fn key(&self, name: impl AsRef<[u8]>) -> Bytes {
        let mut key = format!("{PREFIX}{}/", self.name).into_bytes();
        key.extend_from_slice(name.as_ref());
        key.into()
    }

    fn range(&self) -> KeyRange {
        KeyRange::prefix(self.key(""))
    }

    async fn commit(&self, txn: Txn) -> Revision {
        let Committed { revision } = self.store.transact(txn).await.expect("the transaction applies");
        revision
    }

    async fn put(&self, name: &str, value: impl Into<Bytes>) -> Revision {
        self.commit(Txn::new().put(self.key(name), value)).await
    }

    async fn delete(&self, name: &str) -> Revision {
        self.commit(Txn::new().delete(self.key(name))).await
    }

    async fn get(&self, name: &str) -> Option<KeyValue> {
        let page = self.store.scan(Scan::key(self.key(name))).await.expect("a key can be read");
        page.entries.into_iter().next()
    }

    async fn revision(&self) -> Revision {
        self.store.current_revision().await.expect("the revision can be read")
    }

    /// The case's own entries at one revision, as pairs without the case's prefix.
    async fn state_at(&self, revision: Revision) -> Vec<(Bytes, Bytes)> {
        let scan = Scan::new(self.range(), 100_000).at(revision);
        let page = self.store.scan(scan).await.expect("the revision can be read");
        assert_eq!(page.revision, revision, "a page says the revision it was asked for");
        let skip = self.key("").len();
        page.entries.into_iter().map(|kv| (kv.key.slice(skip..), kv.value)).collect()
    }
}

/// Fails instead of hanging.
async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("the engine hangs")
}

/// The next `count` commits of a stream; checks that they follow each other without a gap.
async fn take(stream: &mut CommitStream, count: usize) -> Vec<Commit> {
    let mut commits: Vec<Commit> = Vec::new();
    while commits.len() < count {
        let run = within(stream.next()).await.expect("the stream goes on").expect("the log can be followed");
        assert!(!run.is_empty(), "a run of commits is never empty");
        commits.extend(run);
    }
    for pair in commits.windows(2) {
        assert_eq!(pair[1].revision, pair[0].revision + 1, "revisions have no gap");
    }
    commits
}

/// Like [`take`], up to and including `revision`.
async fn take_until(stream: &mut CommitStream, after: Revision, revision: Revision) -> Vec<Commit> {
    let count = usize::try_from(revision - after).expect("a small difference");
    let commits = take(stream, count).await;
    assert_eq!(commits[0].revision, after + 1, "the first commit follows the start");
    commits
}
