use std::sync::Arc;

use http::{HeaderValue, StatusCode, header::RETRY_AFTER};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::held::hold;
use crate::{
    RequestContext as _, Terminated, UserInfo,
    http::{Filter, Request, Response, text},
    metrics::InFlight,
};

/// Limits how many requests run at once, reads and writes apart, so that a flood of the one does not stop
/// the other. A request runs until its answer has been made. Requests that last do not count, and privileged users always get through: somebody must be
/// able to find out what is going on.
pub(crate) struct MaxInFlight<H> {
    inner: H,
    reads: Pool,
    writes: Pool,
}

/// The places of one kind.
struct Pool {
    /// `None` for no limit.
    permits: Option<Arc<Semaphore>>,
    running: Arc<InFlight>,
}

impl<H> MaxInFlight<H> {
    /// Zero is no limit, as in upstream's flags.
    pub(crate) fn new(inner: H, reads: (usize, Arc<InFlight>), writes: (usize, Arc<InFlight>)) -> Self {
        let pool = |(limit, running): (usize, _)| Pool {
            permits: (limit > 0).then(|| Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)))),
            running,
        };
        Self { inner, reads: pool(reads), writes: pool(writes) }
    }
}

impl<H: Filter> MaxInFlight<H> {
    async fn run(
        &self,
        pool: &Pool,
        request: Box<Request>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Response {
        let running = pool.running.begin();
        hold(self.inner.call(request).await, (running, permit))
    }
}

impl<H: Filter> Filter for MaxInFlight<H> {
    async fn call(&self, request: Box<Request>) -> Response {
        let info = request.info();
        if info.is_long_running() {
            return self.inner.call(request).await;
        }
        let pool = if info.is_read_only() { &self.reads } else { &self.writes };
        let Some(permits) = &pool.permits else { return self.run(pool, request, None).await };
        match permits.clone().try_acquire_owned() {
            Ok(permit) => self.run(pool, request, Some(permit)).await,
            Err(_) if request.user().is_in(UserInfo::PRIVILEGED) => self.run(pool, request, None).await,
            Err(_) => too_many_requests(),
        }
    }
}

pub(super) fn too_many_requests() -> Response {
    let mut response = text(StatusCode::TOO_MANY_REQUESTS, "Too many requests, please try again later.\n");
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response.extensions_mut().insert(Terminated::BY_SERVER);
    response
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;
    use tokio::{sync::Notify, time::timeout};

    use super::*;
    use crate::http::{
        Handler,
        testing::{Echo, Streams, read, request},
    };

    /// Holds requests for `/api/...` until let go.
    struct Holds(Arc<Notify>);

    #[async_trait]
    impl Handler for Holds {
        async fn handle(&self, request: Request) -> Response {
            self.0.notified().await;
            Echo.handle(request).await
        }
    }

    fn filter(limit: usize, release: &Arc<Notify>) -> MaxInFlight<Holds> {
        let pool = || (limit, Arc::new(InFlight::default()));
        MaxInFlight::new(Holds(release.clone()), pool(), pool())
    }

    /// Whether a request beside a running `GET` and a running `POST` is let through.
    async fn gets_through(limit: usize, method: &str, uri: &str, group: &str) -> bool {
        let release = Arc::new(Notify::new());
        let filter = filter(limit, &release);
        let mut request = request(method, uri);
        let user = UserInfo { groups: vec![group.to_owned()], ..UserInfo::default() };
        request.extensions_mut().insert(Arc::new(user));
        let running = ["GET", "POST"].map(|method| self::request(method, "/api/v1/nodes"));
        let [get, post] = running.map(|request| filter.call(request.into()));
        let both = async { tokio::join!(get, post) };
        tokio::select! {
            biased;
            _ = both => panic!("nobody lets them go"),
            answer = timeout(Duration::from_secs(1), filter.call(request.into())) => match answer {
                Ok(answer) => {
                    assert_eq!(answer.headers()[RETRY_AFTER], "1");
                    let expected = (429, "Too many requests, please try again later.\n".to_owned());
                    assert_eq!(read(answer).await, expected);
                    false
                }
                Err(_) => true,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_beyond_the_limit_are_sent_away() {
        for (limit, method, uri, group, through) in [
            (1, "GET", "/api/v1/pods", "", false),
            (1, "POST", "/api/v1/pods", "", false),
            (1, "GET", "/healthz", "", false),
            (1, "POST", "/healthz", "", false),
            (1, "GET", "/api/v1/pods?watch=1", "", true),
            (1, "GET", "/api/v1/pods", "system:masters", true),
            (2, "GET", "/api/v1/pods", "", true),
            (2, "DELETE", "/api/v1/pods", "", true),
            (0, "GET", "/api/v1/pods", "", true),
        ] {
            assert_eq!(
                gets_through(limit, method, uri, group).await,
                through,
                "{limit} {method} {uri} {group}"
            );
        }
    }

    #[tokio::test]
    async fn an_answer_that_is_read_slowly_keeps_its_place() {
        let pool = || (1, Arc::new(InFlight::default()));
        let filter = MaxInFlight::new(Streams, pool(), pool());
        let list = || filter.call(request("GET", "/api/v1/pods").into());
        let slow = list().await;
        assert_eq!((slow.status().as_u16(), list().await.status().as_u16()), (200, 429));
        assert_eq!(read(slow).await.0, 200);
        assert_eq!(list().await.status(), 200, "it was read");
    }

    #[tokio::test]
    async fn places_are_given_back() {
        let release = Arc::new(Notify::new());
        let filter = filter(1, &release);
        for _ in 0..3 {
            release.notify_one();
            assert_eq!(filter.call(request("GET", "/api/v1/pods").into()).await.status(), 200);
        }
        // A client that goes away gives its place back, too.
        drop(futures_util::poll!(Box::pin(filter.call(request("GET", "/api/v1/pods").into()))));
        release.notify_one();
        assert_eq!(filter.call(request("GET", "/api/v1/pods").into()).await.status(), 200);
    }
}
