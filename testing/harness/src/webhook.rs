//! A webhook that answers whatever a test wants, over TLS.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::Context as _;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer},
    },
};

/// Whom a webhook says it is.
#[derive(Debug, Clone, Copy)]
pub enum Certificate<'a> {
    /// This host, by an authority made for it.
    For(&'a str),
    /// This host, and its own authority.
    OwnAuthority(&'a str),
}

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Method and path.
    pub line: String,
    /// The body.
    pub body: Vec<u8>,
}

/// How a request is answered.
#[derive(Debug, Clone)]
pub struct Reply {
    bytes: Vec<u8>,
    then: Then,
}

#[derive(Debug, Clone, Copy)]
enum Then {
    NextRequest,
    Wait,
    HangUp,
}

impl Reply {
    /// A whole answer; more headers can stand behind the status, each in a line of its own.
    pub fn new(status: &str, body: &str) -> Self {
        let bytes = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes();
        Self { bytes, then: Then::NextRequest }
    }

    /// A success.
    pub fn ok(body: &str) -> Self {
        Self::new("200 OK", body)
    }

    /// No answer, and no end of the connection.
    pub fn never() -> Self {
        Self { bytes: Vec::new(), then: Then::Wait }
    }

    /// The beginning of an answer.
    pub fn endless() -> Self {
        Self { bytes: b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{".to_vec(), then: Then::Wait }
    }

    /// The beginning of an answer, and the end of the connection.
    pub fn cut() -> Self {
        Self { then: Then::HangUp, ..Self::endless() }
    }

    /// The end of the connection.
    pub fn hang_up() -> Self {
        Self { bytes: Vec::new(), then: Then::HangUp }
    }
}

type Answer = Arc<dyn Fn(&Asked) -> Reply + Send + Sync>;

/// A webhook on a port of this machine, until it is dropped.
pub struct WebhookServer {
    /// Its port.
    pub port: u16,
    /// The PEM certificate of who vouches for it.
    pub authority: String,
    seen: Arc<Seen>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    asked: Mutex<Vec<Asked>>,
}

impl WebhookServer {
    /// Starts one.
    ///
    /// # Errors
    ///
    /// If there is no port, or no certificate for that host.
    pub async fn start(
        certificate: Certificate<'_>,
        answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let (authority, config) = identity(certificate)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (seen, answer): (Arc<Seen>, Answer) = (Arc::default(), Arc::new(answer));
        let mut tasks = JoinSet::new();
        let shared = seen.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                connections.spawn(serve(acceptor.clone(), stream, answer.clone(), shared.clone()));
            }
        });
        Ok(Self { port, authority, seen, _tasks: tasks })
    }

    /// How many connections there were.
    pub fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// All that was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.seen.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets what was asked so far, and says what it was.
    pub fn take_asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.seen.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn serve(acceptor: TlsAcceptor, stream: TcpStream, answer: Answer, seen: Arc<Seen>) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let mut stream = BufReader::new(stream);
    while let Some(asked) = read_request(&mut stream).await {
        let reply = answer(&asked);
        seen.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
        if stream.write_all(&reply.bytes).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        match reply.then {
            Then::NextRequest => {}
            Then::Wait => std::future::pending().await,
            Then::HangUp => return,
        }
    }
}

async fn read_request(stream: &mut (impl AsyncBufReadExt + Unpin)) -> Option<Asked> {
    let mut first = String::new();
    stream.read_line(&mut first).await.ok().filter(|read| *read > 0)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        match line.trim().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().ok()?;
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Asked { line: first.trim_end().trim_end_matches(" HTTP/1.1").to_owned(), body })
}

fn identity(certificate: Certificate<'_>) -> anyhow::Result<(String, ServerConfig)> {
    let key = KeyPair::generate()?;
    let (authority, own) = match certificate {
        Certificate::OwnAuthority(host) => {
            let mut params = CertificateParams::new([host.to_owned()])?;
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let own = params.self_signed(&key)?;
            (own.pem(), own)
        }
        Certificate::For(host) => {
            let mut params = CertificateParams::new(Vec::new())?;
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let authority_key = KeyPair::generate()?;
            let authority = params.self_signed(&authority_key)?.pem();
            let issuer = Issuer::new(params, authority_key);
            (authority, CertificateParams::new([host.to_owned()])?.signed_by(&key, &issuer)?)
        }
    };
    let chain = vec![CertificateDer::from(own)];
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("certificate and key do not belong together")?;
    Ok((authority, config))
}
