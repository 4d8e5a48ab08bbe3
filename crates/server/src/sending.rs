//! Bounds the time a client takes to receive an answer.
//!
//! Deadlines of requests end when the handler has answered. A client that then does not read would hold the
//! answer in memory for as long as it likes: nobody asks a body for more while there is no room to send what
//! it gave before, so the body cannot end it. What can is the task that sends it: the connection over
//! HTTP/1.1, the stream over HTTP/2. Both run in [`Sending::bound`].
//!
//! An answer that lasts, a watch for one, may be silent for as long as it likes; but what it says has to be read in
//! time as well.

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

use crate::{
    http::{Body, BoxError, Response},
    witness::{Polled, Witness, witnessed},
};

/// Answers up to this size are left alone: they fit into the buffers that a connection has anyway.
pub(crate) const SMALL: u64 = 64 * 1024;
/// How much of an answer is given to the connection at a time. It takes what it is given, however much that
/// is; given in steps, all but the last few of them wait in the body, which so ends when the client has read.
/// A step and the header of its HTTP/2 frame just fill one TLS record.
const STEP: usize = 16 * 1024 - 9;
/// The same for whoever takes more in a frame: four records. Who sends it on in steps of the other kind has nothing left
/// over that would be a frame, and a record, of a few bytes.
const LARGE_STEP: usize = 4 * STEP;

/// In the extensions of an answer: whoever asked takes large frames, and has less to do with fewer of them. Other servers
/// do, which send them on.
#[derive(Debug, Clone, Copy)]
pub struct InLargeSteps;

tokio::task_local! {
    /// Until when the task has to send its answer.
    static SENDING: Sending;
}

/// Until when a task has to send its answer, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Sending(Arc<State>);

#[derive(Default)]
struct State {
    bound: Mutex<Bound>,
    changed: Notify,
}

#[derive(Default, Clone, Copy)]
struct Bound {
    until: Option<Instant>,
    /// How often to look at it, where it changes too often to tell each time.
    every: Option<Duration>,
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
        sending.set(Bound { until: Some(Instant::now() + time), every: None });
        let step = if response.extensions().get::<InLargeSteps>().is_some() { LARGE_STEP } else { STEP };
        response.map(|body| Bounded { body, pending: Bytes::new(), step, sending }.boxed_unsync())
    }

    /// Gives the client `time`, and at most as long again, to receive each thing that this answer says.
    pub(crate) fn begin_lasting(response: Response, time: Duration) -> Response {
        let Ok(sending) = SENDING.try_with(Clone::clone) else { return response };
        if response.body().is_end_stream() {
            return response;
        }
        sending.set(Bound { until: None, every: Some(time) });
        witnessed(response, Lasting { time, sending })
    }

    fn set(&self, bound: Bound) {
        *self.0.bound.lock() = bound;
        self.0.changed.notify_one();
    }

    async fn late(&self) {
        loop {
            let bound = *self.0.bound.lock();
            match bound.every.map(|every| Instant::now() + every).or(bound.until) {
                None => self.0.changed.notified().await,
                Some(next) => tokio::select! {
                    () = self.0.changed.notified() => {}
                    () = sleep_until(next) => if self.is_late() { return },
                },
            }
        }
    }

    /// Whether the task that runs now takes too long to send its answer.
    pub(crate) fn is_late_here() -> bool {
        SENDING.try_with(Self::is_late).unwrap_or(false)
    }

    fn is_late(&self) -> bool {
        self.0.bound.lock().until.is_some_and(|until| until <= Instant::now())
    }
}

/// Sees a body without an end: what it gave must have been sent before it is asked for more.
struct Lasting {
    time: Duration,
    sending: Sending,
}

impl Drop for Lasting {
    fn drop(&mut self) {
        self.sending.set(Bound::default());
    }
}

impl Witness for Lasting {
    fn saw(&mut self, polled: &Polled, _: bool) {
        // Nobody is told: whoever bounds the task looks now and then.
        self.sending.0.bound.lock().until = polled.is_ready().then(|| Instant::now() + self.time);
    }
}

/// A body whose end ends the bound, given in steps.
struct Bounded {
    body: Body,
    /// What came from `body` and was not given on yet.
    pending: Bytes,
    step: usize,
    sending: Sending,
}

impl Drop for Bounded {
    fn drop(&mut self) {
        self.sending.set(Bound::default());
    }
}

impl hyper::body::Body for Bounded {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled {
        if self.pending.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)).transpose()?.map(Frame::into_data) {
                Some(Ok(data)) => self.pending = data,
                Some(Err(other)) => return Poll::Ready(Some(Ok(other))),
                None => return Poll::Ready(None),
            }
        }
        let step = self.pending.len().min(self.step);
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
        is_given_in_steps(STEP, |_| {}).await;
        is_given_in_steps(LARGE_STEP, |answer| {
            answer.extensions_mut().insert(InLargeSteps);
        })
        .await;
    }

    async fn is_given_in_steps(largest: usize, mark: impl Fn(&mut Response)) {
        let content: Vec<u8> = (0..5 * largest + 7).map(|n| (n % 251) as u8).collect();
        let length = content.len() as u64;
        let bounded = async {
            let mut answer = Response::new(full(content.clone()));
            mark(&mut answer);
            let mut body = Sending::begin(answer, TIME).into_body();
            let mut steps = Vec::new();
            let mut received = Vec::new();
            while !body.is_end_stream() {
                assert_eq!(body.size_hint().exact(), Some(length - received.len() as u64));
                let step = body.frame().await.expect("more").expect("data").into_data().expect("data");
                steps.push(step.len());
                received.extend_from_slice(&step);
            }
            assert!(received == content);
            assert_eq!(steps, [largest, largest, largest, largest, largest, 7]);
        };
        assert!(Sending::bound(bounded).await);
    }

    /// Whether a watch gets to its end that says something and is asked for more only after `held`.
    async fn lasts(held: Duration) -> bool {
        Sending::bound(async {
            let words = futures_util::stream::iter([Ok(Frame::data(Bytes::from_static(b"word")))]);
            let words = futures_util::StreamExt::chain(words, futures_util::stream::pending());
            let answer = Response::new(http_body_util::StreamBody::new(words).boxed_unsync());
            let mut body = Sending::begin_lasting(answer, TIME).into_body();
            body.frame().await.expect("a word").expect("a word");
            sleep(held).await;
            // Then it is silent for a long time.
            tokio::time::timeout(10 * TIME, body.frame()).await.expect_err("nothing more is said");
        })
        .await
    }

    #[tokio::test(start_paused = true)]
    async fn what_lasts_may_be_silent_but_must_be_read() {
        assert!(lasts(TIME - Duration::from_secs(1)).await);
        assert!(!lasts(2 * TIME + Duration::from_secs(1)).await);
    }
}
