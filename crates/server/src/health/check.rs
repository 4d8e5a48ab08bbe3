use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::HealthEndpoints;

/// Why a check failed. The text goes to the log only: health endpoints are open to everyone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unhealthy(pub String);

/// Something that can tell whether one part of the server is well.
#[async_trait]
pub trait HealthCheck: Send + Sync + 'static {
    /// The name in the verbose answer and in the path of the single check. Upstream's name where upstream
    /// has the check: monitoring looks for it.
    fn name(&self) -> &str;

    /// Whether the part is well now. An answer that takes too long counts as a failure.
    ///
    /// # Errors
    ///
    /// [`Unhealthy`] with what an operator should know.
    async fn check(&self) -> Result<(), Unhealthy>;
}

/// A check from a name and an async function.
pub fn check_fn<F, Fut>(name: impl Into<String>, check: F) -> impl HealthCheck
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), Unhealthy>> + Send + 'static,
{
    CheckFn { name: name.into(), check }
}

struct CheckFn<F> {
    name: String,
    check: F,
}

#[async_trait]
impl<F, Fut> HealthCheck for CheckFn<F>
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), Unhealthy>> + Send + 'static,
{
    fn name(&self) -> &str {
        &self.name
    }

    async fn check(&self) -> Result<(), Unhealthy> {
        (self.check)().await
    }
}

/// A check that is run once for all who ask at the same time or shortly after, so that the number of
/// askers, whom nobody authenticates, puts no load on what is checked.
pub struct Coalesced<C> {
    inner: C,
    keep: Duration,
    last: Mutex<Option<(Instant, Result<(), Unhealthy>)>>,
}

impl<C: HealthCheck> Coalesced<C> {
    /// Runs `inner` at most once per `keep`.
    pub fn new(inner: C, keep: Duration) -> Self {
        Self { inner, keep, last: Mutex::new(None) }
    }
}

#[async_trait]
impl<C: HealthCheck> HealthCheck for Coalesced<C> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn check(&self) -> Result<(), Unhealthy> {
        let mut last = self.last.lock().await;
        if let Some((at, result)) = &*last
            && at.elapsed() < self.keep
        {
            return result.clone();
        }
        let result = self.inner.check().await;
        *last = Some((Instant::now(), result.clone()));
        result
    }
}

#[async_trait]
impl<C: HealthCheck + ?Sized> HealthCheck for Arc<C> {
    fn name(&self) -> &str {
        (**self).name()
    }

    async fn check(&self) -> Result<(), Unhealthy> {
        (**self).check().await
    }
}

/// What the names of checks begin with that hold once a server has started.
const BOOT: &str = "poststarthook/";

/// A check that does not fail before its time.
struct Patient {
    inner: Arc<dyn HealthCheck>,
    until: tokio::time::Instant,
}

#[async_trait]
impl HealthCheck for Patient {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn check(&self) -> Result<(), Unhealthy> {
        if tokio::time::Instant::now() < self.until {
            return Ok(());
        }
        self.inner.check().await
    }
}

/// The checks of a server. They are reported in the order they were added, after `ping`.
#[derive(Clone)]
pub struct HealthChecks {
    live: Vec<Arc<dyn HealthCheck>>,
    ready: Vec<Arc<dyn HealthCheck>>,
    livez_grace_period: Duration,
}

impl Default for HealthChecks {
    fn default() -> Self {
        Self::new()
    }
}

impl HealthChecks {
    /// Only `ping`, which holds as long as the server answers at all.
    pub fn new() -> Self {
        let ping: Arc<dyn HealthCheck> = Arc::new(check_fn("ping", || async { Ok(()) }));
        Self { live: vec![ping.clone()], ready: vec![ping], livez_grace_period: Duration::ZERO }
    }

    /// Adds a check to all three endpoints: while it fails the server should get no traffic, and if it
    /// keeps failing a restart may help.
    #[must_use]
    pub fn with(mut self, check: impl HealthCheck) -> Self {
        let check: Arc<dyn HealthCheck> = Arc::new(check);
        self.live.push(check.clone());
        self.ready.push(check);
        self
    }

    /// Adds a check to `/readyz` only: while it fails the server should get no traffic, and it is expected
    /// to recover by itself.
    #[must_use]
    pub fn with_readiness(mut self, check: impl HealthCheck) -> Self {
        self.ready.push(Arc::new(check));
        self
    }

    /// Has `/livez` wait that long, from the moment the server serves, before what is only true once a server has started
    /// counts: whoever restarts what is not alive lets it start first.
    #[must_use]
    pub fn with_livez_grace_period(self, livez_grace_period: Duration) -> Self {
        Self { livez_grace_period, ..self }
    }

    /// Whether `/readyz` would say that the server is ready.
    pub async fn is_ready(&self) -> bool {
        for check in &self.ready {
            if check.check().await.is_err() {
                return false;
            }
        }
        true
    }

    pub(crate) fn endpoints(self) -> HealthEndpoints {
        let until = tokio::time::Instant::now() + self.livez_grace_period;
        let patient = |check: &Arc<dyn HealthCheck>| -> Arc<dyn HealthCheck> {
            match check.name().starts_with(BOOT) {
                true => Arc::new(Patient { inner: check.clone(), until }),
                false => check.clone(),
            }
        };
        let alive = self.live.iter().map(patient).collect();
        HealthEndpoints::new(self.live, alive, self.ready)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn counting(runs: &Arc<AtomicUsize>) -> impl HealthCheck + use<> {
        let runs = runs.clone();
        check_fn("counted", move || {
            let run = runs.fetch_add(1, Ordering::Relaxed);
            async move {
                tokio::task::yield_now().await;
                Err(Unhealthy(format!("run {run}")))
            }
        })
    }

    #[tokio::test]
    async fn concurrent_askers_share_one_run() {
        let runs = Arc::new(AtomicUsize::new(0));
        let check = Coalesced::new(counting(&runs), Duration::from_secs(3600));
        let results = futures_util::future::join_all((0..50).map(|_| check.check())).await;
        assert!(results.iter().all(|result| *result == Err(Unhealthy("run 0".to_owned()))));
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn an_old_result_is_not_reused() {
        let runs = Arc::new(AtomicUsize::new(0));
        let check = Coalesced::new(counting(&runs), Duration::ZERO);
        assert_eq!(check.check().await, Err(Unhealthy("run 0".to_owned())));
        assert_eq!(check.check().await, Err(Unhealthy("run 1".to_owned())));
    }

    #[tokio::test]
    async fn an_asker_who_gives_up_does_not_leave_others_waiting() {
        let runs = Arc::new(AtomicUsize::new(0));
        let check = Coalesced::new(counting(&runs), Duration::from_secs(3600));
        drop(futures_util::poll!(Box::pin(check.check())));
        assert_eq!(check.check().await, Err(Unhealthy("run 1".to_owned())));
    }
}
