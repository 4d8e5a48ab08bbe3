use std::sync::Arc;

use http::{HeaderName, HeaderValue};

use super::max_in_flight::too_many_requests;
use crate::{
    Admission, Attributes, FlowControl, RequestContext as _,
    http::{Filter, Request, Response},
};

const FLOW_SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const PRIORITY_LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// Has requests wait for their turn when there are too many, and sends away those that cannot. Requests that last do not
/// wait, except for watches, which need a seat until they have begun.
pub(crate) struct PriorityAndFairness<H> {
    pub(crate) inner: H,
    /// `None` if there are only limits.
    pub(crate) control: Option<Arc<dyn FlowControl>>,
}

impl<H: Filter> Filter for PriorityAndFairness<H> {
    async fn call(&self, request: Request) -> Response {
        let Some(control) = &self.control else { return self.inner.call(request).await };
        let (user, info) = (request.user(), request.info());
        if info.is_long_running() && info.verb != "watch" {
            return self.inner.call(request).await;
        }
        let attributes = Attributes { user: &user, request: &info };
        let admission = control.admit(&attributes, request.deadline()).await;
        let Admission { flow_schema, priority_level, seat } = admission;
        let mut response = match &seat {
            Some(_) => self.inner.call(request).await,
            None => too_many_requests(),
        };
        drop(seat);
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

    use super::*;
    use crate::{
        Deadline, Seat,
        http::testing::{Echo, request},
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
            let response = filter.call(request("GET", uri)).await;
            assert_eq!(response.status(), status, "{uri}");
            let told = response.headers().get(FLOW_SCHEMA).map(HeaderValue::as_bytes);
            assert_eq!(told, (!uri.contains("/b/")).then_some(&b"schema"[..]), "{uri}");
            assert_eq!(response.headers().get(PRIORITY_LEVEL), None);
            assert_eq!(response.headers().contains_key("retry-after"), status == 429);
        }
        assert_eq!(control.asked.load(Ordering::Relaxed), 4);
    }
}
