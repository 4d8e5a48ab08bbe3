//! The log: an ordered sequence of revisions over keys.
//!
//! Every commit gets the next revision, a revision is never reused, and all readers see revisions in
//! the same order. What a server stores, serves and watches is a view of this one sequence.
//!
//! The crate holds the [`Store`] trait, the values that cross it and, behind the `conformance`
//! feature, the suite that every engine passes. It knows keys and bytes and no engine; it never
//! interprets a value.
//!
//! Start with [`Store`], then [`Txn`] and [`Error`].

mod change;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod key;
mod scan;
mod txn;
mod unreadable;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;

pub use change::{Change, Commit, KeyValue};
pub use error::{CompareFailed, Error};
pub use key::{KeyRange, MAX_KEY_BYTES, check_key};
pub use scan::{Scan, ScanPage};
pub use txn::{Committed, Compare, Condition, MAX_REQUEST_BYTES, Txn, Write};
pub use unreadable::{unreadable, why_unreadable};

/// A position in the log. The first commit of an empty store has revision 2: revision 1 is the
/// empty store itself, as in etcd, and 0 is never a revision.
pub type Revision = u64;

/// What [`Store::follow`] yields: runs of commits whose revisions have no gap, neither inside a run
/// nor between runs.
pub type CommitStream = BoxStream<'static, Result<Vec<Commit>, Error>>;

/// A revisioned key-value log.
///
/// All methods may be called concurrently. Reads and writes are linearizable: an operation that
/// starts after another one was answered sees its effect.
///
/// # Cancel safety
///
/// Dropping a future of a read is always safe. Dropping the future of [`Store::transact`] leaves its
/// outcome unknown, exactly as [`Error::OutcomeUnknown`] does.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Evaluates the comparisons of `txn` and, if all hold, applies its writes under one new
    /// revision. It is durable when this returns.
    ///
    /// Two transactions have the same revision only if both are [`Txn::together`].
    ///
    /// A transaction that changes nothing (no writes, or only deletes of absent keys) takes no
    /// revision and reports the current one.
    ///
    /// # Errors
    ///
    /// [`Error::CompareFailed`] with the values asked for by [`Txn::read_on_failure`];
    /// [`Error::TooLarge`], [`Error::Invalid`] and [`Error::Unavailable`], after which nothing
    /// happened; [`Error::OutcomeUnknown`], after which it may have happened, may still happen, or
    /// may never happen.
    async fn transact(&self, txn: Txn) -> Result<Committed, Error>;

    /// Reads one page of a key range, in key order, at the latest or at an older revision.
    ///
    /// # Errors
    ///
    /// [`Error::Compacted`], [`Error::FutureRevision`], [`Error::Invalid`], [`Error::Unavailable`].
    async fn scan(&self, scan: Scan) -> Result<ScanPage, Error>;

    /// Streams every commit after `after`, without gap or duplicate, starting at `after + 1`.
    ///
    /// The stream survives outages by itself and waits them out. It ends only after an error:
    /// [`Error::Compacted`] when `after` (or, following an outage, the position reached) is older than the
    /// oldest revision left, [`Error::FutureRevision`] when `after` is not a revision yet,
    /// [`Error::Invalid`] when it is 0, [`Error::Unavailable`] when the engine was shut down.
    ///
    /// A commit may have no changes: its keys are outside what this store shows. It still counts, so
    /// that a follower which has seen revision `n` has seen everything up to `n`.
    fn follow(&self, after: Revision) -> CommitStream;

    /// The newest revision, linearizably: at least that of every commit answered before this call.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`].
    async fn current_revision(&self) -> Result<Revision, Error>;

    /// Forgets history: afterwards `revision` is the oldest that can be scanned or followed from.
    /// Values current at `revision` stay. Compacting what is compacted already does nothing.
    ///
    /// # Errors
    ///
    /// [`Error::FutureRevision`], [`Error::Unavailable`], [`Error::OutcomeUnknown`].
    async fn compact(&self, revision: Revision) -> Result<(), Error>;

    /// Whether the store can take writes now, for health endpoints.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] with what an operator should know.
    async fn health(&self) -> Result<(), Error>;

    /// Lets what `key` has since `revision` live on, at least `ttl` from now, without a new revision. It was put by a
    /// [`Txn::refreshable`] transaction with this time to live. `false` if it is gone, or something else by now.
    ///
    /// It is not durable: an engine that is started again goes by what was put.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] where nothing can be refreshed, [`Error::Unavailable`].
    async fn refresh(&self, _key: &Bytes, _revision: Revision, _ttl: Duration) -> Result<bool, Error> {
        Err(Error::invalid("this store refreshes no times to live"))
    }

    /// Reads one page as [`Store::scan`] does, with the values as they are kept: what is sealed is not opened.
    ///
    /// # Errors
    ///
    /// Those of [`Store::scan`].
    async fn scan_kept(&self, scan: Scan) -> Result<ScanPage, Error> {
        self.scan(scan).await
    }

    /// Whether a put of what `key` has since `revision` would be more than no change: the value would be kept in
    /// another form now, or is no longer the one of that revision. Only a store that seals values has several forms.
    ///
    /// # Errors
    ///
    /// Those of [`Store::scan`].
    async fn is_stale(&self, _key: &Bytes, _revision: Revision) -> Result<bool, Error> {
        Ok(false)
    }
}
