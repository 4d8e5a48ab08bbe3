use super::*;

#[derive(Debug, PartialEq)]
enum Kind {
    Refused,
    Answered(Answer),
    Invalid,
    Denied,
    NoSpace,
    Unknown,
    NotSent,
}

fn kind(status: &Status) -> Kind {
    match judge(status) {
        Verdict::NotSent(_) => Kind::NotSent,
        Verdict::Refused(_) => Kind::Refused,
        Verdict::Answered(Answer::Error(Error::Invalid(_))) => Kind::Invalid,
        Verdict::Denied(_) => Kind::Denied,
        Verdict::Answered(answer) => Kind::Answered(answer),
        Verdict::NoSpace(_) => Kind::NoSpace,
        Verdict::Unknown(_) => Kind::Unknown,
    }
}

#[test]
fn what_etcd_says() {
    use Code::{
        DataLoss, DeadlineExceeded, FailedPrecondition, InvalidArgument, NotFound, OutOfRange,
        PermissionDenied, ResourceExhausted, Unauthenticated, Unavailable,
    };
    let table = [
        (OutOfRange, "mvcc: required revision has been compacted", Kind::Answered(Answer::Compacted)),
        (OutOfRange, "mvcc: required revision is a future revision", Kind::Answered(Answer::FutureRevision)),
        (NotFound, "requested lease not found", Kind::Answered(Answer::LeaseNotFound)),
        (OutOfRange, "too large lease TTL", Kind::Invalid),
        (InvalidArgument, "too many operations in txn request", Kind::Answered(Answer::TooManyOps)),
        (InvalidArgument, "request is too large", Kind::Answered(Answer::TooLarge)),
        (InvalidArgument, "key is not provided", Kind::Invalid),
        (InvalidArgument, "duplicate key given in txn request", Kind::Invalid),
        (InvalidArgument, "authentication failed, invalid user ID or password", Kind::Denied),
        (InvalidArgument, "user name is empty", Kind::Denied),
        (InvalidArgument, "revision of auth store is old", Kind::Denied),
        (Unauthenticated, "invalid auth token", Kind::Denied),
        (PermissionDenied, "permission denied", Kind::Denied),
        (FailedPrecondition, "cluster ID mismatch", Kind::Denied),
        (FailedPrecondition, "not capable", Kind::Refused),
        (FailedPrecondition, "not leader", Kind::Refused),
        (FailedPrecondition, "rpc not supported for learner", Kind::Refused),
        (Unavailable, "no leader", Kind::Refused),
        (ResourceExhausted, "too many requests", Kind::Refused),
        (Code::Unknown, "too many requests", Kind::Refused),
        (ResourceExhausted, "mvcc: database space exceeded", Kind::NoSpace),
        (DataLoss, "corrupt cluster", Kind::Denied),
        (Unavailable, "leader changed", Kind::Unknown),
        (Unavailable, "server stopped", Kind::Unknown),
        (Unavailable, "request timed out", Kind::Unknown),
        (Unavailable, "request timed out, possibly due to previous leader failure", Kind::Unknown),
        (Unavailable, "request timed out, possibly due to connection lost", Kind::Unknown),
        (Unavailable, "request timed out, waiting for the applied index took too long", Kind::Unknown),
        (Unavailable, "unhealthy cluster", Kind::Unknown),
        (Code::Cancelled, "request canceled", Kind::Unknown),
        (DeadlineExceeded, "context deadline exceeded", Kind::Unknown),
        (Unavailable, "something a later version says", Kind::Unknown),
    ];
    for (code, text, expected) in table {
        assert_eq!(kind(&Status::new(code, format!("etcdserver: {text}"))), expected, "{code:?} {text}");
    }
}

#[test]
fn what_others_on_the_way_say() {
    let table = [
        (Code::Unknown, "raft proposal dropped", Kind::Refused),
        (Code::Unknown, "something else", Kind::Unknown),
        (Code::Unimplemented, "unknown service etcdserverpb.KV", Kind::Denied),
        (Code::Unauthenticated, "HTTP 401", Kind::Denied),
        (Code::PermissionDenied, "HTTP 403", Kind::Denied),
        (Code::Unavailable, "HTTP 502 of a proxy", Kind::Unknown),
        (Code::Unavailable, "the connection was reset", Kind::Unknown),
        (Code::Internal, "h2 protocol error", Kind::Unknown),
        (Code::Cancelled, "h2 protocol error: operation was canceled", Kind::Unknown),
        (Code::DeadlineExceeded, "", Kind::Unknown),
        (Code::DataLoss, "", Kind::Unknown),
        (Code::Aborted, "", Kind::Unknown),
        (Code::AlreadyExists, "", Kind::Unknown),
        (Code::NotFound, "", Kind::Unknown),
        (Code::OutOfRange, "decoded message length too large", Kind::Unknown),
        (
            Code::ResourceExhausted,
            "grpc: received message larger than max (3 vs. 2)",
            Kind::Answered(Answer::TooLarge),
        ),
        (Code::ResourceExhausted, "ENHANCE_YOUR_CALM", Kind::Unknown),
        (Code::InvalidArgument, "malformed", Kind::Invalid),
        (Code::Ok, "", Kind::Unknown),
    ];
    for (code, text, expected) in table {
        assert_eq!(kind(&Status::new(code, text)), expected, "{code:?} {text}");
    }
}

#[test]
fn a_failed_dial_is_told_from_a_failed_connection() {
    let refused = || std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    let dial = Status::from_error(Box::new(ConnectError(Box::new(refused()))));
    assert_eq!(kind(&dial), Kind::NotSent);
    let later = Status::from_error(Box::new(refused()));
    assert_eq!(kind(&later), Kind::Unknown);
}

#[test]
fn a_message_says_what_lies_at_the_root() {
    let refused = std::io::Error::other("connection refused by 127.0.0.1:2379");
    let Verdict::NotSent(text) = judge(&Status::from_error(Box::new(ConnectError(Box::new(refused))))) else {
        panic!("a failed dial");
    };
    assert!(text.contains("127.0.0.1:2379"), "{text}");
}
