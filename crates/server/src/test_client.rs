//! A small HTTPS client for tests: one connection per client, the protocol of one's choice, no pool, no
//! retries, every wait bounded.

use std::{future::Future, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
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

/// One connection to a server.
pub struct TestClient {
    sender: Sender,
    /// Drives the connection as long as there is a client.
    _connection: AbortOnDropHandle<()>,
}

enum Sender {
    Http1(http1::SendRequest<Empty<Bytes>>),
    Http2(http2::SendRequest<Empty<Bytes>>),
}

/// Connects and shakes hands as `localhost`, trusting only the authority in `ca`, and stops there.
///
/// # Errors
///
/// Whatever a client would complain about.
pub async fn connect_tls(
    server: SocketAddr,
    ca: &Path,
    protocol: Protocol,
) -> Result<TlsStream<TcpStream>, BoxError> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca)?)?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name: &[u8] = if protocol == Protocol::Http2 { b"h2" } else { b"http/1.1" };
    config.alpn_protocols = vec![name.to_vec()];
    let stream = bounded(TcpStream::connect(server)).await?;
    let connector = TlsConnector::from(Arc::new(config));
    let stream = bounded(connector.connect(ServerName::try_from("localhost")?, stream)).await?;
    if stream.get_ref().1.alpn_protocol() != Some(name) {
        return Err(format!("the server does not speak {protocol:?}").into());
    }
    Ok(stream)
}

impl TestClient {
    /// Connects to `server`, see [`connect_tls`].
    ///
    /// # Errors
    ///
    /// Whatever a client would complain about.
    pub async fn connect(server: SocketAddr, ca: &Path, protocol: Protocol) -> Result<Self, BoxError> {
        let stream = TokioIo::new(connect_tls(server, ca, protocol).await?);
        let (sender, connection) = match protocol {
            Protocol::Http1 => {
                let (sender, connection) = bounded(http1::handshake(stream)).await?;
                (Sender::Http1(sender), tokio::spawn(async move { drop(connection.await) }))
            }
            Protocol::Http2 => {
                let (sender, connection) = bounded(http2::handshake(TokioExecutor::new(), stream)).await?;
                (Sender::Http2(sender), tokio::spawn(async move { drop(connection.await) }))
            }
        };
        Ok(Self { sender, _connection: AbortOnDropHandle::new(connection) })
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
        let uri = match self.sender {
            Sender::Http1(_) => path.to_owned(),
            Sender::Http2(_) => format!("https://localhost{path}"),
        };
        let request = http::Request::builder().method(method).uri(uri).header("host", "localhost");
        let request = request.body(Empty::new())?;
        let response = match &mut self.sender {
            Sender::Http1(sender) => {
                // The connection may need a moment to take note that the last answer was read.
                bounded(sender.ready()).await?;
                bounded(sender.send_request(request)).await?
            }
            Sender::Http2(sender) => bounded(sender.send_request(request)).await?,
        };
        let (parts, body) = response.into_parts();
        let body = String::from_utf8(bounded(body.collect()).await?.to_bytes().into())?;
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
    }
}

/// Waits, but not forever.
async fn bounded<T, E: Into<BoxError>>(step: impl Future<Output = Result<T, E>>) -> Result<T, BoxError> {
    timeout(PATIENCE, step).await?.map_err(Into::into)
}
