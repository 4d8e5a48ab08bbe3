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
    task::{Context, Poll, ready},
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
const SMALL: u64 = STEP as u64;
/// How much of an answer is given to the connection at a time. It takes what it is given, however much that
/// is; given in steps, all but the last few of them wait in the body, which so ends when the client has read.
const STEP: usize = 64 * 1024;

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
            biased;
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
        response.map(|body| Bounded { body, pending: Bytes::new(), sending }.boxed_unsync())
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
    /// What came from `body` and was not given on yet.
    pending: Bytes,
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
        if self.pending.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)).transpose()?.map(Frame::into_data) {
                Some(Ok(data)) => self.pending = data,
                Some(Err(other)) => return Poll::Ready(Some(Ok(other))),
                None => return Poll::Ready(None),
            }
        }
        let step = self.pending.len().min(STEP);
        Poll::Ready(Some(Ok(Frame::data(self.pending.split_to(step)))))
    }

    fn is_end_stream(&self) -> bool {
        self.pending.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (inner, pending) = (self.body.size_hint(), self.pending.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + pending);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + pending);
        }
        hint
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

    #[tokio::test]
    async fn it_is_given_in_steps_and_whole() {
        let content: Vec<u8> = (0..3 * STEP + 7).map(|n| (n % 251) as u8).collect();
        let length = content.len() as u64;
        let bounded = async {
            let mut body = Sending::begin(Response::new(full(content.clone())), TIME).into_body();
            let mut received = Vec::new();
            while !body.is_end_stream() {
                assert_eq!(body.size_hint().exact(), Some(length - received.len() as u64));
                let step = body.frame().await.expect("more").expect("data").into_data().expect("data");
                assert!(!step.is_empty() && step.len() <= STEP);
                received.extend_from_slice(&step);
            }
            assert!(received == content);
        };
        assert!(Sending::bound(bounded).await);
    }
}
