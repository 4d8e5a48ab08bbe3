use concord_meta::Status;
use tokio::time::timeout_at;

use crate::{
    Accept, RequestContext as _, Terminated,
    http::{Filter, Request, Response},
    respond_status,
};

/// Answers for a handler that does not answer in time, and drops it.
pub(crate) struct Timeout<H>(pub(crate) H);

impl<H: Filter> Filter for Timeout<H> {
    async fn call(&self, request: Box<Request>) -> Response {
        let Some(moment) = request.deadline().moment() else { return self.0.call(request).await };
        match timeout_at(moment, self.0.call(request)).await {
            Ok(response) => response,
            // As upstream, in the same form for everybody.
            Err(_) => {
                let mut response = respond_status(&Status::request_timeout(), &Accept::default());
                response.extensions_mut().insert(Terminated::BY_SERVER);
                response
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::{
        Deadline,
        http::{
            Handler,
            testing::{Echo, read, request},
        },
    };

    struct Slow;

    #[async_trait]
    impl Handler for Slow {
        async fn handle(&self, request: Request) -> Response {
            sleep(Duration::from_secs(10)).await;
            Echo.handle(request).await
        }
    }

    async fn answer(seconds: Option<u64>) -> (u16, String) {
        let mut request = request("GET", "/done");
        let deadline = seconds.map(|seconds| Deadline::at(Instant::now() + Duration::from_secs(seconds)));
        request.extensions_mut().insert(deadline.unwrap_or_default());
        read(Timeout(Slow).call(request.into()).await).await
    }

    #[tokio::test(start_paused = true)]
    async fn late_handlers_are_answered_for() {
        assert_eq!(answer(Some(11)).await, (200, "/done".to_owned()));
        assert_eq!(answer(None).await, (200, "/done".to_owned()));
        let (code, body) = answer(Some(9)).await;
        assert_eq!(code, 504);
        let expected = concat!(
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
            r#""message":"Timeout: request did not complete within the allotted timeout","#,
            r#""reason":"Timeout","details":{},"code":504}"#,
            "\n"
        );
        assert_eq!(body, expected);
    }
}
