//! A lean HTTP client: one connection, no pool, no retries, so that little of what is measured is ours.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite, BufReader},
    net::TcpStream,
    task::JoinHandle,
};
use tokio_rustls::TlsConnector;

use crate::kubeconfig::Access;

/// Flow control windows of Go's HTTP/2 client, which is what servers usually talk to. hyper's own are
/// smaller and would make the server wait in long lists.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;

/// Read from a socket at once. The TLS library alone would read 4 KiB at a time.
const READ_BYTES: usize = 64 << 10;

/// Of an answer that is not a success, for the message in it.
const MAX_FAILURE_BYTES: usize = 64 << 10;

/// The protocol to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

impl Protocol {
    fn alpn(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 => b"h2",
        }
    }
}

/// The server to measure; makes connections.
#[derive(Clone)]
pub(crate) struct Server {
    inner: Arc<Inner>,
}

struct Inner {
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    protocol: Protocol,
    timeout: Duration,
    /// `https://host:port` and a prefix: what comes before the path in HTTP/2.
    origin: String,
    prefix: String,
    authority: HeaderValue,
    authorization: Option<HeaderValue>,
    accept_encoding: Option<HeaderValue>,
}

/// What a request asks for, apart from the headers that are the same for all.
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) accept: HeaderValue,
    /// Media type and body.
    pub(crate) body: Option<(HeaderValue, Bytes)>,
    /// What the client has already.
    pub(crate) if_none_match: Option<HeaderValue>,
}

/// Plain JSON.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

impl<'a> Call<'a> {
    /// A GET that accepts JSON.
    pub(crate) fn get(path: &'a str) -> Self {
        Self { method: Method::GET, path, accept: JSON, body: None, if_none_match: None }
    }

    /// A request with a body.
    pub(crate) fn with_body(method: Method, path: &'a str, media_type: HeaderValue, body: Bytes) -> Self {
        Self { method, body: Some((media_type, body)), ..Self::get(path) }
    }
}

impl Server {
    /// `gzip` asks for compressed answers; they are counted, never unpacked.
    pub(crate) fn new(access: &Access, protocol: Protocol, gzip: bool, timeout: Duration) -> Result<Self> {
        let tls = match &access.tls {
            Some(tls) => {
                let config: Arc<ClientConfig> = crate::tls::client_config(tls, protocol.alpn())?;
                let name = ServerName::try_from(tls.server_name.clone())
                    .with_context(|| format!("{:?} is not a server name", tls.server_name))?;
                Some((TlsConnector::from(config), name))
            }
            None => None,
        };
        let host = if access.host.contains(':') { format!("[{}]", access.host) } else { access.host.clone() };
        let authority = format!("{host}:{}", access.port);
        let bearer = access.token.as_ref().map(|token| HeaderValue::try_from(format!("Bearer {token}")));
        let mut authorization = bearer.transpose().context("the token cannot be sent in a header")?;
        if let Some(value) = &mut authorization {
            value.set_sensitive(true);
        }
        let inner = Inner {
            host: access.host.clone(),
            port: access.port,
            origin: format!("{}://{authority}", if tls.is_some() { "https" } else { "http" }),
            tls,
            protocol,
            timeout,
            prefix: access.path_prefix.clone(),
            authority: HeaderValue::try_from(authority).context("the host cannot be sent in a header")?,
            authorization,
            accept_encoding: gzip.then(|| HeaderValue::from_static("gzip")),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The address, for messages.
    pub(crate) fn url(&self) -> String {
        format!("{}{}", self.inner.origin, self.inner.prefix)
    }

    /// How long one request, its whole answer included, may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.inner.timeout
    }

    /// Makes a new connection.
    pub(crate) async fn connect(&self) -> Result<Connection> {
        // Boxed: handshakes are large futures, and all that wait for one would be as large.
        let attempt = tokio::time::timeout(self.inner.timeout, Box::pin(self.connect_now()));
        let connected = attempt.await.map_err(anyhow::Error::from).and_then(|done| done);
        connected.with_context(|| format!("cannot connect to {}", self.url()))
    }

    async fn connect_now(&self) -> Result<Connection> {
        let stream = TcpStream::connect((self.inner.host.as_str(), self.inner.port)).await?;
        stream.set_nodelay(true)?;
        let stream = BufReader::with_capacity(READ_BYTES, stream);
        let Some((connector, name)) = &self.inner.tls else { return self.handshake(stream).await };
        let stream = connector.connect(name.clone(), stream).await.context("TLS handshake")?;
        let chosen = stream.get_ref().1.alpn_protocol();
        if self.inner.protocol == Protocol::Http2 && chosen != Some(b"h2") {
            bail!("the server does not offer HTTP/2: use --http 1.1");
        }
        self.handshake(stream).await
    }

    async fn handshake<S>(&self, stream: S) -> Result<Connection>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (sender, driver) = match self.inner.protocol {
            Protocol::Http1 => {
                let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
                (Sender::Http1(sender), tokio::spawn(async move { connection.await.is_ok() }))
            }
            Protocol::Http2 => {
                let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                    .initial_stream_window_size(STREAM_WINDOW)
                    .initial_connection_window_size(CONNECTION_WINDOW)
                    .handshake(TokioIo::new(stream))
                    .await?;
                (Sender::Http2(sender), tokio::spawn(async move { connection.await.is_ok() }))
            }
        };
        Ok(Connection { server: self.inner.clone(), sender, driver: Arc::new(Driver(driver)) })
    }
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// The task that moves a connection's bytes; ends with the last handle of its connection.
struct Driver(JoinHandle<bool>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One connection. One request at a time per handle; HTTP/2 handles can be shared out with [`Self::share`].
pub(crate) struct Connection {
    server: Arc<Inner>,
    sender: Sender,
    driver: Arc<Driver>,
}

impl Connection {
    /// Another handle on the same connection; `None` where the protocol has no streams.
    pub(crate) fn share(&self) -> Option<Self> {
        let Sender::Http2(sender) = &self.sender else { return None };
        let sender = Sender::Http2(sender.clone());
        Some(Self { server: self.server.clone(), sender, driver: self.driver.clone() })
    }

    /// Sends a request and waits for the head of the answer, whatever its status.
    pub(crate) async fn send(&mut self, call: Call<'_>) -> Result<Response<Incoming>> {
        let request = self.request(call)?;
        let response = match &mut self.sender {
            Sender::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Sender::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
        };
        Ok(response)
    }

    /// Sends a request whose answer must be a success.
    pub(crate) async fn expect(&mut self, call: Call<'_>) -> Result<Response<Incoming>> {
        let response = self.send(call).await?;
        if response.status().is_success() { Ok(response) } else { Err(refusal(response).await.into()) }
    }

    fn request(&self, call: Call<'_>) -> Result<Request<Full<Bytes>>> {
        let server = &self.server;
        let mut request = Request::builder().method(call.method);
        request = match self.sender {
            Sender::Http1(_) => request
                .uri(format!("{}{}", server.prefix, call.path))
                .header(header::HOST, server.authority.clone()),
            Sender::Http2(_) => request.uri(format!("{}{}{}", server.origin, server.prefix, call.path)),
        };
        request = request.header(header::ACCEPT, call.accept).header(header::USER_AGENT, USER_AGENT);
        let optional: [(HeaderName, &Option<HeaderValue>); 3] = [
            (header::AUTHORIZATION, &server.authorization),
            (header::ACCEPT_ENCODING, &server.accept_encoding),
            (header::IF_NONE_MATCH, &call.if_none_match),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                request = request.header(name, value.clone());
            }
        }
        let body = match call.body {
            Some((media_type, body)) => {
                request = request.header(header::CONTENT_TYPE, media_type);
                Full::new(body)
            }
            None => Full::default(),
        };
        Ok(request.body(body)?)
    }
}

const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("concord-bench/", env!("CARGO_PKG_VERSION")));

/// An answer that is not a success.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    message: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "the server answered {}: {}", self.status, self.message)
    }
}

impl std::error::Error for Refusal {}

async fn refusal(response: Response<Incoming>) -> Refusal {
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_FAILURE_BYTES).collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let decoded = concord_codec::decode(&body, &concord_codec::Options::default());
    let message = decoded.ok().and_then(|status| Some(status.object.get("message")?.as_str()?.to_owned()));
    let message = message.unwrap_or_else(|| String::from_utf8_lossy(&body).trim().to_owned());
    Refusal { status, message }
}
