//! The two servers of these tests.

use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use bytes::Bytes;
use concord_forward::{Backend, Connector, Dial, TcpDial};
use concord_pki::{AdminPki, ServingNames, ServingPki, Trust, client_tls};
use concord_server::{
    AlwaysAllow, Authentication, ClientAuthorities, Config, Handler, Request, Response, UserInfo, Version,
    full,
    test_client::{Protocol, Target, TestClient},
    text,
};
use futures_util::{StreamExt as _, stream};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::{
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::ServerName, server::ResolvesServerCert};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{Notify, watch},
};
use tokio_rustls::TlsAcceptor;

/// Far longer than anything here takes.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// More than all buffers and windows on the way hold.
pub(crate) const LARGE: usize = 8 << 20;

pub(crate) fn user() -> UserInfo {
    UserInfo { name: "ann".into(), groups: vec!["a".into()], ..UserInfo::default() }
}

pub(crate) fn request(method: Method, path: &str, body: &'static str) -> Request {
    http::Request::builder().method(method).uri(path).body(full(body)).expect("a request")
}

pub(crate) fn dial_to(address: SocketAddr) -> Arc<dyn Dial> {
    Arc::new(TcpDial(address))
}

/// A port where nobody listens.
pub(crate) async fn closed_port() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    listener.local_addr().expect("an address")
}

/// The server that answers.
pub(crate) struct Behind {
    pub(crate) address: SocketAddr,
    pub(crate) ca: PathBuf,
    identity: Arc<rustls::sign::CertifiedKey>,
    state: Arc<State>,
    directory: TempDir,
}

struct State {
    connections: AtomicUsize,
    open: watch::Sender<usize>,
    watching: watch::Sender<usize>,
    hang_up: Notify,
}

#[derive(Debug)]
struct Always(Arc<rustls::sign::CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
        Some(self.0.clone())
    }
}

impl Behind {
    pub(crate) async fn start(speaks: Protocol) -> Self {
        Self::start_with(speaks, 200).await
    }

    /// One that takes so many requests at once on an HTTP/2 connection.
    pub(crate) async fn start_with(speaks: Protocol, streams: u32) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let names = ServingNames::loopback().with_dns("behind.example");
        let pki = ServingPki::open_or_create(directory.path(), &names, SystemTime::now()).expect("a PKI");
        let mut tls = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Always(pki.identity.clone())));
        tls.alpn_protocols = match speaks {
            Protocol::Http1 => vec![b"http/1.1".to_vec()],
            Protocol::Http2 => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State {
            connections: AtomicUsize::new(0),
            open: watch::Sender::new(0),
            watching: watch::Sender::new(0),
            hang_up: Notify::new(),
        });
        tokio::spawn(accept(listener, TlsAcceptor::from(Arc::new(tls)), streams, state.clone()));
        Self { address, ca: pki.ca_certificate, identity: pki.identity, state, directory }
    }

    pub(crate) fn backend(&self, dial: Arc<dyn Dial>) -> Backend {
        self.backend_within(dial, SOON)
    }

    pub(crate) fn backend_within(&self, dial: Arc<dyn Dial>, timeout: Duration) -> Backend {
        let ca = std::fs::read(&self.ca).expect("an authority");
        let tls = client_tls(&Trust::Bundle(ca), None).expect("a certificate");
        let name = ServerName::try_from("behind.example").expect("a name");
        let connector = Connector::new(dial, &tls, name, timeout);
        Backend::new("behind.example:443".parse().expect("an authority"), connector)
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn watching(&self) -> usize {
        *self.state.watching.borrow()
    }

    pub(crate) async fn until_nobody_watches(&self) {
        let mut watching = self.state.watching.subscribe();
        let none = watching.wait_for(|watching| *watching == 0);
        tokio::time::timeout(SOON, none).await.expect("they end").expect("the server runs");
    }

    /// Ends all connections, and returns when they ended here.
    pub(crate) async fn hang_up(&self) {
        self.state.hang_up.notify_waiters();
        let mut open = self.state.open.subscribe();
        let none = open.wait_for(|open| *open == 0);
        tokio::time::timeout(SOON, none).await.expect("they end").expect("the server runs");
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, streams: u32, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, tls.clone(), streams, state.clone()));
    }
}

async fn serve(stream: TcpStream, tls: TlsAcceptor, streams: u32, state: Arc<State>) {
    let Ok(stream) = tls.accept(stream).await else { return };
    state.connections.fetch_add(1, Ordering::Relaxed);
    state.open.send_modify(|open| *open += 1);
    let die = Arc::new(Notify::new());
    let service = service_fn(|request: http::Request<Incoming>| {
        let (state, die) = (state.clone(), die.clone());
        async move { Ok::<_, Infallible>(answer(request, state, die).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(streams);
    tokio::select! {
        _ = builder.serve_connection_with_upgrades(TokioIo::new(stream), service) => {}
        () = state.hang_up.notified() => {}
        () = die.notified() => {}
    }
    state.open.send_modify(|open| *open -= 1);
}

async fn answer(request: http::Request<Incoming>, state: Arc<State>, die: Arc<Notify>) -> Response {
    match request.uri().path() {
        "/apis/large" => Response::new(full(vec![b'x'; LARGE])),
        "/apis/length" => {
            let body = request.into_body().collect().await.expect("a body").to_bytes();
            text(StatusCode::OK, body.len().to_string())
        }
        // Answers as soon as something arrives.
        "/apis/first" => {
            let frame = request.into_body().frame().await.expect("a frame").expect("whole");
            text(StatusCode::OK, frame.into_data().expect("data"))
        }
        "/apis/upload" => {
            let _uploading = Watching::new(state);
            let body = request.into_body().collect().await;
            text(StatusCode::OK, if body.is_ok() { "whole" } else { "cut" })
        }
        "/apis/cut" => cut(),
        "/apis/trailers" => with_trailers(),
        "/apis/watch" => watching(state),
        "/apis/upgrade" => upgrade(request),
        "/apis/die" => {
            die.notify_one();
            std::future::pending().await
        }
        _ => told(request).await,
    }
}

/// What this server was told.
async fn told(request: http::Request<Incoming>) -> Response {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    let host = parts.headers.get("host").and_then(|host| host.to_str().ok());
    let host = host.or(parts.uri.authority().map(|authority| authority.as_str())).expect("a host");
    let path = parts.uri.path_and_query().expect("a path");
    let mut told = format!("{} {path} {host} {}\n", parts.method, String::from_utf8_lossy(&body));
    for (name, value) in &parts.headers {
        told.push_str(&format!("{name}: {}\n", value.to_str().expect("text")));
    }
    let mut response = text(StatusCode::IM_A_TEAPOT, told);
    response.headers_mut().insert("x-answered", HeaderValue::from_static("yes"));
    response.headers_mut().insert("access-control-allow-origin", HeaderValue::from_static("*"));
    response
}

/// Somebody who watches, for as long as this exists.
struct Watching(Arc<State>);

impl Watching {
    fn new(state: Arc<State>) -> Self {
        state.watching.send_modify(|watching| *watching += 1);
        Self(state)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.watching.send_modify(|watching| *watching -= 1);
    }
}

fn watching(state: Arc<State>) -> Response {
    let watching = Watching::new(state);
    let event = stream::once(async { Ok(Frame::data(Bytes::from_static(b"event\n"))) });
    let never = stream::once(async move {
        let _watching = watching;
        std::future::pending().await
    });
    Response::new(StreamBody::new(event.chain(never)).boxed_unsync())
}

/// Half of an answer.
fn cut() -> Response {
    let pieces = [Ok(Frame::data(Bytes::from_static(b"half"))), Err("the rest is lost".into())];
    // What comes at once would never be sent.
    let pieces = stream::iter(pieces).then(async |piece| {
        tokio::time::sleep(Duration::from_millis(50)).await;
        piece
    });
    Response::new(StreamBody::new(pieces).boxed_unsync())
}

/// An answer that says something after its end.
fn with_trailers() -> Response {
    let trailers = [(HeaderName::from_static("x-trailer"), HeaderValue::from_static("last"))];
    let frames = [Frame::data(Bytes::from_static(b"body")), Frame::trailers(trailers.into_iter().collect())];
    Response::new(StreamBody::new(stream::iter(frames.map(Ok))).boxed_unsync())
}

/// Says who the client is, then what the client says.
fn upgrade(mut request: http::Request<Incoming>) -> Response {
    let user = request.headers().get("x-remote-user").cloned();
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let mut stream = TokioIo::new(upgraded.await.expect("upgraded"));
        stream.write_all(user.expect("a user").as_bytes()).await.expect("open");
        let mut heard = [0; 64];
        while let Ok(length @ 1..) = stream.read(&mut heard).await {
            stream.write_all(&heard[..length]).await.expect("open");
        }
    });
    let mut response = Response::new(full(""));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert("connection", HeaderValue::from_static("upgrade"));
    response.headers_mut().insert("upgrade", HeaderValue::from_static("echo"));
    response
}

/// The server that clients see.
pub(crate) struct Front {
    address: SocketAddr,
    admin: AdminPki,
    ca: PathBuf,
}

struct Forwarding(Backend);

#[async_trait]
impl Handler for Forwarding {
    async fn handle(&self, request: Request) -> Response {
        let mark = (HeaderName::from_static("x-mark"), HeaderValue::from_static("true"));
        match self.0.forward(request, &user(), &[mark]).await {
            Ok(answer) => answer,
            Err(failure) => text(StatusCode::SERVICE_UNAVAILABLE, failure.error.to_string()),
        }
    }
}

impl Front {
    pub(crate) async fn start(behind: &Behind) -> Self {
        let mut config = Config::new(behind.identity.clone(), version());
        (config.bind_address, config.secure_port) = (Ipv4Addr::LOCALHOST.into(), 0);
        config.authorizer = Arc::new(AlwaysAllow);
        // The connections of clients that nobody knows are closed after a few requests.
        let admin = AdminPki::open_or_create(behind.directory.path(), SystemTime::now()).expect("a PKI");
        let client_ca = ClientAuthorities::from_pem(admin.ca.as_bytes()).expect("an authority");
        config.authentication =
            Authentication { client_ca: Some(Arc::new(client_ca)), ..Authentication::default() };
        config.apis = Arc::new(Forwarding(behind.backend(dial_to(behind.address))));
        let server = config.complete().expect("a configuration").listen().await.expect("a port");
        let address = server.local_addr();
        tokio::spawn(server.run(std::future::pending()));
        Self { address, admin, ca: behind.ca.clone() }
    }

    pub(crate) async fn client(&self, protocol: Protocol) -> TestClient {
        self.target(protocol).connect().await.expect("a connection")
    }

    pub(crate) fn target(&self, protocol: Protocol) -> Target {
        let target = Target::new(self.address, &self.ca, protocol);
        target.with_identity(&self.admin.certificate, &self.admin.key)
    }
}

fn version() -> Version {
    let text = String::new;
    Version {
        major: text(),
        minor: text(),
        emulation_major: text(),
        emulation_minor: text(),
        min_compatibility_major: text(),
        min_compatibility_minor: text(),
        git_version: text(),
        git_commit: text(),
        git_tree_state: text(),
        build_date: text(),
        go_version: text(),
        compiler: text(),
        platform: Version::platform(),
    }
}
