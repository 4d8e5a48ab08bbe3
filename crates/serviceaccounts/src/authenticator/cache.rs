//! Tokens whose signature has been verified.

use std::{
    collections::{HashMap, hash_map::RandomState},
    mem,
    sync::Arc,
};

use aws_lc_rs::hmac;
use bytes::Bytes;
use concord_meta::UserInfo;
use concord_replica::Snapshot;
use concord_store::Revision;
use parking_lot::{Mutex, RwLock};

use super::Body;
use crate::{claims::Claims, objects::Kind};

/// How many tokens a generation holds. Two are kept: twice what the largest clusters that upstream tests use at a time.
const GENERATION: usize = 16 * 1024;

/// What identifies a token. Without the key of this process nobody can tell which tokens are in the cache, nor make two
/// that collide.
pub(super) type Digest = [u8; 32];

/// A token that one of the keys signed. That its objects are still there is found out for each request.
pub(super) struct Verified {
    pub(super) claims: Claims,
    pub(super) body: Body,
    /// The keys of the objects that must be there.
    depends_on: Vec<(Kind, Bytes)>,
    /// The last time all was well.
    approval: Mutex<Option<Arc<Approval>>>,
}

/// All objects that a token depends on were as they should be, when they had these revisions.
pub(super) struct Approval {
    pub(super) user: Arc<UserInfo>,
    pub(super) revisions: Vec<Option<Revision>>,
    /// Until when they are, if nobody changes them; seconds since 1970.
    pub(super) until: Option<i64>,
    /// The day to note in the Secret of the token.
    pub(super) label: Option<super::legacy::LastUsed>,
    /// The audit annotation that says how the Secret of the token was made.
    pub(super) origin: Option<&'static str>,
}

impl Verified {
    pub(super) fn new(claims: Claims, body: Body, depends_on: Vec<(Kind, Bytes)>) -> Self {
        Self { claims, body, depends_on, approval: Mutex::new(None) }
    }

    /// The revisions of all objects that the token depends on.
    pub(super) fn revisions(&self, snapshot: &Snapshot) -> Vec<Option<Revision>> {
        self.current(snapshot).collect()
    }

    fn current(&self, snapshot: &Snapshot) -> impl Iterator<Item = Option<Revision>> {
        self.depends_on.iter().map(|(_, key)| snapshot.get(key).map(|entry| entry.mod_revision))
    }

    /// The user, if nothing has changed since all was well. Nothing is parsed for that.
    pub(super) fn approved(&self, snapshot: &Snapshot, now: i64) -> Option<Arc<UserInfo>> {
        let approval = self.approval.lock().clone()?;
        let lasting = approval.until.is_none_or(|until| now <= until);
        let unchanged = lasting && self.current(snapshot).eq(approval.revisions.iter().copied());
        unchanged.then(|| approval.user.clone())
    }

    /// How the Secret of the token was made, when all was well.
    pub(super) fn origin(&self) -> Option<&'static str> {
        self.approval.lock().as_ref().and_then(|approval| approval.origin)
    }

    pub(super) fn approve(&self, approval: Approval) {
        *self.approval.lock() = Some(Arc::new(approval));
    }
}

/// The tokens that were used last, by their digests. When a generation is full it becomes the old one and the one
/// before is forgotten; what is used in the meantime moves to the young one. So there is a bound, and what is in use
/// stays.
pub(super) struct Cache {
    key: hmac::Key,
    generations: RwLock<Generations>,
    capacity: usize,
}

#[derive(Default)]
struct Generations {
    young: HashMap<Digest, Arc<Verified>, RandomState>,
    old: HashMap<Digest, Arc<Verified>, RandomState>,
}

impl Cache {
    pub(super) fn new() -> Self {
        Self::with_capacity(GENERATION)
    }

    fn with_capacity(capacity: usize) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &rand::random::<[u8; 32]>());
        Self { key, generations: RwLock::default(), capacity }
    }

    pub(super) fn digest(&self, token: &str) -> Digest {
        let mut digest = Digest::default();
        digest.copy_from_slice(hmac::sign(&self.key, token.as_bytes()).as_ref());
        digest
    }

    pub(super) fn get(&self, digest: &Digest) -> Option<Arc<Verified>> {
        let found = {
            let generations = self.generations.read();
            if let Some(verified) = generations.young.get(digest) {
                return Some(verified.clone());
            }
            generations.old.get(digest).cloned()?
        };
        self.put(*digest, found.clone());
        Some(found)
    }

    pub(super) fn insert(&self, digest: Digest, verified: Verified) -> Arc<Verified> {
        let verified = Arc::new(verified);
        self.put(digest, verified.clone());
        verified
    }

    fn put(&self, digest: Digest, verified: Arc<Verified>) {
        let mut generations = self.generations.write();
        if generations.young.len() >= self.capacity {
            generations.old = mem::take(&mut generations.young);
        }
        generations.young.insert(digest, verified);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Legacy;

    fn verified(subject: &str) -> Verified {
        let claims = Claims { subject: subject.to_owned(), ..Claims::default() };
        Verified::new(claims, Body::Legacy(Legacy::default()), Vec::new())
    }

    fn has(cache: &Cache, token: &str) -> bool {
        cache.get(&cache.digest(token)).is_some_and(|found| found.claims.subject == token)
    }

    #[test]
    fn what_is_used_stays_and_the_rest_is_bounded() {
        let cache = Cache::with_capacity(4);
        for number in 0..100 {
            let token = format!("token {number}");
            cache.insert(cache.digest(&token), verified(&token));
            assert!(has(&cache, "token 0"), "{number}");
        }
        let generations = cache.generations.read();
        assert!(generations.young.len() <= 4 && generations.old.len() <= 4);
        drop(generations);
        assert!(!has(&cache, "token 50"));
    }

    #[test]
    fn two_processes_have_nothing_in_common() {
        assert_ne!(Cache::new().digest("token"), Cache::new().digest("token"));
    }
}
