use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Frame};
use prometheus::IntGauge;
use tokio::time::Instant;

use super::gzip::PlainLength;
use crate::{
    RequestContext as _, Served,
    http::{Body, BoxError, Filter, Request, Response},
    metrics::{Metrics, RequestLabels},
};

/// Counts and times the requests whose answers say that they were [`Served`]. One that lasts is counted when
/// it ends.
pub(crate) struct RequestMetrics<H> {
    pub(crate) inner: H,
    pub(crate) metrics: Arc<Metrics>,
}

impl<H: Filter> Filter for RequestMetrics<H> {
    async fn call(&self, request: Request) -> Response {
        let (labels, received) = (RequestLabels::of(&request), request.received());
        let mut response = self.inner.call(request).await;
        if response.extensions_mut().remove::<Served>().is_none() {
            return response;
        }
        if labels.info().is_long_running() {
            let open = self.metrics.long_running(&labels);
            open.inc();
            let status = response.status();
            let ended = Ended { metrics: self.metrics.clone(), labels, received, status, open };
            return response.map(|body| Lasting { body, _ended: ended }.boxed_unsync());
        }
        let plain = response.extensions_mut().remove::<PlainLength>().map(|PlainLength(length)| length);
        let size = plain.or_else(|| response.body().size_hint().exact());
        self.metrics.requests().record(&labels, response.status(), received.elapsed(), size);
        response
    }
}

/// Counts a request when it is dropped.
struct Ended {
    metrics: Arc<Metrics>,
    labels: RequestLabels,
    received: Instant,
    status: StatusCode,
    open: IntGauge,
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.open.dec();
        self.metrics.requests().record(&self.labels, self.status, self.received.elapsed(), None);
    }
}

/// A body that lasts, and what is to be done at its end.
struct Lasting {
    body: Body,
    _ended: Ended,
}

impl hyper::body::Body for Lasting {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::http::{
        Handler,
        testing::{Echo, read, request},
    };

    struct Serves(bool);

    #[async_trait]
    impl Handler for Serves {
        async fn handle(&self, request: Request) -> Response {
            let mut response = Echo.call(request).await;
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
                .call(request("GET", uri))
                .await;
        }
        let text = scraped(&metrics).await;
        assert!(text.contains(r#"resource="pods""#) && !text.contains("unknown"), "{text}");
        let sizes = r#"apiserver_response_sizes_sum{component="apiserver",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"} 24"#;
        assert!(text.contains(sizes), "{text}");
    }

    #[tokio::test]
    async fn a_watch_is_open_until_its_body_ends() {
        let metrics = Arc::new(Metrics::new());
        let filter = RequestMetrics { inner: Serves(true), metrics: metrics.clone() };
        let response = filter.call(request("GET", "/api/v1/pods?watch=1")).await;
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
