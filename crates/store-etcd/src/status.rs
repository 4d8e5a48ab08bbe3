//! What a failed RPC means: the one place that reads etcd's error texts and gRPC codes.
//!
//! The question for each is whether a write can have happened. Where etcd's answer does not settle it, it
//! may have: a caller that re-reads in vain loses nothing, one that was told a lie may lose data.

use concord_store::Error;
use tonic::{Code, ConnectError, Status};

use crate::member::chain;

/// What a failed RPC means.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// The member could not be reached. The request never left; another member may do.
    NotSent(String),
    /// The member refused to look at the request. Nothing happened; another member, or this one a little
    /// later, may do.
    Refused(String),
    /// The member takes no such request from us, now or later. Nothing happened; another member may do.
    Denied(String),
    /// etcd looked at the request and answered. Nothing happened and asking again changes nothing.
    Answered(Answer),
    /// The database is full. Nothing but an operator changes that, but the write may have happened: etcd
    /// applies the one that crosses the quota and reports this error all the same.
    NoSpace(String),
    /// It may have happened.
    Unknown(String),
}

impl Verdict {
    /// What went wrong, for people.
    pub(crate) fn reason(self) -> String {
        match self {
            Self::NotSent(reason)
            | Self::Refused(reason)
            | Self::Denied(reason)
            | Self::NoSpace(reason)
            | Self::Unknown(reason) => reason,
            Self::Answered(answer) => answer.into_error().to_string(),
        }
    }
}

/// Answers to a request that was understood and not carried out. What some mean depends on the request.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    /// The revision was compacted.
    Compacted,
    /// The revision does not exist yet.
    FutureRevision,
    /// The lease expired.
    LeaseNotFound,
    /// More operations in a transaction than `--max-txn-ops`.
    TooManyOps,
    /// More bytes than `--max-request-bytes`.
    TooLarge,
    /// Means the same for all requests.
    Error(Error),
}

impl Answer {
    /// For requests to which no answer means anything in particular.
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Error(error) => error,
            other => {
                Error::unavailable(format!("etcd gave an answer that does not fit the request: {other:?}"))
            }
        }
    }
}

impl From<Error> for Answer {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Reads the failure of one RPC.
pub(crate) fn judge(status: &Status) -> Verdict {
    if is_connect_error(status) {
        return Verdict::NotSent(describe(status));
    }
    match status.message().strip_prefix("etcdserver: ") {
        // The text decides: some versions send some of these with code Unknown.
        Some(text) => by_text(text, status),
        None => by_code(status),
    }
}

fn by_text(text: &str, status: &Status) -> Verdict {
    match text {
        "mvcc: required revision has been compacted" => Verdict::Answered(Answer::Compacted),
        "mvcc: required revision is a future revision" => Verdict::Answered(Answer::FutureRevision),
        "requested lease not found" => Verdict::Answered(Answer::LeaseNotFound),
        "too many operations in txn request" => Verdict::Answered(Answer::TooManyOps),
        "request is too large" => Verdict::Answered(Answer::TooLarge),
        "too large lease TTL" => Verdict::Answered(Error::invalid("the time to live is too long for etcd").into()),
        "mvcc: database space exceeded" | "no space" => Verdict::NoSpace(format!(
            "{}; compact and defragment it or raise --quota-backend-bytes, then disarm the alarm",
            status.message()
        )),
        // Checked before a request is looked at: we ask every member to have a leader.
        "no leader"
        // Too far behind in applying to take more proposals.
        | "too many requests"
        // Still joining or upgrading.
        | "not capable" | "not leader" | "rpc not supported for learner" => Verdict::Refused(describe(status)),
        // The corruption alarm: every request is turned away until an operator acted.
        "corrupt cluster" => Verdict::Denied(describe(status)),
        // "leader changed", "request timed out", "server stopped" and what later versions add. The proposal
        // may be in the log already.
        _ => by_code(status),
    }
}

fn by_code(status: &Status) -> Verdict {
    let text = describe(status);
    match status.code() {
        // raft would not take the proposal: no leader, or leadership is being handed over.
        Code::Unknown if status.message() == "raft proposal dropped" => Verdict::Refused(text),
        Code::InvalidArgument if is_auth(status.message()) => Verdict::Denied(text),
        // etcd checks arguments before it proposes, or when it applies and then leaves the rest undone.
        Code::InvalidArgument => Verdict::Answered(Error::Invalid(text).into()),
        // Credentials, or a server without etcd's API; checked before anything is done.
        Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented | Code::FailedPrecondition => {
            Verdict::Denied(text)
        }
        // The member's gRPC layer: its bound is max-request-bytes and some more.
        Code::ResourceExhausted if status.message().starts_with("grpc: received message larger") => {
            Verdict::Answered(Answer::TooLarge)
        }
        _ => Verdict::Unknown(text),
    }
}

/// etcd calls wrong credentials and a stale token invalid arguments.
fn is_auth(message: &str) -> bool {
    ["authentication failed", "revision of auth store", "user name", "permission", "auth management"]
        .iter()
        .any(|part| message.contains(part))
}

/// Whether the connection was never made. tonic dials before it hands the request over.
fn is_connect_error(status: &Status) -> bool {
    let mut source = std::error::Error::source(status);
    while let Some(error) = source {
        if error.is::<ConnectError>() {
            return true;
        }
        source = error.source();
    }
    false
}

/// The status for people: what etcd said, or for a failure on the way what lies at its root.
fn describe(status: &Status) -> String {
    let root = std::error::Error::source(status).map(chain).unwrap_or_default();
    match (status.message(), root.as_str()) {
        ("", "") => format!("{:?}", status.code()),
        (message, "") => message.to_owned(),
        (_, root) => root.to_owned(),
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
