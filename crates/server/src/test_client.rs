//! A small HTTPS client for tests: one connection per client, the protocol of one's choice, no pool, no
//! retries, every wait bounded.

use std::{
    future::Future,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_util::task::AbortOnDropHandle;

use crate::BoxError;

/// No step of a test takes longer, however loaded the machine is.
const PATIENCE: Duration = Duration::from_secs(30);

/// Which protocol to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// A complete answer.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: String,
}

/// Where a server is and how to speak to it.
#[derive(Debug, Clone)]
pub struct Target {
    address: SocketAddr,
    ca: PathBuf,
    protocol: Protocol,
    identity: Option<(PathBuf, PathBuf)>,
}

impl Target {
    /// A server that is called `localhost`, trusting only the authority in `ca`.
    pub fn new(address: SocketAddr, ca: &Path, protocol: Protocol) -> Self {
        Self { address, ca: ca.to_owned(), protocol, identity: None }
    }

    /// Shows the certificate and has the key in these files.
    #[must_use]
    pub fn with_identity(mut self, certificate: &Path, key: &Path) -> Self {
        self.identity = Some((certificate.to_owned(), key.to_owned()));
        self
    }

    /// Connects and shakes hands, and stops there.
    ///
    /// # Errors
    ///
    /// Whatever a client would complain about.
    pub async fn connect_tls(&self) -> Result<TlsStream<TcpStream>, BoxError> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&self.ca)?)?;
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let mut config = match &self.identity {
            Some((certificate, key)) => {
                let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<_, _>>()?;
                builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(key)?)?
            }
            None => builder.with_no_client_auth(),
        };
        let name: &[u8] = if self.protocol == Protocol::Http2 { b"h2" } else { b"http/1.1" };
        config.alpn_protocols = vec![name.to_vec()];
        let stream = bounded(TcpStream::connect(self.address)).await?;
        let connector = TlsConnector::from(Arc::new(config));
        let stream = bounded(connector.connect(ServerName::try_from("localhost")?, stream)).await?;
        if stream.get_ref().1.alpn_protocol() != Some(name) {
            return Err(format!("the server does not speak {:?}", self.protocol).into());
        }
        Ok(stream)
    }

    /// Connects, ready for requests.
    ///
    /// # Errors
    ///
    /// Whatever a client would complain about.
    pub async fn connect(self) -> Result<TestClient, BoxError> {
        let connection = Connection::open(&self).await?;
        Ok(TestClient { target: self, connection })
    }
}

/// A client with one connection at a time. It connects anew when the server has closed the last one.
pub struct TestClient {
    target: Target,
    connection: Connection,
}

struct Connection {
    sender: Sender,
    /// Drives the connection as long as there is a client.
    _driver: AbortOnDropHandle<()>,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Connection {
    async fn open(target: &Target) -> Result<Self, BoxError> {
        let stream = TokioIo::new(target.connect_tls().await?);
        let (sender, driver) = match target.protocol {
            Protocol::Http1 => {
                let (sender, connection) = bounded(http1::handshake(stream)).await?;
                let connection = connection.with_upgrades();
                (Sender::Http1(sender), tokio::spawn(async move { drop(connection.await) }))
            }
            Protocol::Http2 => {
                let (sender, connection) = bounded(http2::handshake(TokioExecutor::new(), stream)).await?;
                (Sender::Http2(sender), tokio::spawn(async move { drop(connection.await) }))
            }
        };
        Ok(Self { sender, _driver: AbortOnDropHandle::new(driver) })
    }

    async fn ready(&mut self) -> Result<(), BoxError> {
        match &mut self.sender {
            // The connection may need a moment to take note that the last answer was read.
            Sender::Http1(sender) => bounded(sender.ready()).await,
            Sender::Http2(sender) => bounded(sender.ready()).await,
        }
    }

    async fn send(
        &mut self,
        request: http::Request<Full<Bytes>>,
    ) -> Result<http::Response<Incoming>, BoxError> {
        match &mut self.sender {
            Sender::Http1(sender) => bounded(sender.send_request(request)).await,
            Sender::Http2(sender) => bounded(sender.send_request(request)).await,
        }
    }
}

impl TestClient {
    /// Connects to `server`, see [`Target`].
    ///
    /// # Errors
    ///
    /// Whatever a client would complain about.
    pub async fn connect(server: SocketAddr, ca: &Path, protocol: Protocol) -> Result<Self, BoxError> {
        Target::new(server, ca, protocol).connect().await
    }

    /// Asks for `path`.
    ///
    /// # Errors
    ///
    /// If the connection ends before the answer does.
    pub async fn get(&mut self, path: &str) -> Result<Answer, BoxError> {
        self.request(Method::GET, path).await
    }

    /// Sends a request without a body.
    ///
    /// # Errors
    ///
    /// If the connection ends before the answer does.
    pub async fn request(&mut self, method: Method, path: &str) -> Result<Answer, BoxError> {
        self.exchange(method, path, &[], Bytes::new()).await
    }

    /// Sends any request and waits for all of the answer.
    ///
    /// # Errors
    ///
    /// If the connection ends before the answer does.
    pub async fn exchange(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Answer, BoxError> {
        let response = self.send(method, path, headers, body).await?;
        let (parts, body) = response.into_parts();
        let body = String::from_utf8(bounded(body.collect()).await?.to_bytes().into())?;
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
    }

    /// Sends any request and gives the answer as it comes.
    ///
    /// # Errors
    ///
    /// If the connection ends before the answer begins.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<http::Response<Incoming>, BoxError> {
        let uri = match self.target.protocol {
            Protocol::Http1 => path.to_owned(),
            Protocol::Http2 => format!("https://localhost{path}"),
        };
        let mut request = http::Request::builder().method(method).uri(uri).header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body))?;
        if self.connection.ready().await.is_err() {
            self.reconnect().await?;
        }
        match self.connection.send(request.clone()).await {
            Err(error) if error.downcast_ref().is_some_and(is_unseen) => {
                self.reconnect().await?;
                self.connection.send(request).await
            }
            answer => answer,
        }
    }

    async fn reconnect(&mut self) -> Result<(), BoxError> {
        self.connection = Connection::open(&self.target).await?;
        self.connection.ready().await
    }
}

/// Whether the server closed the connection at this very moment, without having seen the request.
fn is_unseen(error: &hyper::Error) -> bool {
    // What the other side said is not part of hyper's own interface.
    error.is_canceled() || format!("{error:?}").contains("GoAway")
}

/// Waits, but not forever.
async fn bounded<T, E: Into<BoxError>>(step: impl Future<Output = Result<T, E>>) -> Result<T, BoxError> {
    timeout(PATIENCE, step).await?.map_err(Into::into)
}
