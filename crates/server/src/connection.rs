use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use http::{Method, header::CONTENT_LENGTH};
use http_body_util::{BodyExt as _, Empty};
use hyper::{
    body::{Body as _, Incoming},
    rt::Executor,
    service::service_fn,
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    net::TcpStream,
    sync::Notify,
    time::{sleep, timeout},
};
use tokio_rustls::server::TlsStream;
use tokio_util::task::TaskTracker;

use crate::{
    ConnectionHandle, ConnectionLimits, Metrics, ShutdownToken,
    audit::PeerAddress,
    authentication::PeerCertificates,
    cork::{Gate, KEPT_BY_TLS, Turn, cork, gate},
    http::{Handler, Request, Response},
    sending::Sending,
    tls::Tls,
};

/// How much one request or answer may have waiting in a connection's buffers; also how long the header of a
/// request may be. What is larger waits with its handler, where its time is bound.
const BUFFER: usize = 256 * 1024;
/// How much of one request body, and of all on an HTTP/2 connection, a client may send before a handler reads
/// it. The first is upstream's.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// What all connections share.
pub(crate) struct Connections {
    pub(crate) tls: Tls,
    pub(crate) handshake: Duration,
    pub(crate) first_request: Duration,
    pub(crate) protocol: Protocol,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) draining: ShutdownToken,
}

/// The settings of both protocols.
pub(crate) struct Protocol {
    http1: auto::Builder<Streams>,
    http2: auto::Builder<Streams>,
}

/// Runs the requests of HTTP/2 connections where they are counted.
#[derive(Clone)]
struct Streams(TaskTracker);

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        // In a box it is moved from future to future for little.
        let stream = Box::pin(stream);
        self.0.spawn(async {
            if !Sending::bound(stream).await {
                tracing::debug!("A client did not read its answer, which was cut off.");
            }
        });
    }
}

impl Protocol {
    pub(crate) fn new(limits: &ConnectionLimits, streams: TaskTracker) -> Self {
        let mut builder = auto::Builder::new(Streams(streams));
        builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.header).max_buf_size(BUFFER);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.streams)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(BUFFER)
            .max_header_list_size(BUFFER as u32)
            .keep_alive_interval(limits.ping_interval)
            .keep_alive_timeout(limits.ping_timeout);
        Self { http1: builder.clone().http1_only(), http2: builder.http2_only() }
    }

    /// What the client agreed to in the handshake. Guessing from the first bytes instead would leave a
    /// client that sends none waiting outside every timeout.
    fn negotiated(&self, stream: &TlsStream<Gate<TcpStream>>) -> &auto::Builder<Streams> {
        match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => &self.http2,
            _ => &self.http1,
        }
    }
}

/// Answers `HEAD` with the headers of `GET` and no body. Over HTTP/2 nobody else takes the body away, and
/// sending it is a protocol error.
async fn answer(handler: &dyn Handler, request: Request) -> Response {
    let head = request.method() == Method::HEAD;
    let mut response = handler.handle(request).await;
    if head {
        if let Some(length) = response.body().size_hint().exact() {
            response.headers_mut().insert(CONTENT_LENGTH, length.into());
        }
        *response.body_mut() = Empty::new().map_err(|never| match never {}).boxed_unsync();
    }
    response
}

impl Connections {
    /// Serves one connection to its end.
    pub(crate) async fn serve(&self, stream: TcpStream) {
        let (stream, turn) = gate(stream);
        let handshake = timeout(self.handshake, self.tls.acceptor().accept(stream));
        let handshake = tokio::select! {
            () = self.draining.begun() => return,
            handshake = handshake => handshake,
        };
        // What a client does wrong is its own affair, and anyone can do it: not above debug.
        match handshake {
            Ok(Ok(stream)) => {
                if !Sending::bound(self.serve_requests(stream, turn)).await {
                    tracing::debug!("A client did not read its answer, its connection was cut.");
                }
            }
            Ok(Err(error)) => {
                self.metrics.tls_handshake_errors.inc();
                tracing::debug!(%error, "A TLS handshake failed.");
            }
            Err(_) => {
                self.metrics.tls_handshake_errors.inc();
                tracing::debug!("A TLS handshake took too long.");
            }
        }
    }

    async fn serve_requests(&self, mut stream: TlsStream<Gate<TcpStream>>, turn: Turn) {
        stream.get_mut().1.set_buffer_limit(Some(KEPT_BY_TLS));
        let handle = ConnectionHandle::new(&self.draining);
        let certificates = stream.get_ref().1.peer_certificates().map(PeerCertificates::new);
        let peer = stream.get_ref().0.stream.peer_addr().ok().map(|address| PeerAddress(address.ip()));
        let arrived = Notify::new();
        let service = service_fn(|request: hyper::Request<Incoming>| {
            arrived.notify_one();
            let handler = self.handler.clone();
            let mut request = request.map(|body| body.map_err(Into::into).boxed_unsync());
            request.extensions_mut().insert(handle.clone());
            if let Some(peer) = peer {
                request.extensions_mut().insert(peer);
            }
            if let Some(certificates) = &certificates {
                request.extensions_mut().insert(certificates.clone());
            }
            async move { Ok::<_, Infallible>(answer(&*handler, request).await) }
        });
        let protocol = self.protocol.negotiated(&stream);
        let (stream, cork) = cork(stream, turn);
        let mut connection = pin!(protocol.serve_connection_with_upgrades(TokioIo::new(stream), service));
        let mut too_late = pin!(sleep(self.first_request));
        let (mut silent, mut closing) = (true, false);
        loop {
            tokio::select! {
                biased;
                ended = poll_fn(|context| cork.poll_turn(context, connection.as_mut())) => {
                    match ended {
                        Ok(Ok(())) => break,
                        Ok(Err(error)) => tracing::debug!(%error, "A connection ended early."),
                        Err(error) => tracing::debug!(%error, "A connection broke."),
                    }
                    return;
                }
                () = arrived.notified(), if silent => silent = false,
                // HTTP/2 has no timeout of its own before the client has said its first word.
                () = &mut too_late, if silent => {
                    tracing::debug!("A client connected and asked nothing.");
                    return;
                }
                () = handle.closing(), if !closing => {
                    closing = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
        if let Err(error) = cork.flush().await {
            tracing::debug!(%error, "A connection broke.");
            return;
        }
        // Nothing is left of a connection that ended, except if it was handed over.
        join_all(handle.take_upgraded()).await;
    }
}
