use std::{convert::Infallible, future::Future, pin::pin, sync::Arc, time::Duration};

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
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    ConnectionLimits,
    http::{Handler, Request, Response},
};

/// What all connections share.
pub(crate) struct Connections {
    pub(crate) tls: TlsAcceptor,
    pub(crate) handshake: Duration,
    pub(crate) first_request: Duration,
    pub(crate) protocol: Protocol,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) drain: CancellationToken,
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
        self.0.spawn(stream);
    }
}

impl Protocol {
    pub(crate) fn new(limits: &ConnectionLimits, streams: TaskTracker) -> Self {
        let mut builder = auto::Builder::new(Streams(streams));
        builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.header);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.streams)
            .keep_alive_interval(limits.ping_interval)
            .keep_alive_timeout(limits.ping_timeout);
        Self { http1: builder.clone().http1_only(), http2: builder.http2_only() }
    }

    /// What the client agreed to in the handshake. Guessing from the first bytes instead would leave a
    /// client that sends none waiting outside every timeout.
    fn negotiated(&self, stream: &TlsStream<TcpStream>) -> &auto::Builder<Streams> {
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
        let handshake = timeout(self.handshake, self.tls.accept(stream));
        let handshake = tokio::select! {
            () = self.drain.cancelled() => return,
            handshake = handshake => handshake,
        };
        // What a client does wrong is its own affair, and anyone can do it: not above debug.
        match handshake {
            Ok(Ok(stream)) => self.serve_requests(stream).await,
            Ok(Err(error)) => tracing::debug!(%error, "A TLS handshake failed."),
            Err(_) => tracing::debug!("A TLS handshake took too long."),
        }
    }

    async fn serve_requests(&self, stream: TlsStream<TcpStream>) {
        let arrived = Notify::new();
        let service = service_fn(|request: hyper::Request<Incoming>| {
            arrived.notify_one();
            let handler = self.handler.clone();
            let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
            async move { Ok::<_, Infallible>(answer(&*handler, request).await) }
        });
        let protocol = self.protocol.negotiated(&stream);
        let mut connection = pin!(protocol.serve_connection(TokioIo::new(stream), service));
        let mut too_late = pin!(sleep(self.first_request));
        let (mut silent, mut draining) = (true, false);
        loop {
            tokio::select! {
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "A connection ended early.");
                    }
                    return;
                }
                () = arrived.notified(), if silent => silent = false,
                // HTTP/2 has no timeout of its own before the client has said its first word.
                () = &mut too_late, if silent => {
                    tracing::debug!("A client connected and asked nothing.");
                    return;
                }
                () = self.drain.cancelled(), if !draining => {
                    draining = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}
