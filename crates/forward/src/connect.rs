//! How connections come about.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use concord_server::Body;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite, BufReader},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{ForwardError, http2::Http2};

/// How much is read from the connection at once: what decrypts asks for 4 KiB at a time.
const READ_AHEAD: usize = 64 * 1024;

/// Bytes to and from another server.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Reaches another server: directly, or through whatever stands between.
#[async_trait]
pub trait Dial: Send + Sync + 'static {
    /// A connection for the bytes of TLS.
    async fn dial(&self) -> io::Result<Box<dyn Io>>;
}

/// Reaches an address directly.
#[derive(Debug, Clone, Copy)]
pub struct TcpDial(pub SocketAddr);

#[async_trait]
impl Dial for TcpDial {
    async fn dial(&self) -> io::Result<Box<dyn Io>> {
        let stream = TcpStream::connect(self.0).await?;
        // Requests are small and whole; without this they would wait for more.
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}

/// Makes connections to one server.
pub struct Connector {
    dial: Arc<dyn Dial>,
    tls: TlsConnector,
    /// For connections that are to be upgraded, which HTTP/2 ones are not.
    tls_http1: TlsConnector,
    server_name: ServerName<'static>,
    timeout: Duration,
    on_close: Option<OnClose>,
}

/// Told that a connection ended.
pub(crate) type OnClose = Arc<dyn Fn() + Send + Sync>;

/// What requests are sent on.
pub(crate) enum Sender {
    Http1(http1::SendRequest<Body>),
    Http2(Http2),
}

impl Connector {
    /// Dials so, and believes a server of this name as `tls` says; within `timeout`, handshakes included.
    pub fn new(
        dial: Arc<dyn Dial>,
        tls: &ClientConfig,
        server_name: ServerName<'static>,
        timeout: Duration,
    ) -> Self {
        let speaking = |protocols: &[&[u8]]| {
            let mut tls = tls.clone();
            tls.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
            TlsConnector::from(Arc::new(tls))
        };
        Self {
            dial,
            tls: speaking(&[b"h2", b"http/1.1"]),
            tls_http1: speaking(&[b"http/1.1"]),
            server_name,
            timeout,
            on_close: None,
        }
    }

    /// Has `on_close` called whenever a shared connection ends, for whatever reason: the other side may be gone.
    #[must_use]
    pub fn with_close_notice(self, on_close: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self { on_close: Some(on_close), ..self }
    }

    /// A connection of the protocol that the other side prefers.
    pub(crate) async fn connect(&self) -> Result<Sender, ForwardError> {
        self.in_time(async {
            let stream = self.secured(&self.tls).await?;
            match stream.get_ref().1.alpn_protocol() {
                Some(b"h2") => Ok(Sender::Http2(Http2::start(stream, self.on_close.clone()).await?)),
                _ => Ok(Sender::Http1(http1(stream).await?)),
            }
        })
        .await
    }

    /// A connection that can be upgraded.
    pub(crate) async fn connect_http1(&self) -> Result<http1::SendRequest<Body>, ForwardError> {
        self.in_time(async { http1(self.secured(&self.tls_http1).await?).await }).await
    }

    async fn secured(&self, tls: &TlsConnector) -> Result<Secured, ForwardError> {
        let failed = |error| ForwardError::Connect(Arc::new(error));
        let stream = BufReader::with_capacity(READ_AHEAD, self.dial.dial().await.map_err(failed)?);
        tls.connect(self.server_name.clone(), stream).await.map_err(failed)
    }

    async fn in_time<T>(
        &self,
        connecting: impl Future<Output = Result<T, ForwardError>>,
    ) -> Result<T, ForwardError> {
        match timeout(self.timeout, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(ForwardError::ConnectTimeout(self.timeout)),
        }
    }
}

type Secured = TlsStream<BufReader<Box<dyn Io>>>;

async fn http1(stream: Secured) -> Result<http1::SendRequest<Body>, ForwardError> {
    let (mut sender, connection) = http1::Builder::new()
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| ForwardError::NoAnswer(Arc::new(error)))?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "A connection to another server ended early.");
        }
    });
    // It is not before its task has begun.
    sender.ready().await.map_err(|error| ForwardError::NoAnswer(Arc::new(error)))?;
    Ok(sender)
}
