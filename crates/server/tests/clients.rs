//! Clients that ask for much, do not read, or change the protocol.

mod support;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use concord_server::{
    Accept, Config, Deadline, Drained, Handler, MAX_BODY_BYTES, Request, RequestContext as _, RequestLimits,
    Response, full, read_body, respond_status, test_client::Protocol, text,
};
use futures_util::stream;
use http::{HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::{body::Frame, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use support::{Running, SOON, closed};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::{Instant, sleep, timeout},
};

const BOTH: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];
/// Far more than the buffers of a connection hold.
const LARGE: usize = 32 * 1024 * 1024;

/// A little of everything that APIs do.
struct Api;

#[async_trait]
impl Handler for Api {
    async fn handle(&self, mut request: Request) -> Response {
        match request.uri().path() {
            "/apis/large" => Response::new(full(vec![b'x'; LARGE])),
            "/apis/echo" => {
                let accept = Accept::of(&request);
                match read_body(request.body_mut(), MAX_BODY_BYTES, Deadline::NONE).await {
                    Ok(body) => text(StatusCode::OK, body.len().to_string()),
                    Err(status) => respond_status(&status, &accept),
                }
            }
            "/apis/slow" => {
                sleep(Duration::from_secs(3600)).await;
                text(StatusCode::OK, "")
            }
            "/api/v1/sockets" => upgrade(request),
            _ => watch(&request),
        }
    }
}

/// One event, and the end when the server ends.
fn watch(request: &Request) -> Response {
    let shutdown = request.shutdown();
    let first = stream::once(async { Ok(Frame::data(Bytes::from_static(b"event\n"))) });
    let end = stream::once(async move {
        shutdown.begun().await;
        Ok(Frame::data(Bytes::from_static(b"end\n")))
    });
    Response::new(StreamBody::new(futures_util::StreamExt::chain(first, end)).boxed_unsync())
}

/// Says back what the client says, until the server ends.
fn upgrade(mut request: Request) -> Response {
    let shutdown = request.shutdown();
    let Some(upgraded) = request.extensions_mut().remove::<OnUpgrade>() else {
        return text(StatusCode::BAD_REQUEST, "no upgrade");
    };
    request.connection().run_upgraded(async move {
        let Ok(stream) = upgraded.await else { return };
        let mut stream = TokioIo::new(stream);
        let mut bytes = [0; 16];
        loop {
            tokio::select! {
                () = shutdown.begun() => break,
                read = stream.read(&mut bytes) => match read {
                    Ok(read) if read > 0 => stream.write_all(&bytes[..read]).await.expect("written"),
                    _ => return,
                },
            }
        }
        stream.write_all(b"bye").await.expect("written");
        stream.shutdown().await.expect("ended");
    });
    let mut response = text(StatusCode::SWITCHING_PROTOCOLS, "");
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("echo"));
    response
}

fn configure(config: &mut Config) {
    config.apis = Arc::new(Api);
    config.shutdown.grace = SOON;
}

#[tokio::test]
async fn a_watch_ends_in_order_with_the_server() {
    for protocol in BOTH {
        let mut server = Running::start(configure).await;
        let mut admin = server.admin(protocol).await;
        let path = "/api/v1/pods?watch=1";
        let response = admin.send(Method::GET, path, &[], Bytes::new()).await.expect("an answer");
        let mut body = response.into_body();
        let first = timeout(SOON, body.frame()).await.expect("soon").expect("an event").expect("data");
        assert_eq!(first.into_data().expect("data"), "event\n");
        server.stop();
        let rest = timeout(SOON, body.collect()).await.expect("soon").expect("an orderly end");
        assert_eq!(rest.to_bytes(), "end\n", "{protocol:?}");
        assert_eq!(server.drained().await, Drained { cut: 0 });
    }
}

#[tokio::test]
async fn bodies_beyond_the_limit_are_answered() {
    let server = Running::start(configure).await;
    for protocol in BOTH {
        let mut admin = server.admin(protocol).await;
        for (length, status) in [(MAX_BODY_BYTES, 200), (MAX_BODY_BYTES + 1, 413), (4 << 20, 413), (0, 200)] {
            let body = Bytes::from(vec![b'x'; length]);
            let response = admin.send(Method::POST, "/apis/echo", &[], body).await.expect("an answer");
            assert_eq!(response.status(), status, "{protocol:?} {length}");
            let body = response.into_body().collect().await.expect("a body").to_bytes();
            let text = String::from_utf8_lossy(&body);
            assert!(status == 200 || text.contains("Request entity too large: limit is 3145728"), "{text}");
        }
    }
}

#[tokio::test]
async fn handlers_that_take_too_long_are_answered_for() {
    let server = Running::start(configure).await;
    for protocol in BOTH {
        let answer = server.admin(protocol).await.get("/apis/slow?timeout=50ms").await.expect("an answer");
        assert_eq!(answer.status, 504, "{protocol:?}");
        assert!(answer.body.contains("request did not complete within the allotted timeout"));
    }
}

#[tokio::test]
async fn large_answers_are_compressed() {
    let server = Running::start(configure).await;
    for protocol in BOTH {
        let mut admin = server.admin(protocol).await;
        let gzip = [("accept-encoding", "gzip")];
        let response = admin.send(Method::GET, "/apis/large", &gzip, Bytes::new()).await.expect("an answer");
        assert_eq!(response.headers()["content-encoding"], "gzip");
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        assert!(body.len() < LARGE / 100, "{protocol:?}: {}", body.len());
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_is_let_go() {
    let server = Running::start(|config| {
        configure(config);
        config.requests = RequestLimits { timeout: Duration::from_millis(300), ..RequestLimits::default() };
    })
    .await;
    // Over HTTP/1.1 the connection is cut.
    let mut stream = server.target(Protocol::Http1).connect_tls().await.expect("a handshake");
    stream.write_all(b"GET /apis/large HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("written");
    sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    closed(&mut stream).await;
    assert!(begun.elapsed() < SOON);
    // Over HTTP/2 only the stream is; the connection goes on.
    let mut admin = server.admin(Protocol::Http2).await;
    let unread = admin.send(Method::GET, "/apis/large", &[], Bytes::new()).await.expect("an answer");
    sleep(Duration::from_secs(1)).await;
    assert!(timeout(SOON, unread.into_body().collect()).await.expect("soon").is_err(), "it was cut off");
    assert_eq!(admin.get("/livez").await.expect("an answer").body, "ok");
}

#[tokio::test]
async fn a_client_that_does_not_read_does_not_hold_up_the_end() {
    for protocol in BOTH {
        let mut server = Running::start(|config| {
            configure(config);
            config.shutdown.grace = Duration::from_millis(200);
        })
        .await;
        let mut admin = server.admin(protocol).await;
        let _unread = admin.send(Method::GET, "/apis/large", &[], Bytes::new()).await.expect("an answer");
        server.stop();
        assert_eq!(server.drained().await, Drained { cut: 1 }, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_connection_can_change_its_protocol_and_ends_in_order() {
    let mut server = Running::start(configure).await;
    let mut stream = server.target(Protocol::Http1).connect_tls().await.expect("a handshake");
    let request =
        b"GET /api/v1/sockets?watch=1 HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
    stream.write_all(request).await.expect("written");
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(timeout(SOON, stream.read_u8()).await.expect("soon").expect("an answer"));
    }
    assert!(answer.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&answer));
    stream.write_all(b"hello").await.expect("written");
    let mut echo = [0; 5];
    timeout(SOON, stream.read_exact(&mut echo)).await.expect("soon").expect("an echo");
    assert_eq!(&echo, b"hello");
    server.stop();
    let mut rest = Vec::new();
    timeout(SOON, stream.read_to_end(&mut rest)).await.expect("soon").expect("an orderly end");
    assert_eq!(rest, b"bye");
    assert_eq!(server.drained().await, Drained { cut: 0 });
}
