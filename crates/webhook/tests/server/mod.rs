//! A webhook that answers whatever a test wants.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::Mutex,
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

/// Whom the server says it is.
pub(crate) enum Certificate {
    /// This host, by an authority of its own.
    For(&'static str),
    /// This host, and its own authority.
    OwnAuthority(&'static str),
}

/// What every request is answered with.
#[derive(Clone)]
pub(crate) struct Answer {
    bytes: Vec<u8>,
    then: Then,
}

#[derive(Clone, Copy)]
enum Then {
    NextRequest,
    Wait,
    HangUp,
}

impl Answer {
    pub(crate) fn new(status: &str, body: &str) -> Self {
        let bytes = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes();
        Self { bytes, then: Then::NextRequest }
    }

    pub(crate) fn ok(body: &str) -> Self {
        Self::new("200 OK", body)
    }

    pub(crate) fn never() -> Self {
        Self { bytes: Vec::new(), then: Then::Wait }
    }

    pub(crate) fn endless() -> Self {
        Self { bytes: b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{".to_vec(), then: Then::Wait }
    }

    pub(crate) fn hang_up() -> Self {
        Self { bytes: Vec::new(), then: Then::HangUp }
    }
}

/// A webhook on a port of this machine, until it is dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    /// PEM certificate of who vouches for it.
    pub(crate) authority: String,
    seen: Arc<Seen>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    requests: Mutex<Vec<String>>,
}

impl Server {
    pub(crate) async fn start(certificate: Certificate, answer: Answer) -> Self {
        let (authority, config) = identity(&certificate);
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let seen = Arc::<Seen>::default();
        let mut tasks = JoinSet::new();
        let shared = seen.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                connections.spawn(serve(acceptor.clone(), stream, answer.clone(), shared.clone()));
            }
        });
        Self { port, authority, seen, _tasks: tasks }
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// Method and path of each request.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.requests.try_lock().expect("nothing is being asked").clone()
    }
}

async fn serve(acceptor: TlsAcceptor, stream: TcpStream, answer: Answer, seen: Arc<Seen>) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let mut stream = BufReader::new(stream);
    while let Some(request) = read_request(&mut stream).await {
        seen.requests.lock().await.push(request);
        let sent = stream.write_all(&answer.bytes).await;
        if sent.is_err() || stream.flush().await.is_err() {
            return;
        }
        match answer.then {
            Then::NextRequest => {}
            Then::Wait => std::future::pending().await,
            Then::HangUp => return,
        }
    }
}

/// Reads one request, and says what it asks for.
async fn read_request(stream: &mut (impl AsyncBufReadExt + Unpin)) -> Option<String> {
    let mut first = String::new();
    stream.read_line(&mut first).await.ok().filter(|read| *read > 0)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        match line.trim().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().ok()?
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(first.trim_end().trim_end_matches(" HTTP/1.1").to_owned())
}

fn identity(certificate: &Certificate) -> (String, ServerConfig) {
    let key = KeyPair::generate().expect("a key");
    let (authority, own) = match certificate {
        Certificate::OwnAuthority(host) => {
            let mut params = CertificateParams::new([(*host).to_owned()]).expect("a name");
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let own = params.self_signed(&key).expect("a certificate");
            (own.pem(), own)
        }
        Certificate::For(host) => {
            let mut params = CertificateParams::new(Vec::new()).expect("no names");
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let authority_key = KeyPair::generate().expect("a key");
            let authority = params.self_signed(&authority_key).expect("a certificate").pem();
            let issuer = Issuer::new(params, authority_key);
            let params = CertificateParams::new([(*host).to_owned()]).expect("a name");
            (authority, params.signed_by(&key, &issuer).expect("a certificate"))
        }
    };
    let chain = vec![CertificateDer::from(own)];
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has the default versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("they belong together");
    (authority, config)
}
