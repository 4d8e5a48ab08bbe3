//! Clients that are slow, stop half way or vanish: each costs its own connection, for a bounded time, and nobody else.

mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use concord_server::{
    Accept, Config, ConnectionLimits, Handler, MAX_BODY_BYTES, Request, RequestContext as _, RequestLimits,
    Response, read_body, respond_status, test_client::Protocol, text,
};
use http::{Method, StatusCode};
use support::{Running, SOON, closed};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

/// A moment between two bytes of a client that is in no hurry.
const PAUSE: Duration = Duration::from_millis(50);

/// More than all buffers between a server and its client hold.
const LARGE: usize = 64 << 20;

/// How many requests run, and how many did at most.
#[derive(Default)]
struct Load {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// Reads bodies, waits forever, and counts what runs.
struct Api(Arc<Load>);

struct Counted(Arc<Load>);

impl Counted {
    fn new(running: &Arc<Load>) -> Self {
        let now = running.now.fetch_add(1, Ordering::SeqCst) + 1;
        running.most.fetch_max(now, Ordering::SeqCst);
        Self(running.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Handler for Api {
    async fn handle(&self, mut request: Request) -> Response {
        let _counted = Counted::new(&self.0);
        if request.uri().path() == "/apis/slow" {
            std::future::pending::<()>().await;
        }
        if request.uri().path() == "/apis/large" {
            return text(StatusCode::OK, vec![b'x'; LARGE]);
        }
        let (accept, deadline) = (Accept::of(&request), request.deadline());
        match read_body(request.body_mut(), MAX_BODY_BYTES, deadline).await {
            Ok(body) => text(StatusCode::OK, body.len().to_string()),
            Err(status) => respond_status(&status, &accept),
        }
    }
}

fn configure(running: &Arc<Load>) -> impl FnOnce(&mut Config) {
    let api = Arc::new(Api(running.clone()));
    move |config| {
        config.apis = api;
        config.limits = ConnectionLimits {
            // Longer than the handshakes of these tests on a busy machine.
            handshake: Duration::from_secs(2),
            header: Duration::from_secs(2),
            ..ConnectionLimits::default()
        };
        config.requests = RequestLimits { timeout: Duration::from_millis(500), ..RequestLimits::default() };
    }
}

async fn until_none_runs(running: &Load) {
    let begun = Instant::now();
    while running.now.load(Ordering::SeqCst) > 0 {
        assert!(begun.elapsed() < SOON, "requests still run");
        sleep(Duration::from_millis(10)).await;
    }
}

async fn others_are_served(server: &Running) {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        assert_eq!(server.admin(protocol).await.get("/livez").await.expect("an answer").body, "ok");
    }
}

#[tokio::test]
async fn a_header_that_never_ends_is_cut() {
    let server = Running::start(configure(&Arc::default())).await;
    let mut stream = server.target(Protocol::Http1).connect_tls().await.expect("a handshake");
    let begun = Instant::now();
    for byte in b"GET /livez HTTP/1.1\r\nhost: localhost\r\nx: ".iter().chain(std::iter::repeat(&b'y')) {
        if stream.write_all(&[*byte]).await.and(stream.flush().await).is_err() {
            break;
        }
        assert!(begun.elapsed() < SOON, "the server reads on");
        sleep(PAUSE).await;
    }
    others_are_served(&server).await;
}

#[tokio::test]
async fn a_body_that_trickles_ends_with_its_request() {
    let running = Arc::default();
    let server = Running::start(configure(&running)).await;
    let stream = server.target(Protocol::Http1).connect_tls().await.expect("a handshake");
    let (mut read, mut write) = tokio::io::split(stream);
    let head = b"POST /apis/x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n";
    write.write_all(head).await.expect("written");
    let slowly = tokio::spawn(async move {
        while write.write_all(b"x").await.and(write.flush().await).is_ok() {
            sleep(PAUSE).await;
        }
    });
    let mut answer = [0; 12];
    timeout(SOON, read.read_exact(&mut answer)).await.expect("soon").expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 504");
    until_none_runs(&running).await;
    others_are_served(&server).await;
    slowly.abort();
}

#[tokio::test]
async fn who_vanishes_within_a_body_leaves_nothing_behind() {
    let running = Arc::default();
    let server = Running::start(configure(&running)).await;
    for _ in 0..20 {
        let mut stream = server.target(Protocol::Http1).connect_tls().await.expect("a handshake");
        let head = b"POST /apis/x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\nabc";
        stream.write_all(head).await.expect("written");
        stream.flush().await.expect("sent");
        drop(stream);
    }
    until_none_runs(&running).await;
    others_are_served(&server).await;
}

#[tokio::test]
async fn an_answer_that_is_read_byte_by_byte_is_given_up() {
    let running = Arc::default();
    let server = Running::start(configure(&running)).await;
    let mut stream = server.target(Protocol::Http1).connect_tls().await.expect("a handshake");
    stream.write_all(b"GET /apis/large HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("written");
    let (begun, mut byte) = (Instant::now(), [0; 1]);
    while begun.elapsed() < Duration::from_secs(2) {
        timeout(SOON, stream.read_exact(&mut byte)).await.expect("soon").expect("one more");
        sleep(PAUSE).await;
    }
    others_are_served(&server).await;
    // What was on its way is still there; then it breaks off.
    let mut rest = Vec::new();
    timeout(SOON, stream.read_to_end(&mut rest)).await.expect("soon").ok();
    assert!(rest.len() < LARGE, "{} bytes came, however slowly they were read", rest.len());
    until_none_runs(&running).await;
}

#[tokio::test]
async fn a_half_closed_connection_ends() {
    let running = Arc::default();
    let server = Running::start(configure(&running)).await;
    for path in ["/apis/slow", "/apis/x"] {
        let mut stream = server.target(Protocol::Http1).connect_tls().await.expect("a handshake");
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("written");
        stream.shutdown().await.expect("half closed");
        closed(&mut stream).await;
    }
    until_none_runs(&running).await;
    others_are_served(&server).await;
}

#[tokio::test]
async fn streams_that_are_reset_at_once_do_not_pile_up() {
    let running: Arc<Load> = Arc::default();
    let server = Running::start(configure(&running)).await;
    for _ in 0..10 {
        let mut client = server.admin(Protocol::Http2).await;
        for _ in 0..200 {
            let request = client.send(Method::GET, "/apis/slow", &[], Bytes::new());
            // Long enough to be sent, too short to be answered: the stream is reset.
            if let Ok(Err(_)) = timeout(Duration::from_micros(200), request).await {
                break;
            }
        }
    }
    others_are_served(&server).await;
    until_none_runs(&running).await;
    let most = running.most.load(Ordering::SeqCst);
    assert!(most <= 10 * 100, "{most} requests ran at once");
}

#[tokio::test]
async fn connections_that_say_nothing_go_away() {
    let server = Running::start(configure(&Arc::default())).await;
    let mut silent = Vec::new();
    for number in 0..300 {
        let mut stream = TcpStream::connect(server.address).await.expect("a connection");
        if number % 2 == 1 {
            // The first bytes of a handshake, and no more.
            stream.write_all(&[22, 3, 1, 2, 0]).await.expect("written");
        }
        silent.push(stream);
    }
    others_are_served(&server).await;
    for stream in &mut silent {
        closed(stream).await;
    }
}
