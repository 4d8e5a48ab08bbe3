use std::sync::Arc;

use http::{HeaderName, HeaderValue};

use super::{held::hold, max_in_flight::too_many_requests};
use crate::{
    Admission, Attributes, FlowControl, RequestContext as _,
    http::{Filter, Request, Response},
};

const FLOW_SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const PRIORITY_LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// Has requests wait for their turn when there are too many, and sends away those that cannot. A request has its seat until
/// its answer has been made. Requests that last do not wait, except for watches, which need a seat until they have begun.
pub(crate) struct PriorityAndFairness<H> {
    pub(crate) inner: H,
    /// `None` if there are only limits.
    pub(crate) control: Option<Arc<dyn FlowControl>>,
}

impl<H: Filter> Filter for PriorityAndFairness<H> {
    async fn call(&self, request: Box<Request>) -> Response {
        let Some(control) = &self.control else { return self.inner.call(request).await };
        let (user, info) = (request.user(), request.info());
        if info.is_long_running() && info.verb != "watch" {
            return self.inner.call(request).await;
        }
        let attributes = Attributes { user: &user, request: &info };
        let admission = control.admit(&attributes, request.deadline()).await;
        let Admission { flow_schema, priority_level, seat } = admission;
        let mut response = match seat {
            Some(seat) => {
                let answer = self.inner.call(request).await;
                if info.is_long_running() { answer } else { hold(answer, seat) }
            }
            None => too_many_requests(),
        };
        set(&mut response, FLOW_SCHEMA, flow_schema);
        set(&mut response, PRIORITY_LEVEL, priority_level);
        response
    }
}

/// What is not stored yet has no uid.
fn set(response: &mut Response, name: HeaderName, uid: HeaderValue) {
    if !uid.is_empty() {
        response.headers_mut().insert(name, uid);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::{
        Deadline, Seat,
        http::testing::{Echo, Streams, request},
    };

    /// Has so many seats, and counts who asks.
    struct Seats {
        free: AtomicUsize,
        asked: AtomicUsize,
    }

    #[async_trait]
    impl FlowControl for Seats {
        async fn admit(&self, _: &Attributes<'_>, _: Deadline) -> Admission {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let taken =
                self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| free.checked_sub(1));
            Admission {
                flow_schema: HeaderValue::from_static("schema"),
                priority_level: HeaderValue::from_static(""),
                seat: taken.ok().map(|_| Seat::new(())),
            }
        }
    }

    /// Has one seat.
    struct OneSeat(Arc<Semaphore>);

    #[async_trait]
    impl FlowControl for OneSeat {
        async fn admit(&self, _: &Attributes<'_>, _: Deadline) -> Admission {
            let none = HeaderValue::from_static("");
            let seat = self.0.clone().try_acquire_owned().ok().map(Seat::new);
            Admission { flow_schema: none.clone(), priority_level: none, seat }
        }
    }

    #[tokio::test]
    async fn an_answer_that_is_read_slowly_keeps_its_seat_and_a_watch_does_not() {
        let control = Arc::new(OneSeat(Arc::new(Semaphore::new(1))));
        let filter = PriorityAndFairness { inner: Streams, control: Some(control) };
        let get = |uri| filter.call(request("GET", uri).into());
        let watch = get("/api/v1/pods?watch=1").await;
        let slow = get("/api/v1/pods").await;
        assert_eq!((watch.status().as_u16(), slow.status().as_u16()), (200, 200));
        assert_eq!(get("/api/v1/pods").await.status(), 429);
        drop(slow);
        assert_eq!(get("/api/v1/pods").await.status(), 200, "its reader went away");
    }

    #[tokio::test]
    async fn who_gets_no_seat_is_sent_away_and_both_are_told_why() {
        let control = Arc::new(Seats { free: 2.into(), asked: 0.into() });
        let filter = PriorityAndFairness { inner: Echo, control: Some(control.clone()) };
        for (uri, status) in [
            ("/api/v1/pods", 200),
            ("/api/v1/namespaces/a/pods/b/log", 200),
            ("/api/v1/pods?watch=1", 200),
            ("/api/v1/pods", 429),
            ("/api/v1/pods?watch=1", 429),
            ("/api/v1/namespaces/a/pods/b/exec", 200),
        ] {
            let response = filter.call(request("GET", uri).into()).await;
            assert_eq!(response.status(), status, "{uri}");
            let told = response.headers().get(FLOW_SCHEMA).map(HeaderValue::as_bytes);
            assert_eq!(told, (!uri.contains("/b/")).then_some(&b"schema"[..]), "{uri}");
            assert_eq!(response.headers().get(PRIORITY_LEVEL), None);
            assert_eq!(response.headers().contains_key("retry-after"), status == 429);
        }
        assert_eq!(control.asked.load(Ordering::Relaxed), 4);
    }
}
