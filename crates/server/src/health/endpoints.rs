use std::{collections::BTreeSet, fmt::Write as _, sync::Arc, time::Duration};

use futures_util::future::join_all;
use http::StatusCode;

use super::{HealthCheck, Unhealthy};
use crate::{
    http::{Response, text},
    metrics::Slis,
};

/// A check that has not answered by then has failed: who asks, usually a load balancer or a kubelet, gives
/// up after a few seconds, and a named failure tells more than none. Upstream's bound for its etcd checks.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// `/healthz`, `/livez` and `/readyz`, and each check at a path below them.
pub(crate) struct HealthEndpoints {
    endpoints: [Endpoint; 3],
    slis: Slis,
}

struct Endpoint {
    name: &'static str,
    checks: Vec<Arc<dyn HealthCheck>>,
}

/// How one check went.
enum Outcome {
    Excluded,
    Passed,
    Failed(Unhealthy),
}

impl HealthEndpoints {
    pub(crate) fn new(
        healthy: Vec<Arc<dyn HealthCheck>>,
        live: Vec<Arc<dyn HealthCheck>>,
        ready: Vec<Arc<dyn HealthCheck>>,
    ) -> Self {
        let endpoints = [
            Endpoint { name: "healthz", checks: healthy },
            Endpoint { name: "livez", checks: live },
            Endpoint { name: "readyz", checks: ready },
        ];
        Self { endpoints, slis: Slis::new() }
    }

    /// Every path that is answered.
    pub(crate) fn paths(&self) -> impl Iterator<Item = String> {
        self.endpoints.iter().flat_map(|endpoint| {
            let root = format!("/{}", endpoint.name);
            let single =
                endpoint.checks.iter().map(move |check| format!("/{}/{}", endpoint.name, check.name()));
            std::iter::once(root).chain(single)
        })
    }

    /// How the checks went that were asked for.
    pub(crate) fn slis(&self) -> Response {
        self.slis.scrape()
    }

    /// The answer to a request for `path`, or `None` if it is not a health path.
    pub(crate) async fn answer(&self, path: &str, query: &str) -> Option<Response> {
        let path = path.strip_prefix('/')?;
        let (name, check) = path.split_once('/').map_or((path, None), |(name, check)| (name, Some(check)));
        let endpoint = self.endpoints.iter().find(|endpoint| endpoint.name == name)?;
        match check {
            None => Some(endpoint.report(query, &self.slis).await),
            Some(check) => {
                let check = endpoint.checks.iter().find(|candidate| candidate.name() == check)?;
                Some(single(name, &**check).await)
            }
        }
    }
}

impl Endpoint {
    async fn report(&self, query: &str, slis: &Slis) -> Response {
        let query = HealthQuery::parse(query);
        let outcomes = join_all(self.checks.iter().map(|check| query.run(&**check))).await;
        let mut lines = String::new();
        let mut failed = false;
        for (check, outcome) in self.checks.iter().zip(outcomes) {
            failed |= matches!(outcome, Outcome::Failed(_));
            if !matches!(outcome, Outcome::Excluded) {
                slis.observe(check.name(), self.name, matches!(outcome, Outcome::Passed));
            }
            self.write_line(&mut lines, check.name(), &outcome);
        }
        let unknown =
            query.excluded.iter().filter(|name| self.checks.iter().all(|check| check.name() != **name));
        let unknown: Vec<_> = unknown.map(|name| format!("{name:?}")).collect();
        if !unknown.is_empty() {
            let unknown = unknown.join(",");
            lines += &format!("warn: some health checks cannot be excluded: no matches for {unknown}\n");
        }
        // A failure is always told verbosely, a success only when asked for.
        match (failed, query.verbose) {
            (true, _) => {
                text(StatusCode::INTERNAL_SERVER_ERROR, format!("{lines}{} check failed\n", self.name))
            }
            (false, true) => text(StatusCode::OK, format!("{lines}{} check passed\n", self.name)),
            (false, false) => text(StatusCode::OK, "ok"),
        }
    }

    fn write_line(&self, lines: &mut String, name: &str, outcome: &Outcome) {
        let written = match outcome {
            Outcome::Excluded => writeln!(lines, "[+]{name} excluded: ok"),
            Outcome::Passed => writeln!(lines, "[+]{name} ok"),
            Outcome::Failed(reason) => {
                log_failure(self.name, name, reason);
                writeln!(lines, "[-]{name} failed: reason withheld")
            }
        };
        written.expect("writing to a string cannot fail");
    }
}

/// Upstream tells the reason here, to those whom authorization lets through. Here these paths are open to
/// everybody, so it stays in the log.
async fn single(endpoint: &str, check: &dyn HealthCheck) -> Response {
    match run(check).await {
        Ok(()) => text(StatusCode::OK, "ok"),
        Err(reason) => {
            log_failure(endpoint, check.name(), &reason);
            text(StatusCode::INTERNAL_SERVER_ERROR, "internal server error: reason withheld\n")
        }
    }
}

async fn run(check: &dyn HealthCheck) -> Result<(), Unhealthy> {
    let late = |_| Err(Unhealthy(format!("no answer within {CHECK_TIMEOUT:?}")));
    tokio::time::timeout(CHECK_TIMEOUT, check.check()).await.unwrap_or_else(late)
}

fn log_failure(endpoint: &str, check: &str, reason: &Unhealthy) {
    tracing::warn!(endpoint, check, %reason, "A health check failed.");
}

/// What the caller asked for.
struct HealthQuery {
    verbose: bool,
    excluded: BTreeSet<String>,
}

impl HealthQuery {
    fn parse(query: &str) -> Self {
        let mut parsed = Self { verbose: false, excluded: BTreeSet::new() };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "verbose" => parsed.verbose = true,
                "exclude" => {
                    parsed.excluded.insert(value.into_owned());
                }
                _ => {}
            }
        }
        parsed
    }

    async fn run(&self, check: &dyn HealthCheck) -> Outcome {
        if self.excluded.contains(check.name()) {
            return Outcome::Excluded;
        }
        run(check).await.map_or_else(Outcome::Failed, |()| Outcome::Passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HealthChecks, check_fn, http::testing::read};

    /// `etcd` is well, `informer-sync` is not.
    fn endpoints() -> HealthEndpoints {
        HealthChecks::new()
            .with(check_fn("etcd", || async { Ok(()) }))
            .with_readiness(check_fn("informer-sync", || async { Err(Unhealthy("a secret".to_owned())) }))
            .endpoints()
    }

    async fn check(path_and_query: &str, status: u16, body: &str) {
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        let response = endpoints().answer(path, query).await.expect("a health path");
        assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        assert_eq!(read(response).await, (status, body.to_owned()), "{path_and_query}");
    }

    #[tokio::test]
    async fn health_is_told_as_upstream_tells_it() {
        check("/healthz", 200, "ok").await;
        check("/livez", 200, "ok").await;
        check("/livez?verbose", 200, "[+]ping ok\n[+]etcd ok\nlivez check passed\n").await;
        check("/livez?verbose=false", 200, "[+]ping ok\n[+]etcd ok\nlivez check passed\n").await;
        let failed =
            "[+]ping ok\n[+]etcd ok\n[-]informer-sync failed: reason withheld\nreadyz check failed\n";
        check("/readyz", 500, failed).await;
        check("/readyz?verbose", 500, failed).await;
    }

    #[tokio::test]
    async fn how_checks_went_can_be_read() {
        let endpoints = endpoints();
        for query in ["", "exclude=etcd"] {
            endpoints.answer("/readyz", query).await.expect("a health path");
        }
        let (status, body) = read(endpoints.slis()).await;
        assert_eq!(status, 200);
        for line in [
            "kubernetes_healthcheck{name=\"etcd\",type=\"readyz\"} 1\n",
            "kubernetes_healthcheck{name=\"informer-sync\",type=\"readyz\"} 0\n",
            "kubernetes_healthchecks_total{name=\"etcd\",status=\"success\",type=\"readyz\"} 1\n",
            "kubernetes_healthchecks_total{name=\"informer-sync\",status=\"error\",type=\"readyz\"} 2\n",
        ] {
            assert!(body.contains(line), "{line} is not in {body}");
        }
    }

    #[tokio::test]
    async fn checks_can_be_excluded() {
        check("/readyz?exclude=informer-sync", 200, "ok").await;
        check(
            "/readyz?verbose&exclude=informer-sync&exclude=etcd",
            200,
            "[+]ping ok\n[+]etcd excluded: ok\n[+]informer-sync excluded: ok\nreadyz check passed\n",
        )
        .await;
        check(
            "/livez?verbose&exclude=b&exclude=a%20c",
            200,
            "[+]ping ok\n[+]etcd ok\n\
             warn: some health checks cannot be excluded: no matches for \"a c\",\"b\"\n\
             livez check passed\n",
        )
        .await;
    }

    #[tokio::test]
    async fn each_check_has_a_path_of_its_own() {
        check("/readyz/etcd", 200, "ok").await;
        check("/livez/ping", 200, "ok").await;
        check("/readyz/informer-sync", 500, "internal server error: reason withheld\n").await;
        for unknown in ["/livez/informer-sync", "/readyz/none", "/readyz/", "/ready", "readyz", "/"] {
            assert!(endpoints().answer(unknown, "").await.is_none(), "{unknown}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_may_start_before_it_counts_as_dead() {
        let not_finished = || async { Err(Unhealthy("not finished".to_owned())) };
        let endpoints = HealthChecks::new()
            .with(check_fn("poststarthook/something", not_finished))
            .with_livez_grace_period(Duration::from_secs(10))
            .endpoints();
        let status = async |endpoint: &str| {
            endpoints.answer(endpoint, "").await.expect("a health path").status().as_u16()
        };
        assert_eq!(
            [status("/livez").await, status("/healthz").await, status("/readyz").await],
            [200, 500, 500]
        );
        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(status("/livez").await, 500);
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_that_hangs_fails_and_does_not_hold_up_the_others() {
        let hanging = HealthChecks::new()
            .with(check_fn("hangs", std::future::pending))
            .with(check_fn("hangs-too", std::future::pending))
            .endpoints();
        let asked = tokio::time::Instant::now();
        let (status, body) = read(hanging.answer("/livez", "").await.expect("a health path")).await;
        assert_eq!(status, 500);
        assert!(
            body.contains("[+]ping ok\n[-]hangs failed") && body.contains("[-]hangs-too failed"),
            "{body}"
        );
        assert!(asked.elapsed() < 2 * CHECK_TIMEOUT, "checks run side by side");
    }
}
