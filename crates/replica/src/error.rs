use concord_store::Revision;

/// Why a replica did not answer a read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The first load is not finished; [`crate::Status::last_error`] says what holds it up.
    #[error("the replica has not loaded the store yet")]
    NotLoaded,

    /// The revision has left the history window.
    #[error("revision {requested} is no longer in the history window, the oldest one left is {oldest}")]
    Expired {
        /// What was asked for.
        requested: Revision,
        /// The oldest revision that can be answered.
        oldest: Revision,
    },

    /// The replica has not seen this revision, at least not in time.
    #[error("revision {requested} is not here yet, the newest one is {current}")]
    TooNew {
        /// What was asked for.
        requested: Revision,
        /// The newest revision of the replica.
        current: Revision,
    },

    /// The store could not say how new it is.
    #[error(transparent)]
    Store(#[from] concord_store::Error),

    /// The store is at an older revision than the replica has seen: it was restored from a backup.
    /// The replica drops what it has and loads again.
    #[error("the store went back to revision {current}, the replica has seen {seen}: loading again")]
    StoreWentBack {
        /// What the replica had seen before it asked.
        seen: Revision,
        /// What the store answered.
        current: Revision,
    },

    /// A view panicked (or the replica itself, which would be a bug), so that what is derived from the
    /// log can no longer be trusted. The replica has stopped; the process should be restarted.
    #[error("the replica has stopped: {reason}")]
    Failed {
        /// What panicked, and with which words.
        reason: String,
    },

    /// The replica was shut down.
    #[error("the replica was shut down")]
    Shutdown,
}

/// Why a subscription got no further. What was delivered before is complete up to
/// [`crate::Subscription::bookmark`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Closed {
    /// The subscriber was too slow for its bounded buffer.
    #[error("the subscriber fell too far behind")]
    Lagged,
    /// The store no longer has all changes since the last one the replica saw.
    #[error("the changes that come next have been compacted")]
    Compacted,
    /// The replica stopped, see [`Error::Failed`].
    #[error("the replica has failed")]
    Failed,
    /// The replica was shut down.
    #[error("the replica was shut down")]
    Shutdown,
}
