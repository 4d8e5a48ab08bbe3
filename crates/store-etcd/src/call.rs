//! Asking the cluster: which member, how long, and what to do when it does not answer.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use concord_store::{Error, KeyRange, Revision};
use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tonic::{Request, Response, Status, metadata::MetadataValue};
use tracing::debug;

use crate::{
    config::Config,
    convert,
    member::{Member, Members, backoff},
    pb::etcdserverpb::{
        CompactionResponse, LeaseGrantResponse, LeaseKeepAliveResponse, RangeRequest, RangeResponse,
        ResponseHeader, StatusRequest, TxnResponse,
    },
    status::{Answer, Verdict, judge},
};

/// The longest pause between two attempts of one call.
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// A key that nobody writes, to read nothing but the revision with.
const NO_KEY: &[u8] = b"\0";

/// What may be done again when it is not known whether it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Changes nothing that matters: it is asked again, elsewhere.
    Read,
    /// Doing it twice is doing it once: it is asked again, but when time is up the outcome is unknown.
    Idempotent,
    /// Sent at most once.
    Write,
}

/// A response that tells which cluster it comes from.
pub(crate) trait Headed {
    fn header(&self) -> Option<&ResponseHeader>;
}

macro_rules! headed {
    ($($response:ty),*) => {
        $(impl Headed for $response {
            fn header(&self) -> Option<&ResponseHeader> {
                self.header.as_ref()
            }
        })*
    };
}

headed!(RangeResponse, TxnResponse, CompactionResponse, LeaseGrantResponse, LeaseKeepAliveResponse);

/// The cluster as callers see it.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) members: Members,
    /// The keys shown.
    pub(crate) visible: KeyRange,
    pub(crate) request_timeout: Duration,
    health_timeout: Duration,
    cluster: Cluster,
}

impl Client {
    pub(crate) async fn new(config: &Config) -> Result<Self, Error> {
        Ok(Self {
            members: Members::new(config).await?,
            visible: KeyRange::prefix(config.prefix.clone()),
            request_timeout: config.request_timeout,
            health_timeout: config.health_timeout,
            cluster: Cluster::default(),
        })
    }

    /// Makes one call, on as many members as it takes and `effect` allows, until the request timeout.
    pub(crate) async fn call<T, F>(
        &self,
        effect: Effect,
        mut rpc: impl FnMut(&Member) -> F,
    ) -> Result<T, Answer>
    where
        T: Headed,
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let deadline = Instant::now() + self.request_timeout;
        let mut failures = Failures::default();
        loop {
            let place = self.members.preferred();
            let member = self.members.at(place);
            let answer = timeout_at(self.attempt_deadline(effect, deadline), rpc(member)).await;
            let verdict = match answer {
                Ok(Ok(response)) => match self.cluster.check(response.get_ref().header()) {
                    Ok(()) => return Ok(response.into_inner()),
                    Err(reason) => Verdict::Unknown(reason),
                },
                Ok(Err(status)) => judge(&status),
                Err(_) => Verdict::Unknown("no answer in time".to_owned()),
            };
            if !matches!(verdict, Verdict::Answered(_)) {
                self.members.fail_over(place);
            }
            failures.note(effect, &member.url, verdict)?;
            let pause = failures.pause(self.members.len());
            if failures.denied >= self.members.len() || Instant::now() + pause >= deadline {
                return Err(failures.end().into());
            }
            sleep(pause).await;
        }
    }

    /// A member that does not answer must not use up the time in which another one would. A write
    /// cannot be tried elsewhere once sent, so it waits as long as allowed.
    fn attempt_deadline(&self, effect: Effect, deadline: Instant) -> Instant {
        let now = Instant::now();
        match (effect, u32::try_from(self.members.len())) {
            (Effect::Write, _) | (_, Err(_)) => now + self.request_timeout,
            (_, Ok(members)) => deadline.min(now + self.request_timeout / members),
        }
    }

    /// The newest revision, linearizably.
    pub(crate) async fn current_revision(&self) -> Result<Revision, Error> {
        let response = self.call(Effect::Read, no_key).await.map_err(Answer::into_error)?;
        convert::revision(response.header.as_ref())
    }

    /// Succeeds when one member has a leader and a quorum; otherwise says how each member failed.
    pub(crate) async fn health(&self) -> Result<(), Error> {
        let mut checks: FuturesUnordered<_> =
            self.members.all().iter().map(|member| self.check(member)).collect();
        let mut reasons = Vec::new();
        while let Some(check) = checks.next().await {
            match check {
                Ok(()) => return Ok(()),
                Err(reason) => reasons.push(reason),
            }
        }
        Err(Error::unavailable(reasons.join("; ")))
    }

    async fn check(&self, member: &Member) -> Result<(), String> {
        let reason = match timeout(self.health_timeout, no_key(member)).await {
            Err(_) => format!("no answer within {:?}", self.health_timeout),
            Ok(Ok(response)) => match self.cluster.check(response.get_ref().header()) {
                Ok(()) => return Ok(()),
                Err(reason) => reason,
            },
            Ok(Err(status)) => judge(&status).reason(),
        };
        Err(format!("{}: {reason}", member.url))
    }

    /// How large the file of the member is that is asked now, in bytes.
    pub(crate) async fn size(&self) -> Result<u64, Error> {
        let member = self.members.at(self.members.preferred());
        let mut maintenance = member.maintenance.clone();
        let asked = timeout(self.health_timeout, maintenance.status(StatusRequest {})).await;
        let reason = match asked {
            Ok(Ok(response)) => return Ok(u64::try_from(response.get_ref().db_size).unwrap_or(0)),
            Ok(Err(status)) => judge(&status).reason(),
            Err(_) => format!("no answer within {:?}", self.health_timeout),
        };
        Err(Error::unavailable(format!("{}: {reason}", member.url)))
    }

    /// Whether a response header comes from the cluster we have been talking to.
    pub(crate) fn check_cluster(&self, header: Option<&ResponseHeader>) -> Result<(), String> {
        self.cluster.check(header)
    }
}

/// A linearizable read of nothing.
fn no_key(member: &Member) -> impl Future<Output = Result<Response<RangeResponse>, Status>> + Send + use<> {
    let mut kv = member.kv.clone();
    let request = RangeRequest { key: NO_KEY.into(), count_only: true, ..Default::default() };
    async move { kv.range(with_leader(request)).await }
}

/// A request that a member without a leader refuses at once instead of sitting on it.
pub(crate) fn with_leader<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
    request
}

/// The cluster whose log this is, known from the first response. Members of another one in the endpoint
/// list would give revisions of another log.
#[derive(Debug, Default)]
struct Cluster(AtomicU64);

impl Cluster {
    fn check(&self, header: Option<&ResponseHeader>) -> Result<(), String> {
        let id = header.ok_or("the answer has no header: this is not an etcd")?.cluster_id;
        match self.0.compare_exchange(0, id, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(known) if known == id => Ok(()),
            Err(known) => Err(format!("a member of cluster {id:x}, not of {known:x} as the others")),
        }
    }
}

/// What went wrong so far in one call.
#[derive(Debug, Default)]
struct Failures {
    attempts: usize,
    /// Members in a row that will not take requests of ours.
    denied: usize,
    /// The last failure of each member.
    reasons: Vec<(String, String)>,
    maybe_happened: bool,
}

impl Failures {
    /// Records a failure, or ends the call with it.
    fn note(&mut self, effect: Effect, url: &str, verdict: Verdict) -> Result<(), Answer> {
        self.denied = if matches!(verdict, Verdict::Denied(_)) { self.denied + 1 } else { 0 };
        let reason = match (verdict, effect) {
            (Verdict::Answered(answer), _) => return Err(answer),
            (Verdict::Unknown(reason) | Verdict::NoSpace(reason), Effect::Write) => {
                return Err(Error::outcome_unknown(format!("{url}: {reason}")).into());
            }
            (Verdict::NoSpace(reason), _) => {
                return Err(Error::unavailable(format!("{url}: {reason}")).into());
            }
            (Verdict::Unknown(reason), _) => {
                self.maybe_happened |= effect == Effect::Idempotent;
                reason
            }
            (Verdict::NotSent(reason) | Verdict::Refused(reason) | Verdict::Denied(reason), _) => reason,
        };
        debug!(url, reason, "etcd member failed, trying the next");
        self.attempts += 1;
        self.reasons.retain(|(known, _)| known != url);
        self.reasons.push((url.to_owned(), reason));
        Ok(())
    }

    /// None until each member had its turn.
    fn pause(&self, members: usize) -> Duration {
        match (self.attempts / members, self.attempts % members) {
            (round, 0) => backoff(u32::try_from(round).unwrap_or(u32::MAX), MAX_BACKOFF),
            _ => Duration::ZERO,
        }
    }

    fn end(self) -> Error {
        let reasons: Vec<String> =
            self.reasons.into_iter().map(|(url, reason)| format!("{url}: {reason}")).collect();
        let reason = reasons.join("; ");
        if self.maybe_happened { Error::outcome_unknown(reason) } else { Error::unavailable(reason) }
    }
}
