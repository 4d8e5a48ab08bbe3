//! Times to live as etcd leases. A lease costs etcd more than a key, so keys that expire at about the same
//! time share one, as kube-apiserver does it.

use std::time::Duration;

use bytes::Bytes;
use concord_store::{Error, Revision, Txn, Write};
use futures_util::stream;
use parking_lot::Mutex;
use tokio::time::Instant;
use tonic::{Response, Status, transport::Channel};

use crate::{
    call::{Client, Effect, with_leader},
    convert,
    pb::etcdserverpb::{
        LeaseGrantRequest, LeaseKeepAliveRequest, LeaseKeepAliveResponse, RangeRequest,
        lease_client::LeaseClient,
    },
    status::Answer,
};

/// A lease's id.
pub(crate) type Id = i64;

/// No lease.
pub(crate) const NONE: Id = 0;

/// Revoking a lease deletes its keys in one commit, which must not grow without bound.
const MAX_KEYS: usize = 1000;

/// Leases remembered. Forgetting one costs a grant, no more.
const MAX_LEASES: usize = 64;

/// The longest lease etcd grants, in seconds.
const MAX_TTL_SECONDS: u64 = 9_000_000_000;

/// The leases that may take more keys.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    open: Mutex<Vec<Lease>>,
    /// Held while a lease is granted, so that many writers who need one get the same.
    granting: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone, Copy)]
struct Lease {
    id: Id,
    /// No later than when etcd lets it expire: counted from before it was asked for.
    expires: Instant,
    keys: usize,
}

impl Leases {
    /// A lease for each write, 0 for those that do not expire.
    pub(crate) async fn for_writes(&self, client: &Client, txn: &Txn) -> Result<Vec<Id>, Error> {
        let mut ids = Vec::with_capacity(txn.writes.len());
        for write in &txn.writes {
            ids.push(match write {
                // Nobody else's key is to live on with it.
                Write::Put { ttl: Some(ttl), .. } if txn.refreshable => {
                    grant(client, *ttl, Duration::ZERO).await?.id
                }
                Write::Put { ttl: Some(ttl), .. } => self.for_ttl(client, *ttl).await?,
                Write::Put { ttl: None, .. } | Write::Delete { .. } => NONE,
            });
        }
        Ok(ids)
    }

    /// Forgets leases that etcd does not know any more.
    pub(crate) fn forget(&self, ids: &[Id]) {
        self.open.lock().retain(|lease| !ids.contains(&lease.id));
    }

    async fn for_ttl(&self, client: &Client, ttl: Duration) -> Result<Id, Error> {
        if let Some(id) = self.take(ttl, Instant::now()) {
            return Ok(id);
        }
        let _one_at_a_time = self.granting.lock().await;
        if let Some(id) = self.take(ttl, Instant::now()) {
            return Ok(id);
        }
        let lease = grant(client, ttl, slack(ttl)).await?;
        self.add(lease);
        Ok(lease.id)
    }

    /// Finds a lease that ends after `ttl` but not much later, and counts a key for it.
    fn take(&self, ttl: Duration, now: Instant) -> Option<Id> {
        let mut open = self.open.lock();
        open.retain(|lease| lease.expires > now);
        let latest = ttl.saturating_add(slack(ttl)).saturating_add(Duration::from_secs(1));
        let fits = |lease: &&mut Lease| {
            let left = lease.expires.duration_since(now);
            lease.keys < MAX_KEYS && left >= ttl && left <= latest
        };
        let lease = open.iter_mut().find(fits)?;
        lease.keys += 1;
        Some(lease.id)
    }

    fn add(&self, lease: Lease) {
        let mut open = self.open.lock();
        open.retain(|open| open.keys < MAX_KEYS);
        if open.len() >= MAX_LEASES {
            open.remove(0);
        }
        open.push(lease);
    }
}

/// How much later than asked for a key may expire, so that others can join its lease meanwhile.
fn slack(ttl: Duration) -> Duration {
    (ttl / 20).clamp(Duration::from_secs(1), Duration::from_secs(60))
}

async fn grant(client: &Client, ttl: Duration, slack: Duration) -> Result<Lease, Error> {
    let seconds = ttl.saturating_add(slack).as_secs().saturating_add(1);
    if seconds > MAX_TTL_SECONDS {
        return Err(Error::invalid(format!("a time to live of {ttl:?} is longer than etcd can keep")));
    }
    let request = LeaseGrantRequest { ttl: seconds.cast_signed() };
    let asked = Instant::now();
    // A grant whose answer is lost leaves a lease without keys, which expires.
    let response = client
        .call(Effect::Read, |member| {
            let mut lease = member.lease.clone();
            async move { lease.lease_grant(with_leader(request)).await }
        })
        .await
        .map_err(Answer::into_error)?;
    match u64::try_from(response.ttl) {
        Ok(granted) if response.error.is_empty() && granted >= seconds => {
            Ok(Lease { id: response.id, expires: asked + Duration::from_secs(granted), keys: 1 })
        }
        _ => Err(Error::unavailable(format!("etcd granted no lease of {seconds} s: {}", response.error))),
    }
}

/// Carries out [`concord_store::Store::refresh`]. Which lease a key has is asked every time: so nothing has to be remembered,
/// and a key that somebody else wrote since is noticed.
pub(crate) async fn refresh(
    client: &Client,
    key: &Bytes,
    revision: Revision,
    ttl: Duration,
) -> Result<bool, Error> {
    let request = RangeRequest { key: key.clone(), ..Default::default() };
    let read = client.call(Effect::Read, |member| {
        let (mut kv, request) = (member.kv.clone(), with_leader(request.clone()));
        async move { kv.range(request).await }
    });
    let found = read.await.map_err(Answer::into_error)?;
    let found = found.kvs.first().filter(|kv| convert::key_revision(kv.mod_revision) == revision);
    let Some(id) = found.map(|kv| kv.lease).filter(|id| *id != 0) else { return Ok(false) };
    let kept = client.call(Effect::Read, |member| keep_alive(member.lease.clone(), id));
    let left = kept.await.map_err(Answer::into_error)?.ttl;
    Ok(u64::try_from(left).is_ok_and(|left| Duration::from_secs(left) >= ttl))
}

async fn keep_alive(
    mut lease: LeaseClient<Channel>,
    id: Id,
) -> Result<Response<LeaseKeepAliveResponse>, Status> {
    let request = with_leader(stream::iter([LeaseKeepAliveRequest { id }]));
    let mut answers = lease.lease_keep_alive(request).await?.into_inner();
    let answer = answers.message().await?;
    answer.map(Response::new).ok_or_else(|| Status::unavailable("etcd did not answer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leases(expires: Instant, keys: usize) -> Leases {
        let leases = Leases::default();
        leases.add(Lease { id: 7, expires, keys });
        leases
    }

    #[test]
    fn a_lease_is_shared_only_while_it_is_long_and_not_too_long() {
        let now = Instant::now();
        let seconds = Duration::from_secs;
        let table = [
            (seconds(100), seconds(100), Some(7)),
            (seconds(105), seconds(100), Some(7)),
            (seconds(99), seconds(100), None),
            (seconds(120), seconds(100), None),
            (seconds(3), seconds(2), Some(7)),
            (seconds(3660), seconds(3600), Some(7)),
            (seconds(3700), seconds(3600), None),
        ];
        for (left, ttl, expected) in table {
            assert_eq!(leases(now + left, 1).take(ttl, now), expected, "{left:?} left for {ttl:?}");
        }
    }

    #[test]
    fn a_lease_takes_a_thousand_keys() {
        let now = Instant::now();
        let leases = leases(now + Duration::from_secs(100), 1);
        let taken = (0..2000).filter(|_| leases.take(Duration::from_secs(100), now).is_some()).count();
        assert_eq!(taken + 1, MAX_KEYS);
    }

    #[test]
    fn forgotten_and_expired_leases_are_not_used() {
        let now = Instant::now();
        let leases = leases(now + Duration::from_secs(2), 1);
        leases.forget(&[7]);
        assert_eq!(leases.take(Duration::from_secs(1), now), None);
        leases.add(Lease { id: 8, expires: now, keys: 1 });
        assert_eq!(leases.take(Duration::from_millis(1), now), None);
        assert!(leases.open.lock().is_empty(), "expired leases are dropped");
    }

    #[test]
    fn the_number_of_leases_is_bounded() {
        let leases = Leases::default();
        for id in 0..1000 {
            leases.add(Lease { id, expires: Instant::now(), keys: 1 });
        }
        assert_eq!(leases.open.lock().len(), MAX_LEASES);
    }
}
