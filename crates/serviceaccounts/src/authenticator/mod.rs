//! Whose token it is.

mod bound;
mod cache;
mod legacy;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use concord_meta::{UserInfo, go::quote};
use concord_registry::ObjectName;
use concord_replica::Snapshot;
use concord_server::{Authenticated, TokenAuthenticator, TokenUses, Unauthenticated, note_for_audit};

use self::cache::{Approval, Cache, Verified};
use crate::{
    Config, LEGACY_ISSUER, Objects, VerificationKeys,
    claims::{Bound, Claims, Legacy, PRIVATE},
    jwt::Unverified,
    objects::Kind,
};

/// How long to wait for the store to say what its newest state is.
const WAIT_FOR_STORE: Duration = Duration::from_secs(10);

/// What a signature that is not by the key is called, in upstream's words.
const BAD_SIGNATURE: &str = "go-jose/go-jose: error in cryptographic primitive";

/// Knows the tokens of service accounts.
pub struct ServiceAccountAuthenticator {
    config: Arc<Config>,
    trusted: ArcSwap<Trusted>,
    objects: Arc<Objects>,
    uses: Uses,
}

/// How often tokens were accepted, and found among those that were before.
#[derive(Default)]
struct Uses {
    legacy: AtomicU64,
    stale: AtomicU64,
    valid: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// The keys, and the tokens that they verified. Both go together: what a key verified is worth nothing once the key is
/// gone.
struct Trusted {
    keys: VerificationKeys,
    cache: Cache,
}

/// What a token says, by the way it was made.
enum Body {
    /// By a TokenRequest.
    Bound(Bound),
    /// For a Secret.
    Legacy(Legacy),
}

/// Somebody whose token was accepted.
pub(crate) struct Known {
    pub(crate) user: Arc<UserInfo>,
    /// Those of the audiences asked for that the token is for.
    pub(crate) audiences: Vec<String>,
}

impl ServiceAccountAuthenticator {
    /// Accepts what these keys signed, about these objects.
    pub fn new(config: Arc<Config>, keys: VerificationKeys, objects: Arc<Objects>) -> Self {
        let trusted = ArcSwap::from_pointee(Trusted { keys, cache: Cache::new() });
        Self { config, trusted, objects, uses: Uses::default() }
    }

    /// How often tokens were accepted since the start.
    pub fn uses(&self) -> TokenUses {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Uses { legacy, stale, valid, hits, misses } = &self.uses;
        TokenUses {
            legacy: read(legacy),
            stale: read(stale),
            valid: read(valid),
            hits: read(hits),
            misses: read(misses),
        }
    }

    fn count(&self, body: &Body) {
        let count = match body {
            Body::Legacy(_) => &self.uses.legacy,
            Body::Bound(bound) if bound.warn_after.is_some_and(|after| after < now()) => &self.uses.stale,
            Body::Bound(_) => &self.uses.valid,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Accepts only what these keys signed, from now on.
    pub fn replace_keys(&self, keys: VerificationKeys) {
        self.trusted.store(Arc::new(Trusted { keys, cache: Cache::new() }));
    }

    /// Whose token it is, for somebody who is one of these audiences. `None` if it is not the token of a service account
    /// of this issuer.
    pub(crate) async fn authenticate(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<Option<Known>, Unauthenticated> {
        let trusted = self.trusted.load_full();
        let digest = trusted.cache.digest(token);
        let verified = match trusted.cache.get(&digest) {
            Some(verified) => {
                self.uses.hits.fetch_add(1, Ordering::Relaxed);
                verified
            }
            None => {
                self.uses.misses.fetch_add(1, Ordering::Relaxed);
                let Some(verified) = self.verify(&trusted.keys, token)? else { return Ok(None) };
                trusted.cache.insert(digest, verified)
            }
        };
        let audiences = self.audiences(&verified.claims, audiences)?;
        let user = self.look_up(&verified, token).await.map_err(Unauthenticated)?;
        self.count(&verified.body);
        tell(&verified);
        Ok(Some(Known { user, audiences }))
    }

    /// What the token says, if one of the keys signed it.
    fn verify(&self, keys: &VerificationKeys, token: &str) -> Result<Option<Verified>, Unauthenticated> {
        let Some(unverified) = Unverified::parse(token) else { return Ok(None) };
        let issuer = unverified.issuer();
        let own = self.config.issuers.iter().any(|own| own == issuer);
        // The issuer of Secrets may have been made that of all tokens.
        let legacy = issuer == LEGACY_ISSUER && !(own && unverified.claims(PRIVATE));
        if !own && !legacy {
            return Ok(None);
        }
        let refuse = |why: &str| Unauthenticated(why.to_owned());
        let candidates = keys.candidates(unverified.key_id());
        if candidates.is_empty() {
            return Err(refuse("invalid signature, no keys found"));
        }
        let payload = candidates.iter().find_map(|key| unverified.verify(key));
        let payload = payload.ok_or_else(|| refuse(BAD_SIGNATURE))?;
        let claims = Claims::from_json(payload);
        let claims = claims.ok_or_else(|| refuse("service account token claims could not be read"))?;
        let body = match legacy {
            true => Body::Legacy(Legacy::from_json(payload)),
            false => Body::Bound(Bound::from_json(payload)),
        };
        self.verified(claims, body).map(Some).map_err(Unauthenticated)
    }

    /// A token with the keys of all that it depends on.
    fn verified(&self, claims: Claims, body: Body) -> Result<Verified, String> {
        let references: Vec<(Kind, ObjectName<'_>)> = match &body {
            Body::Bound(bound) => bound::references(bound),
            Body::Legacy(legacy) => {
                legacy.check(&claims.subject)?;
                if self.config.lookup { legacy::references(legacy) } else { Vec::new() }
            }
        };
        let key = |(kind, name): (Kind, ObjectName<'_>)| {
            self.objects.key(kind, name).map(|key| (kind, key)).map_err(|status| status.message)
        };
        let depends_on = references.into_iter().map(key).collect::<Result<_, _>>()?;
        Ok(Verified::new(claims, body, depends_on))
    }

    /// Which of the audiences asked for the token is for.
    fn audiences(&self, claims: &Claims, asked: &[String]) -> Result<Vec<String>, Unauthenticated> {
        let own = match &claims.audiences[..] {
            // Tokens in Secrets are for the API server alone.
            [] => &self.config.api_audiences,
            own => own,
        };
        let common: Vec<String> = asked.iter().filter(|one| own.contains(one)).cloned().collect();
        if common.is_empty() {
            let list = |items: &[String]| {
                format!("[{}]", items.iter().map(|item| quote(item)).collect::<Vec<_>>().join(" "))
            };
            let (own, asked) = (list(own), list(asked));
            return Err(Unauthenticated(format!(
                "token audiences {own} is invalid for the target audiences {asked}"
            )));
        }
        Ok(common)
    }

    /// The user, if everything that the token depends on is still there.
    async fn look_up(&self, verified: &Verified, token: &str) -> Result<Arc<UserInfo>, String> {
        let now = now();
        if let Body::Bound(_) = verified.body {
            verified.claims.check_time(now)?;
        }
        if let Ok(snapshot) = self.objects.replica().newest() {
            if let Some(user) = verified.approved(&snapshot, now) {
                return Ok(user);
            }
            if let Ok(approval) = self.check(verified, token, &snapshot, now) {
                return Ok(self.approve(verified, approval).await);
            }
        }
        // Another server may have made the objects a moment ago: nobody is refused for what is no longer so.
        let snapshot = self.objects.replica().consistent(WAIT_FOR_STORE).await;
        let snapshot = snapshot.map_err(|error| error.to_string())?;
        let approval = self.check(verified, token, &snapshot, now)?;
        Ok(self.approve(verified, approval).await)
    }

    fn check(
        &self,
        verified: &Verified,
        token: &str,
        snapshot: &Snapshot,
        now: i64,
    ) -> Result<Approval, String> {
        let (mut label, mut origin) = (None, None);
        let (user, until) = match &verified.body {
            Body::Bound(bound) => {
                let until = bound::check(&self.objects, bound, snapshot, now)?;
                (bound::user(bound, &verified.claims), until)
            }
            Body::Legacy(legacy) if self.config.lookup => {
                let checked = legacy::check(&self.objects, legacy, token, snapshot, now)?;
                (label, origin) = (checked.last_used, Some(checked.origin));
                (legacy::user(legacy), Some(legacy::end_of_day(now)))
            }
            Body::Legacy(legacy) => (legacy::user(legacy), None),
        };
        let revisions = verified.revisions(snapshot);
        Ok(Approval { user: Arc::new(user.authenticated()), revisions, until, label, origin })
    }

    /// Takes note of an approval, and of the day in the Secret of the token, if that has changed.
    async fn approve(&self, verified: &Verified, mut approval: Approval) -> Arc<UserInfo> {
        let user = approval.user.clone();
        let label = approval.label.take();
        verified.approve(approval);
        if let (Some(label), Body::Legacy(legacy)) = (label, &verified.body) {
            Box::pin(legacy::label_secret(&self.objects, legacy, label)).await;
        }
        user
    }
}

#[async_trait]
impl TokenAuthenticator for ServiceAccountAuthenticator {
    async fn authenticate_token(&self, token: &str) -> Authenticated {
        let known = self.authenticate(token, &self.config.api_audiences).await?;
        Ok(known.map(|known| known.user))
    }
}

/// Says for whoever audits that a token should not be used any more, in upstream's words.
fn tell(verified: &Verified) {
    match &verified.body {
        Body::Legacy(legacy) => {
            note_for_audit("authentication.k8s.io/legacy-token", &verified.claims.subject);
            if let Some(origin) = verified.origin() {
                note_for_audit(origin, &legacy.secret);
            }
        }
        Body::Bound(bound) => {
            let late = bound.warn_after.map(|after| now() - after).filter(|late| *late > 0);
            if let Some(late) = late {
                let subject = &verified.claims.subject;
                let why = format!("subject: {subject}, seconds after warning threshold: {late}");
                note_for_audit("authentication.k8s.io/stale-token", &why);
            }
        }
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
