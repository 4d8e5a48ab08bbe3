use std::{sync::Arc, time::Duration};

use concord_meta::{Status, go};

use crate::{
    Accept, Auditing, Deadline, Metrics, RequestContext as _,
    http::{Filter, Request, Response},
    respond_status,
    sending::Sending,
};

/// Says until when a request must be answered: the client may ask for less time than there is, not for
/// more. It then has as long again to receive the answer. Requests that last have no deadline, but what they are
/// told has to be read.
pub(crate) struct RequestDeadline<H> {
    pub(crate) inner: H,
    pub(crate) most: Duration,
    /// Where those are written down who are refused here: nobody has asked yet who they are.
    pub(crate) auditing: Option<Arc<Auditing>>,
    pub(crate) metrics: Arc<Metrics>,
}

/// The `timeout` parameter, or the text of Go's complaint about it.
fn asked(query: &str) -> Result<Option<Duration>, String> {
    // Hardly anybody asks; do not decode the query of those who do not.
    if !query.contains("timeout=") {
        return Ok(None);
    }
    let timeout = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "timeout");
    match timeout {
        Some((_, text)) if !text.is_empty() => {
            let nanos = go::parse_duration(&text)?;
            // None or less is no wish.
            Ok(u64::try_from(nanos).ok().filter(|nanos| *nanos > 0).map(Duration::from_nanos))
        }
        _ => Ok(None),
    }
}

impl<H: Filter> Filter for RequestDeadline<H> {
    async fn call(&self, mut request: Box<Request>) -> Response {
        if request.info().is_long_running() {
            return Sending::begin_lasting(self.inner.call(request).await, self.most);
        }
        match asked(request.uri().query().unwrap_or_default()) {
            Ok(asked) => {
                let time = asked.map_or(self.most, |asked| asked.min(self.most));
                let deadline = Deadline::at(request.received() + time);
                request.extensions_mut().insert(deadline);
                Sending::begin(self.inner.call(request).await, self.most)
            }
            Err(error) => {
                let message = format!("invalid timeout specified in the request URL - {error}");
                let status = Status::bad_request(message);
                let parts = request.into_parts().0;
                if let Some(auditing) = &self.auditing {
                    super::audit::refused(auditing, &self.metrics, &parts, &status);
                }
                respond_status(&status, &Accept::of(&parts))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use http::StatusCode;
    use tokio::time::Instant;

    use super::*;
    use crate::http::{
        Handler,
        testing::{read, request},
        text,
    };

    struct Remaining;

    #[async_trait]
    impl Handler for Remaining {
        async fn handle(&self, request: Request) -> Response {
            let remaining = request.deadline().moment().map(|moment| moment - Instant::now());
            text(StatusCode::OK, format!("{remaining:?}"))
        }
    }

    fn filter(auditing: Option<Arc<Auditing>>) -> RequestDeadline<Remaining> {
        let (most, metrics) = (Duration::from_secs(60), Arc::default());
        RequestDeadline { inner: Remaining, most, auditing, metrics }
    }

    #[tokio::test(start_paused = true)]
    async fn clients_may_ask_for_less_time() {
        for (uri, expected) in [
            ("/api/v1/pods", "Some(60s)"),
            ("/api/v1/pods?timeout=1s", "Some(1s)"),
            ("/api/v1/pods?timeout=2m", "Some(60s)"),
            ("/api/v1/pods?timeout=0", "Some(60s)"),
            ("/api/v1/pods?timeout=-5s", "Some(60s)"),
            ("/api/v1/pods?timeout=", "Some(60s)"),
            ("/healthz?timeout=2s", "Some(2s)"),
            ("/api/v1/pods?watch=1&timeout=1s", "None"),
            ("/api/v1/pods?watch=1&timeout=abc", "None"),
        ] {
            let answer = read(filter(None).call(request("GET", uri).into()).await).await;
            assert_eq!(answer, (200, expected.to_owned()), "{uri}");
        }
    }

    #[tokio::test]
    async fn what_is_no_duration_is_refused() {
        let (events, heard) = std::sync::mpsc::channel();
        let text = b"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]";
        let policy = concord_audit::Policy::parse(text, |_| {}).expect("a policy");
        let sink: crate::AuditSink = Arc::new(move |event| events.send(event.clone()).expect("heard"));
        let filter = filter(Some(Arc::new(Auditing { policy, sink })));
        let (code, body) = read(filter.call(request("GET", "/api/v1/pods?timeout=abc").into()).await).await;
        let message =
            r#""message":"invalid timeout specified in the request URL - time: invalid duration \"abc\"""#;
        assert_eq!(code, 400);
        assert!(body.contains(message) && body.contains(r#""reason":"BadRequest""#), "{body}");
        let event = heard.try_recv().expect("an event");
        let status = event.response_status.expect("a status");
        assert_eq!((event.stage, event.user), (concord_audit::Stage::ResponseStarted, None));
        assert_eq!((status.code, &*status.reason), (400, "BadRequest"));
    }
}
