//! Clients that mean harm: each costs its own connection, and nobody else.

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
use concord_server::{ConnectionLimits, Handler, Request, Response, test_client::Protocol, text};
use http::{Method, StatusCode};
use support::{Running, SOON};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};

const BOTH: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];

/// How many requests run, and how many did at most. A request ends when its client no longer wants it.
#[derive(Default)]
struct Load {
    now: AtomicUsize,
    most: AtomicUsize,
}

struct Counted(Arc<Load>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Slow(Arc<Load>);

#[async_trait]
impl Handler for Slow {
    async fn handle(&self, request: Request) -> Response {
        let now = self.0.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most.fetch_max(now, Ordering::SeqCst);
        let _counted = Counted(self.0.clone());
        if request.uri().path() == "/apis/slow" {
            tokio::time::sleep(Duration::from_secs(3600)).await;
        }
        text(StatusCode::OK, "ok")
    }
}

const STREAMS: u32 = 50;

async fn start(load: &Arc<Load>) -> Running {
    let handler = Arc::new(Slow(load.clone()));
    Running::start(|config| {
        config.apis = handler;
        config.limits = ConnectionLimits { streams: STREAMS, ..ConnectionLimits::default() };
    })
    .await
}

/// Somebody else is served.
async fn assert_serves(server: &Running) {
    for protocol in BOTH {
        let mut client = server.admin(protocol).await;
        assert_eq!(client.get("/apis/quick").await.expect("an answer").body, "ok", "{protocol:?}");
    }
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// `GET /apis/slow`, complete.
fn get_slow(stream: u32) -> Vec<u8> {
    let mut headers = vec![0x82, 0x87, 0x04, 10];
    headers.extend(b"/apis/slow");
    headers.extend([0x01, 9]);
    headers.extend(b"localhost");
    frame(1, 0x5, stream, &headers)
}

fn reset(stream: u32) -> Vec<u8> {
    frame(3, 0, stream, &8_u32.to_be_bytes())
}

/// CVE-2023-44487: streams that are opened and given up at once cost the client nothing.
#[tokio::test]
async fn streams_that_are_reset_at_once_cost_nobody_else_anything() {
    let load = Arc::new(Load::default());
    let server = start(&load).await;
    let target = server.target(Protocol::Http2).with_identity(&server.admin.certificate, &server.admin.key);
    let (mut answers, mut requests) = tokio::io::split(target.connect_tls().await.expect("a connection"));
    let attack = async {
        let mut burst = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        burst.extend(frame(4, 0, 0, &[]));
        for stream in (0..20_000).map(|number| 2 * number + 1) {
            burst.extend(get_slow(stream));
            burst.extend(reset(stream));
            if burst.len() > 16 * 1024 && requests.write_all(&std::mem::take(&mut burst)).await.is_err() {
                return;
            }
        }
        // The server may have had enough of it.
        requests.write_all(&burst).await.ok();
    };
    let read = async {
        let mut buffer = vec![0; 64 * 1024];
        while answers.read(&mut buffer).await.is_ok_and(|length| length > 0) {}
    };
    tokio::select! {
        () = async { tokio::join!(attack, read); } => {}
        () = async {
            loop {
                assert_serves(&server).await;
            }
        } => {}
        () = tokio::time::sleep(Duration::from_secs(2)) => {}
    }
    assert_serves(&server).await;
    let most = load.most.load(Ordering::SeqCst);
    assert!(most <= 2 * STREAMS as usize, "{most} requests ran at once");
    let over = async {
        while load.now.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    drop((answers, requests));
    timeout(SOON, over).await.expect("what is reset ends");
}

#[tokio::test]
async fn headers_without_end_are_refused() {
    let server = start(&Arc::default()).await;
    let long = "x".repeat(300 * 1024);
    let names: Vec<String> = (0..5000).map(|number| format!("x-flood-{number}")).collect();
    let many: Vec<(&str, &str)> =
        names.iter().map(|name| (name.as_str(), "some value of a header")).collect();
    for protocol in BOTH {
        for headers in [&[("x-long", long.as_str())][..], &many] {
            let mut client = server.admin(protocol).await;
            let answer = client.exchange(Method::GET, "/apis/quick", headers, Bytes::new()).await;
            // It is told so, or the connection ends under it; never is it answered.
            let refused = answer.map_or(true, |answer| answer.status == 431);
            assert!(refused, "{protocol:?} {}", headers.len());
        }
        assert_serves(&server).await;
    }
}
