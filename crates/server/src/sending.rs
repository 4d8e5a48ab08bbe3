//! Bounds the time a client takes to receive an answer.
//!
//! Deadlines of requests end when the handler has answered. A client that then does not read would hold the
//! answer in memory for as long as it likes: nobody asks a body for more while there is no room to send what
//! it gave before, so the body cannot end it. What can is the task that sends it: the connection over
//! HTTP/1.1, the stream over HTTP/2. Both run in [`Sending::bound`].

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::http::{Body, BoxError, Response};

/// Answers up to this size are left alone: they fit into the buffers that a connection has anyway.
const SMALL: u64 = 64 * 1024;

tokio::task_local! {
    /// Until when the task has to send its answer.
    static SENDING: Sending;
}

/// Until when a task has to send its answer, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Sending(Arc<State>);

#[derive(Default)]
struct State {
    until: Mutex<Option<Instant>>,
    changed: Notify,
}

impl Sending {
    /// Runs `task`, and drops it when an answer it sends takes too long. Says whether it ended by itself.
    pub(crate) async fn bound(task: impl Future<Output = ()>) -> bool {
        let sending = Self::default();
        tokio::select! {
            () = SENDING.scope(sending.clone(), task) => true,
            () = sending.late() => false,
        }
    }

    /// Gives the client `time` to receive this answer, which must not be one that lasts.
    pub(crate) fn begin(response: Response, time: Duration) -> Response {
        if response.body().size_hint().upper().is_some_and(|length| length <= SMALL) {
            return response;
        }
        let Ok(sending) = SENDING.try_with(Clone::clone) else { return response };
        sending.set(Some(Instant::now() + time));
        response.map(|body| Bounded { body, sending }.boxed_unsync())
    }

    fn set(&self, until: Option<Instant>) {
        *self.0.until.lock() = until;
        self.0.changed.notify_one();
    }

    async fn late(&self) {
        loop {
            let until = *self.0.until.lock();
            match until {
                None => self.0.changed.notified().await,
                Some(until) => tokio::select! {
                    () = self.0.changed.notified() => {}
                    () = sleep_until(until) => return,
                },
            }
        }
    }
}

/// A body whose end ends the bound.
struct Bounded {
    body: Body,
    sending: Sending,
}

impl Drop for Bounded {
    fn drop(&mut self) {
        self.sending.set(None);
    }
}

impl hyper::body::Body for Bounded {
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

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;
    use crate::http::full;

    const TIME: Duration = Duration::from_secs(60);

    /// Whether a task that keeps an answer of this length for `held` gets to its end.
    async fn ends(length: usize, held: Duration) -> bool {
        Sending::bound(async {
            let answer = Sending::begin(Response::new(full(vec![0; length])), TIME);
            sleep(held).await;
            drop(answer);
            // What comes after the answer is not bound by it.
            sleep(10 * TIME).await;
        })
        .await
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_answer_must_be_received_in_time() {
        assert!(ends(1 << 20, TIME - Duration::from_secs(1)).await);
        assert!(!ends(1 << 20, TIME + Duration::from_secs(1)).await);
        assert!(ends(1 << 10, 2 * TIME).await, "small ones cost nothing");
    }
}
