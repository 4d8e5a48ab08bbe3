//! A real server on loopback, asked by a real TLS client.

mod support;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use concord_pki::{ServingNames, ServingPki};
use concord_server::{
    Config, ConnectionLimits, Drained, Shutdown, Unhealthy, check_fn, test_client::Protocol,
};
use http::Method;
use support::{Running, SOON, closed, version};
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    sync::{Notify, Semaphore},
    time::timeout,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_protocols_get_the_same_answers() {
    let server = Running::start(|_| {}).await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut client = server.client(protocol).await;
        let live = client.get("/livez").await.expect("an answer");
        assert_eq!((live.status, live.body.as_str()), (200, "ok"), "{protocol:?}");
        assert_eq!(live.headers["content-type"], "text/plain; charset=utf-8");
        assert_eq!(live.headers["x-content-type-options"], "nosniff");
        assert_eq!(live.headers["cache-control"], "no-cache, private");
        assert_eq!(live.headers["audit-id"].len(), 36);

        let ready = client.get("/readyz?verbose").await.expect("an answer");
        assert_eq!(ready.body, "[+]ping ok\n[+]shutdown ok\nreadyz check passed\n");
        let version = client.get("/version").await.expect("an answer");
        assert_eq!(version.headers["content-type"], "application/json");
        assert!(version.body.contains("\"gitVersion\": \"v1.36.4+test\""), "{}", version.body);

        assert_eq!(client.request(Method::POST, "/version").await.expect("an answer").status, 405);
        assert_eq!(client.get("/api/v1/pods").await.expect("an answer").body, "404 page not found\n");
        let head = client.request(Method::HEAD, "/livez").await.expect("an answer");
        assert_eq!((head.status, head.body.as_str()), (200, ""));
        assert_eq!(head.headers["content-length"], "2", "the length is that of the answer to GET");
    }
}

#[tokio::test]
async fn a_failing_check_fails_readiness_and_keeps_its_reason() {
    let server = Running::start(|config| {
        let failing = check_fn("informer-sync", || async { Err(Unhealthy("the secret reason".to_owned())) });
        config.health = config.health.clone().with_readiness(failing);
    })
    .await;
    let mut client = server.client(Protocol::Http2).await;
    let ready = client.get("/readyz").await.expect("an answer");
    assert_eq!(ready.status, 500);
    assert!(ready.body.contains("[-]informer-sync failed: reason withheld\n"), "{}", ready.body);
    assert!(!ready.body.contains("secret"));
    assert_eq!(client.get("/livez").await.expect("an answer").status, 200);
}

#[tokio::test]
async fn a_panicking_handler_costs_only_its_own_request() {
    let server = Running::start(|config| {
        config.health = config.health.clone().with(check_fn("panics", || async { panic!("on purpose") }));
    })
    .await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut client = server.client(protocol).await;
        assert_eq!(client.get("/livez").await.expect("an answer").status, 500);
        assert_eq!(client.get("/livez/ping").await.expect("the same connection goes on").body, "ok");
    }
}

#[tokio::test]
async fn clients_that_say_nothing_are_sent_away() {
    // Short, but longer than the handshakes of this test on a busy machine.
    let short = Duration::from_secs(2);
    let limits = ConnectionLimits { handshake: short, header: short, ..ConnectionLimits::default() };
    let server = Running::start(|config| config.limits = limits).await;
    let no_handshake = async {
        closed(&mut TcpStream::connect(server.address).await.expect("a connection")).await;
    };
    let no_request = async |protocol| {
        closed(&mut server.target(protocol).connect_tls().await.expect("a handshake")).await;
    };
    // A request that never gets finished.
    let half = async {
        let mut slow = server.target(Protocol::Http1).connect_tls().await.expect("a handshake");
        slow.write_all(b"GET /livez HTTP/1.1\r\nhost: loc").await.expect("written");
        closed(&mut slow).await;
    };
    // Others are served meanwhile and afterwards.
    let served = async || {
        let answer = server.client(Protocol::Http1).await.get("/livez").await;
        assert_eq!(answer.expect("an answer").status, 200);
    };
    tokio::join!(no_handshake, no_request(Protocol::Http1), no_request(Protocol::Http2), half, served());
    served().await;
}

#[tokio::test]
async fn bytes_that_are_no_handshake_end_only_their_connection() {
    let server = Running::start(|_| {}).await;
    let mut stream = TcpStream::connect(server.address).await.expect("a connection");
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("written");
    closed(&mut stream).await;
    assert_eq!(server.client(Protocol::Http2).await.get("/livez").await.expect("an answer").status, 200);
}

#[tokio::test]
async fn more_connections_than_allowed_wait_for_room() {
    let limits = ConnectionLimits { connections: 1, ..ConnectionLimits::default() };
    let server = Running::start(|config| config.limits = limits).await;
    let mut first = server.client(Protocol::Http1).await;
    assert_eq!(first.get("/livez").await.expect("an answer").status, 200);
    let mut second = Box::pin(server.client(Protocol::Http1));
    assert!(timeout(Duration::from_millis(200), &mut second).await.is_err(), "there is room for one only");
    drop(first);
    let mut second = timeout(SOON, second).await.expect("there is room now");
    assert_eq!(second.get("/livez").await.expect("an answer").status, 200);
}

/// A check that tells when it runs and waits to be let go.
fn gate(config: &mut Config) -> (Arc<Notify>, Arc<Semaphore>) {
    let (entered, release) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let (inside, wait) = (entered.clone(), release.clone());
    config.health = config.health.clone().with(check_fn("gate", move || {
        let (inside, wait) = (inside.clone(), wait.clone());
        async move {
            inside.notify_one();
            drop(wait.acquire().await);
            Ok(())
        }
    }));
    (entered, release)
}

#[tokio::test]
async fn a_running_request_is_finished_before_the_server_ends() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut parts = None;
        let mut server = Running::start(|config| parts = Some(gate(config))).await;
        let (entered, release) = parts.expect("the gate was built");
        let mut client = server.client(protocol).await;
        let request = tokio::spawn(async move { client.get("/livez/gate").await.map(|answer| answer.body) });
        entered.notified().await;
        server.stop();
        let address = server.address;
        // The listener goes first; then nothing is left but the request.
        timeout(SOON, async { while TcpStream::connect(address).await.is_ok() {} })
            .await
            .expect("no new clients");
        release.add_permits(1);
        assert_eq!(request.await.expect("no panic").expect("an answer"), "ok", "{protocol:?}");
        assert_eq!(server.drained().await, Drained { cut: 0 });
    }
}

#[tokio::test]
async fn a_request_that_does_not_end_is_cut_after_the_grace() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut parts = None;
        let mut server = Running::start(|config| {
            parts = Some(gate(config));
            config.shutdown.grace = Duration::from_millis(100);
        })
        .await;
        let (entered, _release) = parts.expect("the gate was built");
        let mut client = server.client(protocol).await;
        let request = tokio::spawn(async move { client.get("/livez/gate").await.is_err() });
        entered.notified().await;
        server.stop();
        assert_eq!(server.drained().await, Drained { cut: 1 }, "{protocol:?}");
        assert!(request.await.expect("no panic"), "the client sees the cut");
    }
}

#[tokio::test]
async fn idle_connections_do_not_hold_up_the_end() {
    let mut server = Running::start(|config| config.shutdown.grace = SOON).await;
    let mut clients = Vec::new();
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut client = server.client(protocol).await;
        client.get("/livez").await.expect("an answer");
        clients.push(client);
    }
    let _unfinished = TcpStream::connect(server.address).await.expect("a connection");
    server.stop();
    assert_eq!(server.drained().await, Drained { cut: 0 });
}

#[tokio::test]
async fn readiness_fails_while_the_server_waits_to_be_noticed() {
    let mut server = Running::start(|config| {
        config.shutdown = Shutdown { delay: SOON, grace: Duration::ZERO };
    })
    .await;
    let mut client = server.client(Protocol::Http1).await;
    assert_eq!(client.get("/readyz").await.expect("an answer").status, 200);
    server.stop();
    let answer = loop {
        let answer = client.get("/readyz").await.expect("the server still serves");
        if answer.status != 200 {
            break answer;
        }
    };
    assert!(answer.body.contains("[-]shutdown failed: reason withheld\n"), "{}", answer.body);
    assert_eq!(client.get("/livez").await.expect("an answer").status, 200);
    server.task.abort();
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let server = Running::start(|_| {}).await;
    let directory = tempfile::tempdir().expect("a directory");
    let pki = ServingPki::open_or_create(directory.path(), &ServingNames::loopback(), SystemTime::now())
        .expect("a PKI");
    let mut config = Config::new(pki.identity, version());
    (config.bind_address, config.secure_port) = (server.address.ip(), server.address.port());
    let error = config.complete().expect("valid").listen().await.err().expect("the address is taken");
    assert!(error.to_string().contains(&server.address.to_string()), "{error}");
}

#[tokio::test]
async fn limits_of_zero_are_refused() {
    let server = Running::start(|_| {}).await;
    let directory = server.ca.parent().expect("the CA is in a directory");
    for limits in [
        ConnectionLimits { connections: 0, ..ConnectionLimits::default() },
        ConnectionLimits { streams: 0, ..ConnectionLimits::default() },
    ] {
        let pki = ServingPki::open_or_create(directory, &ServingNames::loopback(), SystemTime::now())
            .expect("a PKI");
        let mut config = Config::new(pki.identity, version());
        config.limits = limits;
        assert!(config.complete().err().expect("refused").to_string().contains("at least 1"));
    }
}
