//! What was asked, when, and what came back.

use bytes::Bytes;
use concord_store::{Commit, CompareFailed, KeyRange, KeyValue, Revision, Txn};

/// All keys of the histories.
pub const PREFIX: &str = "/registry/robustness/";

/// One call of one client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// When the call was made, in nanoseconds of a clock all records share.
    pub invoked: u64,
    /// When the answer was there.
    pub returned: u64,
    /// What was asked.
    pub action: Action,
    /// What came back.
    pub outcome: Outcome,
}

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A transaction, made recognisable in the log by [`signed`].
    Write {
        /// Its number, different for each.
        id: u64,
        /// What it does.
        txn: Txn,
    },
    /// All entries of a range.
    Read {
        /// Which range.
        range: KeyRange,
    },
}

/// What a client is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The transaction made this revision.
    Committed(Revision),
    /// A comparison failed.
    CompareFailed(Box<CompareFailed>),
    /// The entries at a revision.
    Entries(Revision, Vec<KeyValue>),
    /// Nothing happened.
    NotDone,
    /// Nobody knows.
    Unknown,
}

/// Adds a put that names the transaction, so that its commit can be told from all others.
pub fn signed(id: u64, client: usize, txn: Txn) -> Action {
    let txn = txn.put(format!("{PREFIX}signature/{client}"), id.to_string());
    Action::Write { id, txn }
}

/// The number of the transaction that made this commit.
pub fn signature(commit: &Commit) -> Option<u64> {
    let prefix = format!("{PREFIX}signature/");
    commit.changes.iter().find_map(|change| match change {
        concord_store::Change::Put(kv) if kv.key.starts_with(prefix.as_bytes()) => number(&kv.value),
        _ => None,
    })
}

fn number(value: &Bytes) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}
