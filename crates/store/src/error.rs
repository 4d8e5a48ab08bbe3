use crate::{KeyValue, Revision};

/// Why a store did not do what it was asked.
///
/// The variants are what a caller branches on; the texts are for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A comparison of the transaction did not hold. Nothing was written.
    #[error("a compared key has changed: the store is at revision {}", .0.revision)]
    CompareFailed(Box<CompareFailed>),

    /// The revision asked for was compacted away.
    #[error("the requested revision has been compacted, the oldest one left is {oldest}")]
    Compacted {
        /// The oldest revision that can still be scanned or followed from.
        oldest: Revision,
    },

    /// The revision asked for does not exist yet.
    #[error("revision {requested} does not exist yet, the newest one is {current}")]
    FutureRevision {
        /// What was asked for.
        requested: Revision,
        /// The newest revision when the store was asked.
        current: Revision,
    },

    /// The store cannot answer now. Nothing happened; asking again later may help.
    #[error("the store is unavailable: {reason}")]
    Unavailable {
        /// What went wrong and, where known, what to do about it.
        reason: String,
    },

    /// A write was sent and no answer came back: it may have happened, or may still happen. Callers
    /// read the keys again before they decide anything.
    #[error("the outcome of the write is unknown: {reason}")]
    OutcomeUnknown {
        /// What cut the answer off.
        reason: String,
    },

    /// A key or the whole request exceeds a limit. Nothing happened.
    #[error("{what} is too large: {size} exceeds the limit of {limit}")]
    TooLarge {
        /// What is too large, with its unit.
        what: &'static str,
        /// How large it is.
        size: usize,
        /// How large it may be.
        limit: usize,
    },

    /// The request makes no sense to any store. Nothing happened.
    #[error("invalid store request: {0}")]
    Invalid(String),
}

/// What a failed comparison tells the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompareFailed {
    /// The revision at which the comparisons were evaluated and `current` was read.
    pub revision: Revision,
    /// For each key given to [`crate::Txn::read_on_failure`], in that order, its value or `None` if
    /// the key is absent.
    pub current: Vec<Option<KeyValue>>,
}

impl Error {
    /// An [`Error::Unavailable`] for this reason.
    pub fn unavailable(reason: impl std::fmt::Display) -> Self {
        Self::Unavailable { reason: reason.to_string() }
    }

    /// An [`Error::OutcomeUnknown`] for this reason.
    pub fn outcome_unknown(reason: impl std::fmt::Display) -> Self {
        Self::OutcomeUnknown { reason: reason.to_string() }
    }

    /// An [`Error::Invalid`] for this reason.
    pub fn invalid(reason: impl std::fmt::Display) -> Self {
        Self::Invalid(reason.to_string())
    }
}
