use std::{pin::pin, sync::Arc, task::Poll, time::Duration};

use http::StatusCode;
use hyper::body::Body as _;
use prometheus::IntGauge;
use tokio::time::Instant;

use super::gzip::PlainLength;
use crate::{
    Deprecated, RequestContext as _, Served, Terminated,
    http::{Filter, Request, Response},
    metrics::{Metrics, RequestLabels, Times},
    sending::{SMALL, Sending},
    waits,
    witness::{Polled, Witness, witnessed},
};

/// Counts and times the requests whose answers say that they were [`Served`]. One that lasts is counted when
/// it ends.
pub(crate) struct RequestMetrics<H> {
    pub(crate) inner: H,
    pub(crate) metrics: Arc<Metrics>,
}

impl<H: Filter> Filter for RequestMetrics<H> {
    async fn call(&self, request: Box<Request>) -> Response {
        let (labels, received) = (RequestLabels::of(&*request), request.received());
        let mut handling = pin!(waits::noting(self.inner.call(request)));
        let mut response = handling.as_mut().await;
        let waited = waits::waited(handling);
        let extensions = response.extensions_mut();
        let (served, deprecated) = (extensions.remove::<Served>(), extensions.remove::<Deprecated>());
        if let Some(terminated) = extensions.remove::<Terminated>() {
            self.metrics.terminated(&labels, terminated, response.status(), served.is_some());
        }
        if served.is_none() {
            return response;
        }
        if let Some(deprecated) = deprecated {
            self.metrics.deprecated(&labels, &deprecated);
        }
        if labels.info().is_long_running() {
            let open = self.metrics.long_running(&labels);
            open.inc();
            let status = response.status();
            return witnessed(
                response,
                Lasting { metrics: self.metrics.clone(), labels, received, status, open },
            );
        }
        let plain = response.extensions_mut().remove::<PlainLength>().map(|PlainLength(length)| length);
        let size = plain.or_else(|| response.body().size_hint().exact());
        let times = Times { whole: received.elapsed(), waited };
        self.metrics.requests().record(&labels, response.status(), times, size);
        // What is this small is sent at once.
        if response.body().size_hint().upper().is_some_and(|length| length <= SMALL) {
            return response;
        }
        witnessed(response, Partial { metrics: self.metrics.clone(), labels, over: false })
    }
}

/// Counts a request that lasts when it is dropped.
struct Lasting {
    metrics: Arc<Metrics>,
    labels: RequestLabels,
    received: Instant,
    status: StatusCode,
    open: IntGauge,
}

impl Witness for Lasting {}

impl Drop for Lasting {
    fn drop(&mut self) {
        self.open.dec();
        let times = Times { whole: self.received.elapsed(), waited: Duration::ZERO };
        self.metrics.requests().record(&self.labels, self.status, times, None);
    }
}

/// Counts an answer of which the client gets only a part, through no fault of its own or because it does not read.
struct Partial {
    metrics: Arc<Metrics>,
    labels: RequestLabels,
    over: bool,
}

impl Witness for Partial {
    fn saw(&mut self, polled: &Polled, ended: bool) {
        if matches!(polled, Poll::Ready(Some(Err(_)))) && !self.over {
            self.metrics.aborted(&self.labels);
        }
        self.over |= ended;
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // A client that goes away is nothing to count.
        if !self.over && Sending::is_late_here() {
            self.metrics.aborted(&self.labels);
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use bytes::Bytes;
    use futures_util::{StreamExt as _, stream};
    use http_body_util::{BodyExt as _, StreamBody};
    use hyper::body::Frame;
    use tokio::time::sleep;

    use super::*;
    use crate::http::{
        BoxError, Handler,
        testing::{Echo, read, request},
    };

    struct Serves(bool);

    #[async_trait]
    impl Handler for Serves {
        async fn handle(&self, request: Request) -> Response {
            let mut response = Echo.handle(request).await;
            if self.0 {
                response.extensions_mut().insert(Served);
            }
            response
        }
    }

    async fn scraped(metrics: &Metrics) -> String {
        read(metrics.scrape()).await.1
    }

    #[tokio::test]
    async fn only_what_a_handler_knows_is_counted() {
        let metrics = Arc::new(Metrics::new());
        for (served, uri) in [(false, "/api/v1/unknown"), (true, "/api/v1/pods"), (true, "/api/v1/pods")] {
            RequestMetrics { inner: Serves(served), metrics: metrics.clone() }
                .call(request("GET", uri).into())
                .await;
        }
        let text = scraped(&metrics).await;
        assert!(text.contains(r#"resource="pods""#) && !text.contains("unknown"), "{text}");
        let sizes = r#"apiserver_response_sizes_sum{component="apiserver",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"} 24"#;
        assert!(text.contains(sizes), "{text}");
    }

    /// Ends what is asked with `DELETE`, and serves the rest.
    struct Ends;

    #[async_trait]
    impl Handler for Ends {
        async fn handle(&self, request: Request) -> Response {
            let ends = request.method() == "DELETE";
            let mut response = Echo.handle(request).await;
            match ends {
                true => {
                    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
                    response.extensions_mut().insert(Terminated::BY_SERVER);
                }
                false => {
                    response.extensions_mut().insert(Served);
                    response.extensions_mut().insert(Deprecated { removed_release: "1.40".to_owned() });
                }
            }
            response
        }
    }

    #[tokio::test]
    async fn what_is_ended_is_named_only_if_it_was_served_before() {
        let metrics = Arc::new(Metrics::new());
        let filter = RequestMetrics { inner: Ends, metrics: metrics.clone() };
        for (method, uri) in [
            ("GET", "/api/v1/namespaces/a/pods/b"),
            ("DELETE", "/api/v1/namespaces/a/pods/b"),
            ("DELETE", "/api/v1/namespaces/a/made-up/b"),
        ] {
            filter.call(request(method, uri).into()).await;
        }
        let text = scraped(&metrics).await;
        assert!(!text.contains("made-up"), "{text}");
        for (name, resource, version) in
            [("request_terminations_total", "pods", "v1"), ("request_terminations_total", "", "")]
        {
            let line = format!(
                "apiserver_{name}{{code=\"429\",component=\"apiserver\",group=\"\",resource=\"{resource}\",scope=\"resource\",subresource=\"\",verb=\"DELETE\",version=\"{version}\"}} 1\n"
            );
            assert!(text.contains(&line), "{line} is missing in\n{text}");
        }
        let counted = r#"apiserver_request_total{code="429",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="DELETE",version="v1"} 1"#;
        assert!(text.contains(counted), "{text}");
        let deprecated = r#"apiserver_requested_deprecated_apis{group="",removed_release="1.40",resource="pods",subresource="",version="v1"} 1"#;
        assert!(text.contains(deprecated), "{text}");
    }

    /// Gives one piece and then an error, or nothing more.
    struct BreaksOff(bool);

    #[async_trait]
    impl Handler for BreaksOff {
        async fn handle(&self, _: Request) -> Response {
            let piece = Ok(Frame::data(Bytes::from_static(b"piece")));
            let rest = self.0.then(|| Err::<_, BoxError>("broken".into()));
            let pieces = stream::iter([piece].into_iter().chain(rest)).chain(stream::pending());
            let mut response = Response::new(StreamBody::new(pieces).boxed_unsync());
            response.extensions_mut().insert(Served);
            // As the filter does that stands between the two.
            Sending::begin(response, Duration::from_secs(60))
        }
    }

    /// How many aborts are counted after an answer that breaks off, or that is not read for so long.
    async fn aborts(breaks: bool, unread: Duration) -> usize {
        let metrics = Arc::new(Metrics::new());
        let filter = RequestMetrics { inner: BreaksOff(breaks), metrics: metrics.clone() };
        Sending::bound(async {
            let mut body = filter.call(request("GET", "/api/v1/pods").into()).await.into_body();
            for _ in 0..=usize::from(breaks) {
                body.frame().await.expect("a piece or an error").ok();
            }
            sleep(unread).await;
        })
        .await;
        scraped(&metrics).await.matches("\napiserver_request_aborts_total{").count()
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_break_off_are_counted() {
        assert_eq!(aborts(true, Duration::ZERO).await, 1);
        assert_eq!(aborts(false, Duration::from_secs(61)).await, 1, "it is not read");
        assert_eq!(aborts(false, Duration::ZERO).await, 0, "the client goes away");
    }

    #[tokio::test]
    async fn a_watch_is_open_until_its_body_ends() {
        let metrics = Arc::new(Metrics::new());
        let filter = RequestMetrics { inner: Serves(true), metrics: metrics.clone() };
        let response = filter.call(request("GET", "/api/v1/pods?watch=1").into()).await;
        let gauge = |open: u8| {
            format!(
                "apiserver_longrunning_requests{{component=\"apiserver\",group=\"\",resource=\"pods\",scope=\"cluster\",subresource=\"\",verb=\"WATCH\",version=\"v1\"}} {open}\n"
            )
        };
        let text = scraped(&metrics).await;
        assert!(text.contains(&gauge(1)) && !text.contains("apiserver_request_total{"), "{text}");
        drop(response);
        let text = scraped(&metrics).await;
        assert!(text.contains(&gauge(0)) && text.contains("apiserver_request_total{"), "{text}");
    }
}
