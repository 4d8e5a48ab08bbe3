use std::{
    any::Any,
    panic::{AssertUnwindSafe, resume_unwind},
    sync::Arc,
    task::Poll,
};

use bytes::{Bytes, BytesMut};
use concord_audit::{ResponseStatus, Stage};
use concord_meta::Status;
use futures_util::FutureExt as _;
use http::{
    HeaderValue,
    header::{ACCEPT_ENCODING, CONTENT_TYPE},
};

use super::panic_recovery::message;
use crate::{
    AuditHandle, Auditing, Deadline, Metrics, RequestContext as _,
    audit::MAX_OBJECT,
    http::{Filter, Request, Response},
    witness::{Polled, Witness, witnessed},
};

/// Writes down who asks for what and what becomes of it, as far as the policy wants it.
pub(crate) struct Audit<H> {
    pub(crate) inner: H,
    /// `None` if there is no policy; then this costs nothing.
    pub(crate) auditing: Option<Arc<Auditing>>,
    pub(crate) metrics: Arc<Metrics>,
}

impl<H: Filter> Filter for Audit<H> {
    async fn call(&self, request: Box<Request>) -> Response {
        let Some(auditing) = &self.auditing else { return self.inner.call(request).await };
        let (mut parts, body) = request.into_parts();
        let user = parts.user();
        let Some(handle) = AuditHandle::begin(auditing, &self.metrics, &parts, Some(&user)) else {
            return self.inner.call(Box::new(Request::from_parts(parts, body))).await;
        };
        handle.process(Stage::RequestReceived);
        parts.extensions.insert(handle.clone());
        if handle.wants_response() {
            // What is compressed cannot be written down.
            parts.headers.remove(ACCEPT_ENCODING);
        }
        let lasts = parts.info().is_long_running();
        let unanswered = Unanswered { handle, lasts, deadline: parts.deadline(), armed: true };
        let answer = self.inner.call(Box::new(Request::from_parts(parts, body)));
        // Unwind safety: the panic goes on to the filter that answers for it.
        match AssertUnwindSafe(answer).catch_unwind().await {
            Ok(response) => unanswered.answered(response),
            Err(panic) => unanswered.panicked(panic),
        }
    }
}

/// Writes down a request that is refused before it is known who made it: its credentials are wrong, say.
pub(super) fn refused(
    auditing: &Arc<Auditing>,
    metrics: &Arc<Metrics>,
    request: &http::request::Parts,
    status: &Status,
) {
    if let Some(handle) = AuditHandle::begin(auditing, metrics, request, None) {
        handle.answered_status(status, status.code);
        handle.process(Stage::ResponseStarted);
    }
}

/// A request that has not been answered. Dropped before it is, it ends here: its client went away, or its time was up.
struct Unanswered {
    handle: AuditHandle,
    lasts: bool,
    deadline: Deadline,
    armed: bool,
}

impl Unanswered {
    fn answered(mut self, mut response: Response) -> Response {
        self.armed = false;
        let code = response.status().as_u16();
        let status = response.extensions_mut().remove::<Arc<Status>>();
        match &status {
            Some(status) => self.handle.answered_status(status, code),
            None => self.handle.ended(ResponseStatus::code(code)),
        }
        if self.lasts {
            self.handle.process(Stage::ResponseStarted);
        }
        let content_type = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        let is_object = content_type.is_some_and(|kind| {
            kind.starts_with(b"application/json") || kind.starts_with(b"application/yaml")
        });
        let wanted = self.handle.wants_response() && is_object && !self.lasts && status.is_none();
        let captured = wanted.then(BytesMut::new);
        let handle = self.handle.clone();
        witnessed(response, Recorded { handle, captured, whole: false })
    }

    fn panicked(mut self, panic: Box<dyn Any + Send>) -> Response {
        self.armed = false;
        self.handle.ended(ResponseStatus::panicked(message(&*panic)));
        self.handle.process(Stage::Panic);
        resume_unwind(panic)
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let late = self.deadline.moment().is_some_and(|moment| moment <= tokio::time::Instant::now());
        match late {
            true => {
                let status = Status::request_timeout();
                self.handle.answered_status(&status, status.code);
            }
            false => self.handle.ended(ResponseStatus::closed_early()),
        }
        if self.lasts {
            self.handle.process(Stage::ResponseStarted);
        }
        self.handle.process(Stage::ResponseComplete);
    }
}

/// An answer on its way. When it has been sent, or nobody wants it any more, the request is complete.
struct Recorded {
    handle: AuditHandle,
    /// What of the answer has been sent; `None` if it is not to be written down.
    captured: Option<BytesMut>,
    /// Whether that is all of it.
    whole: bool,
}

impl Recorded {
    fn capture(&mut self, data: &Bytes) {
        let Some(captured) = &mut self.captured else { return };
        if captured.len() + data.len() > MAX_OBJECT {
            self.captured = None;
            self.handle.response_truncated();
        } else {
            captured.extend_from_slice(data);
        }
    }
}

impl Witness for Recorded {
    fn saw(&mut self, polled: &Polled, ended: bool) {
        match polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    self.capture(data);
                }
                self.whole = ended;
            }
            Poll::Ready(None) => self.whole = true,
            _ => {}
        }
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        if let Some(captured) = self.captured.take().filter(|captured| self.whole && !captured.is_empty()) {
            self.handle.response_bytes(&captured);
        }
        debug_assert!(self.handle.has_ended(), "the status is known before there is a body");
        self.handle.process(Stage::ResponseComplete);
    }
}

#[cfg(test)]
mod tests;
