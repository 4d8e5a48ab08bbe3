//! Many requests over one HTTP/2 connection.
//!
//! Whoever asks gives its request to the connection and waits for the answer itself. hyper's client has a task of the
//! connection take each request and makes another one that waits for its answer: three turns of tasks more for each.

use std::{
    future::{pending, poll_fn},
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::Bytes;
use concord_server::{Body, BoxError};
use futures_util::FutureExt as _;
use h2::{
    Ping, PingPong, Reason, RecvStream, SendStream,
    client::{Builder, SendRequest},
};
use http::header::CONTENT_LENGTH;
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::oneshot,
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{
    ForwardError,
    connect::OnClose,
    pool::{MAX_STREAMS, Share},
};

/// How much of one answer is taken before its client reads it; as much as this server's own clients may send ahead.
const STREAM_WINDOW: u32 = 256 * 1024;
/// As much as all answers of a connection together, so that clients who do not read never hold up others.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * MAX_STREAMS as u32;
/// How much is sent in one frame; what is long would otherwise come in pieces of 16 KiB.
const FRAME: u32 = 64 * 1024;
/// How long the headers of an answer may be.
const HEADERS: u32 = 16 * 1024;
/// How much of requests may wait to be sent.
const SEND_BUFFER: usize = 1024 * 1024;
/// When and how long to look whether the other side is still there; upstream's times.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// A connection; those that are cloned from it are the same one.
#[derive(Clone)]
pub(crate) struct Http2 {
    sender: SendRequest<Bytes>,
    /// Whether it takes no more requests.
    ended: Arc<AtomicBool>,
    /// What the other side said when it began.
    most: usize,
}

/// There is no answer; with the body, if nothing of the request was sent, or it may be sent again.
pub(crate) struct Unanswered {
    pub(crate) error: ForwardError,
    pub(crate) body: Option<Body>,
}

impl Http2 {
    /// Begins to speak, and calls `on_close` when the connection has ended.
    pub(crate) async fn start(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        on_close: Option<OnClose>,
    ) -> Result<Self, ForwardError> {
        let handshake = Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(FRAME)
            .max_header_list_size(HEADERS)
            .max_send_buffer_size(SEND_BUFFER)
            .enable_push(false)
            .handshake(stream);
        let (sender, mut connection) = handshake.await.map_err(no_answer)?;
        let ended = Arc::new(AtomicBool::new(false));
        let has_ended = ended.clone();
        let pings = connection.ping_pong().expect("nobody else has asked for it");
        let (settled, is_settled) = oneshot::channel();
        tokio::spawn(async move {
            tokio::select! {
                ended = connection => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "A connection to another server ended early.");
                    }
                }
                () = silence(pings, settled) => tracing::debug!("Another server does not answer any more."),
            }
            has_ended.store(true, Ordering::Relaxed);
            if let Some(on_close) = on_close {
                on_close();
            }
        });
        match is_settled.await {
            Ok(()) => {
                let most = sender.current_max_send_streams().clamp(1, MAX_STREAMS);
                Ok(Self { sender, ended, most })
            }
            // It has ended, and its task has said why.
            Err(_) => Err(ForwardError::NoAnswer(Arc::new(io::Error::from(io::ErrorKind::UnexpectedEof)))),
        }
    }

    /// Whether it has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Whether it takes one more request; not if the other side has said that it is about to end it.
    pub(crate) fn takes_more(&mut self) -> bool {
        let refused = self.sender.poll_ready(&mut Context::from_waker(Waker::noop())).map_err(|_| ());
        let takes_more = refused != Poll::Ready(Err(()));
        if !takes_more {
            self.ended.store(true, Ordering::Relaxed);
        }
        takes_more
    }

    /// How many requests it takes at once. More would wait in it for others to end, and watches do not.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Sends a request, and gives its answer as soon as the head of it is there. Whoever drops the future, or the body of the
    /// answer, ends the request there, too. `share` goes with the body.
    pub(crate) async fn send(
        mut self,
        request: http::Request<Body>,
        share: Share,
    ) -> Result<http::Response<Body>, Unanswered> {
        let (mut head, body) = request.into_parts();
        let is_whole = body.is_end_stream();
        let length = body.size_hint().exact().filter(|length| *length > 0);
        if let (Some(length), false) = (length, head.headers.contains_key(CONTENT_LENGTH)) {
            head.headers.insert(CONTENT_LENGTH, length.into());
        }
        let request = http::Request::from_parts(head, ());
        let (answer, to) = match self.sender.send_request(request, is_whole) {
            Ok(sent) => sent,
            Err(error) => {
                // The other side is about to end it, or it has had as many requests as there are numbers.
                self.ended.store(true, Ordering::Relaxed);
                return Err(Unanswered { error: no_answer(error), body: Some(body) });
            }
        };
        let pump = if is_whole { None } else { Pump::start(body, to) };
        let answer = answer.await.map_err(|error| Unanswered { error: no_answer(error), body: None })?;
        let said = answer.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        Ok(answer.map(|stream: RecvStream| {
            // What is said of a body that is not sent, as in answers to HEAD, is not its length.
            let length = if stream.is_end_stream() { Some(0) } else { said };
            Received { stream, is_read: false, length, kept: Some((share, pump)) }.boxed_unsync()
        }))
    }
}

/// What is wrong with the connection itself is said as such: an error of HTTP/2 hides what caused it.
fn no_answer(error: h2::Error) -> ForwardError {
    match error.get_io() {
        Some(cause) => ForwardError::NoAnswer(Arc::new(io::Error::new(cause.kind(), cause.to_string()))),
        None => ForwardError::NoAnswer(Arc::new(error)),
    }
}

/// Waits until the other side does not answer. It is asked at once, too, and has said before it answers how many requests it
/// takes.
async fn silence(mut pings: PingPong, settled: oneshot::Sender<()>) {
    let mut settled = Some(settled);
    loop {
        match timeout(PING_TIMEOUT, pings.ping(Ping::opaque())).await {
            Ok(Ok(_)) => {}
            // The connection knows what is wrong with it.
            Ok(Err(_)) => return pending().await,
            Err(_) => return,
        }
        // Whoever wanted the connection may be gone.
        settled.take().map(|settled| settled.send(()));
        sleep(PING_INTERVAL).await;
    }
}

/// Sends the body of a request, for as long as anybody wants the answer.
struct Pump(JoinHandle<()>);

impl Drop for Pump {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Pump {
    /// Most bodies are there as a whole, and need no task.
    fn start(body: Body, to: SendStream<Bytes>) -> Option<Self> {
        let mut sending = Box::pin(send_body(body, to));
        let is_sent = (&mut sending).now_or_never().is_some();
        (!is_sent).then(|| Self(tokio::spawn(sending)))
    }
}

/// Sends a body as it comes, and no faster than it is taken. Where that fails the answer fails as well, and says why.
async fn send_body(mut body: Body, mut to: SendStream<Bytes>) {
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return to.send_reset(Reason::CANCEL) };
        let frame = match frame.into_data() {
            Ok(data) => match send_data(data, body.is_end_stream(), &mut to).await {
                Ok(true) => continue,
                Ok(false) | Err(_) => return,
            },
            Err(frame) => frame,
        };
        if let Ok(trailers) = frame.into_trailers() {
            return drop(to.send_trailers(trailers));
        }
    }
    drop(to.send_data(Bytes::new(), true));
}

/// Whether more may follow.
async fn send_data(mut data: Bytes, is_last: bool, to: &mut SendStream<Bytes>) -> Result<bool, h2::Error> {
    if data.is_empty() && is_last {
        // Clients that learn only then that there is no more, as Go's, end with an empty frame.
        to.send_data(data, true)?;
        return Ok(false);
    }
    while !data.is_empty() {
        to.reserve_capacity(data.len());
        let Some(room) = poll_fn(|context| to.poll_capacity(context)).await else { return Ok(false) };
        let piece = data.split_to(room?.min(data.len()));
        if !piece.is_empty() {
            to.send_data(piece, is_last && data.is_empty())?;
        }
    }
    Ok(!is_last)
}

/// The body of an answer.
struct Received {
    stream: RecvStream,
    /// Whether all but what comes after it was read.
    is_read: bool,
    /// How much is to come, if that was said.
    length: Option<u64>,
    /// What counts the request as one of the connection's, and what sends the rest of it.
    kept: Option<(Share, Option<Pump>)>,
}

impl HttpBody for Received {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if !self.is_read {
            match ready!(self.stream.poll_data(context)) {
                Some(data) => return Poll::Ready(self.took(data)),
                None => self.is_read = true,
            }
        }
        let trailers = ready!(self.stream.poll_trailers(context));
        // Whoever holds a body that has ended holds nothing else with it.
        self.kept = None;
        Poll::Ready(match trailers {
            Ok(trailers) => trailers.map(|trailers| Ok(Frame::trailers(trailers))),
            Err(error) => Some(Err(error.into())),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Received {
    /// Makes room for as much again.
    fn took(&mut self, data: Result<Bytes, h2::Error>) -> Option<Result<Frame<Bytes>, BoxError>> {
        let taken = data.and_then(|data| {
            self.stream.flow_control().release_capacity(data.len())?;
            Ok(data)
        });
        match taken {
            Ok(data) => {
                self.length = self.length.map(|length| length.saturating_sub(data.len() as u64));
                Some(Ok(Frame::data(data)))
            }
            // Whatever the reason, "no error" included: had the server said all, the end would have come before it.
            Err(error) => Some(Err(error.into())),
        }
    }
}
