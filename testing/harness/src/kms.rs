//! A key management service as the API server's protocol has it, version 2, on a unix socket.
//!
//! Its encryption is a game: what it encrypts is recognizable, and what another of its keys encrypted it still decrypts.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::{BufMut as _, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use prost::Message;
use tempfile::TempDir;
use tokio::{net::UnixListener, task::JoinHandle};

#[derive(Clone, PartialEq, Message)]
struct StatusResponse {
    #[prost(string, tag = "1")]
    version: String,
    #[prost(string, tag = "2")]
    healthz: String,
    #[prost(string, tag = "3")]
    key_id: String,
}

/// `DecryptRequest` and `EncryptRequest`, as far as they are looked at.
#[derive(Clone, PartialEq, Message)]
struct Asked {
    #[prost(bytes = "vec", tag = "1")]
    data: Vec<u8>,
}

/// `DecryptResponse` and `EncryptResponse`.
#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(bytes = "vec", tag = "1")]
    data: Vec<u8>,
    #[prost(string, tag = "2")]
    key_id: String,
    #[prost(btree_map = "string, bytes", tag = "3")]
    annotations: BTreeMap<String, Vec<u8>>,
}

/// What the service says and does.
#[derive(Debug, Clone)]
pub struct Behaviour {
    /// The key that it says it uses.
    pub status_key: String,
    /// The key that it says it encrypted with.
    pub encrypt_key: String,
    /// `ok` if it is well.
    pub healthz: String,
    /// Of the protocol.
    pub version: String,
    /// It answers nothing but this gRPC status and message.
    pub failure: Option<(u8, String)>,
    /// The same, but only if it is to decrypt something.
    pub decrypt_failure: Option<(u8, String)>,
    /// What comes along with what is encrypted.
    pub annotations: BTreeMap<String, Vec<u8>>,
}

/// A running service; it ends with this value.
pub struct KmsPlugin {
    directory: TempDir,
    behaviour: Arc<Mutex<Behaviour>>,
    decrypted: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

/// What a key that was encrypted begins with.
const MARK: &[u8] = b"wrapped:";

/// No secret at all.
const PAD: u8 = 0x5a;

impl KmsPlugin {
    /// A service that uses a key of this name.
    ///
    /// # Errors
    ///
    /// When there can be no socket.
    pub fn start(key: &str) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("concord-kms-").tempdir()?;
        let behaviour = Behaviour {
            status_key: key.to_owned(),
            encrypt_key: key.to_owned(),
            healthz: "ok".to_owned(),
            version: "v2".to_owned(),
            failure: None,
            decrypt_failure: None,
            annotations: BTreeMap::from([("key.example.com".to_owned(), b"yes".to_vec())]),
        };
        let behaviour = Arc::new(Mutex::new(behaviour));
        let decrypted = Arc::new(AtomicUsize::new(0));
        let listener = UnixListener::bind(directory.path().join("kms.sock"))?;
        let task = tokio::spawn(accept(listener, behaviour.clone(), decrypted.clone()));
        Ok(Self { directory, behaviour, decrypted, task })
    }

    /// Where it is, as a configuration says it.
    pub fn endpoint(&self) -> String {
        format!("unix://{}", self.directory.path().join("kms.sock").display())
    }

    /// Changes what it does.
    pub fn change(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.behaviour.lock());
    }

    /// Uses another key.
    pub fn rotate(&self, key: &str) {
        self.change(|behaviour| {
            key.clone_into(&mut behaviour.status_key);
            key.clone_into(&mut behaviour.encrypt_key);
        });
    }

    /// How often it was asked to decrypt something.
    pub fn decrypted(&self) -> usize {
        self.decrypted.load(Ordering::SeqCst)
    }
}

impl Drop for KmsPlugin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: UnixListener, behaviour: Arc<Mutex<Behaviour>>, decrypted: Arc<AtomicUsize>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (behaviour, decrypted) = (behaviour.clone(), decrypted.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let (behaviour, decrypted) = (behaviour.lock().clone(), decrypted.clone());
            async move { Ok::<_, Infallible>(answer(request, &behaviour, &decrypted).await) }
        });
        connections.spawn(async move {
            let connection = http2::Builder::new(TokioExecutor::new());
            // Whoever hangs up has had enough.
            connection.serve_connection(TokioIo::new(stream), service).await.ok();
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    behaviour: &Behaviour,
    decrypted: &AtomicUsize,
) -> Response<http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>> {
    let method = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let asked = Asked::decode(body.slice(body.len().min(5)..)).unwrap_or_default();
    let (message, status, why) = match (&behaviour.failure, method.as_str()) {
        (Some((status, why)), _) => (Bytes::new(), *status, why.clone()),
        (None, "Status") => (framed(&status(behaviour)), 0, String::new()),
        (None, "Encrypt") => (framed(&encrypt(behaviour, &asked.data)), 0, String::new()),
        (None, _) => {
            decrypted.fetch_add(1, Ordering::SeqCst);
            match decrypt(&asked.data) {
                _ if behaviour.decrypt_failure.is_some() => {
                    let (status, why) = behaviour.decrypt_failure.clone().unwrap_or_default();
                    (Bytes::new(), status, why)
                }
                Some(answer) => (framed(&answer), 0, String::new()),
                None => (Bytes::new(), 3, "this was not encrypted here".to_owned()),
            }
        }
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(u16::from(status)));
    trailers
        .insert("grpc-message", HeaderValue::from_str(&why).unwrap_or_else(|_| HeaderValue::from_static("")));
    let body = Full::new(message).with_trailers(async move { Some(Ok(trailers)) });
    let mut response = Response::new(body.boxed_unsync());
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    response
}

fn status(behaviour: &Behaviour) -> StatusResponse {
    StatusResponse {
        version: behaviour.version.clone(),
        healthz: behaviour.healthz.clone(),
        key_id: behaviour.status_key.clone(),
    }
}

fn encrypt(behaviour: &Behaviour, plain: &[u8]) -> Answer {
    let hidden: Vec<u8> = plain.iter().map(|byte| byte ^ PAD).collect();
    Answer {
        data: [MARK, &hidden].concat(),
        key_id: behaviour.encrypt_key.clone(),
        annotations: behaviour.annotations.clone(),
    }
}

fn decrypt(sealed: &[u8]) -> Option<Answer> {
    let hidden = sealed.strip_prefix(MARK)?;
    Some(Answer { data: hidden.iter().map(|byte| byte ^ PAD).collect(), ..Answer::default() })
}

/// As gRPC sends messages.
fn framed(message: &impl Message) -> Bytes {
    let bytes = message.encode_to_vec();
    let mut framed = BytesMut::with_capacity(bytes.len() + 5);
    framed.put_u8(0);
    framed.put_u32(u32::try_from(bytes.len()).unwrap_or_default());
    framed.put_slice(&bytes);
    framed.freeze()
}
