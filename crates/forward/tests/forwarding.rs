//! A server in front, which sends everything on to one behind it, and clients that see only the first.

mod support;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use concord_forward::ForwardError;
use concord_server::test_client::Protocol;
use http::Method;
use http_body_util::BodyExt as _;
use hyper_util::rt::TokioIo;
use support::{Behind, Front, LARGE, SOON, closed_port, dial_to, user};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};

const BOTH: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_answers_are_passed_on() {
    for speaks in BOTH {
        let behind = Behind::start(speaks).await;
        let front = Front::start(&behind).await;
        for protocol in BOTH {
            let mut client = front.client(protocol).await;
            // F34: the bytes of paths and queries, also where decoding and encoding them again would make others of them.
            let path = "/apis/headers/%2F/a%20b;c=+?b=%2Fc&a&&d=%zz+%20&b=1";
            let headers = [("x-remote-user", "root"), ("connection", "x-mark"), ("x-custom", "1")];
            let headers = if protocol == Protocol::Http1 { &headers[..] } else { &headers[2..] };
            let answer = client.exchange(Method::POST, path, headers, Bytes::from_static(b"body")).await;
            let answer = answer.expect("an answer");
            assert_eq!((answer.status, &answer.headers["x-answered"]), (418, &"yes".parse().expect("text")));
            let lines: Vec<&str> = answer.body.lines().collect();
            assert_eq!(lines[0], format!("POST {path} behind.example:443 body"), "{speaks:?}");
            for expected in [
                "x-remote-user: ann",
                "x-remote-group: a",
                "x-mark: true",
                "x-custom: 1",
                "x-forwarded-for: 127.0.0.1",
            ] {
                assert!(lines.contains(&expected), "{expected} is missing in {lines:?}");
            }
            assert!(!answer.body.contains("root"), "{}", answer.body);
            assert!(!answer.headers.contains_key("access-control-allow-origin"));

            let large = client.get("/apis/large").await.expect("an answer");
            assert_eq!(large.body.len(), LARGE);
            let sent = client.exchange(Method::PUT, "/apis/length", &[], vec![b'x'; LARGE].into()).await;
            assert_eq!(sent.expect("an answer").body, LARGE.to_string());
        }
    }
}

/// What a client sends is not gathered first, however much it will be.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_requests_are_passed_on_as_they_come() {
    for speaks in BOTH {
        let behind = Behind::start(speaks).await;
        let front = Front::start(&behind).await;
        let mut stream = front.target(Protocol::Http1).connect_tls().await.expect("a connection");
        let head = "POST /apis/first HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nfirst";
        stream.write_all(head.as_bytes()).await.expect("sent");
        stream.flush().await.expect("sent");
        let mut answer = String::new();
        while !answer.ends_with("first") {
            let mut piece = [0; 1024];
            let read = timeout(SOON, stream.read(&mut piece)).await.expect("in time").expect("bytes");
            assert!(read > 0, "{speaks:?}: it ended with {answer}");
            answer.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}

/// Clients that do not know beforehand how much they will send, as those in Go, end with an empty frame.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_end_with_an_empty_frame_end() {
    for speaks in BOTH {
        let behind = Behind::start(speaks).await;
        let front = Front::start(&behind).await;
        let stream = front.target(Protocol::Http2).connect_tls().await.expect("a connection");
        let (client, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
        let connection = tokio::spawn(connection);
        let mut client = client.ready().await.expect("open");
        let request = http::Request::post("https://localhost/apis/length").body(()).expect("a request");
        let (answer, mut body) = client.send_request(request, false).expect("sent");
        body.send_data(Bytes::from_static(b"123"), false).expect("sent");
        // Not together with what was sent before.
        tokio::time::sleep(Duration::from_millis(20)).await;
        body.send_data(Bytes::new(), true).expect("sent");
        let mut answer = timeout(SOON, answer).await.expect("in time").expect("an answer").into_body();
        assert_eq!(answer.data().await.expect("a body").expect("whole"), "3", "{speaks:?}");
        connection.abort();
    }
}

/// A client that goes in the middle of its request ends it there as well, whatever the other server has said to it.
#[tokio::test(flavor = "multi_thread")]
async fn who_breaks_off_a_request_ends_it_there_too() {
    for speaks in BOTH {
        let behind = Behind::start(speaks).await;
        let front = Front::start(&behind).await;
        let mut stream = front.target(Protocol::Http1).connect_tls().await.expect("a connection");
        let head = "POST /apis/upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nfirst";
        stream.write_all(head.as_bytes()).await.expect("sent");
        stream.flush().await.expect("sent");
        while behind.watching() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(stream);
        behind.until_nobody_watches().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_break_off_are_not_whole_and_those_that_end_are() {
    for speaks in BOTH {
        let behind = Behind::start(speaks).await;
        let front = Front::start(&behind).await;
        for protocol in BOTH {
            let mut client = front.client(protocol).await;
            let cut = client.send(Method::GET, "/apis/cut", &[], Bytes::new()).await.expect("a head");
            assert_eq!(cut.status().as_u16(), 200);
            let whole = timeout(SOON, cut.into_body().collect()).await.expect("an end");
            assert!(whole.is_err(), "{speaks:?} {protocol:?}: half an answer is none");
        }
        let mut client = front.client(Protocol::Http2).await;
        let answer = client.send(Method::GET, "/apis/trailers", &[], Bytes::new()).await.expect("an answer");
        let answer = answer.into_body().collect().await.expect("a body");
        // Over HTTP/1 nobody said that they are welcome.
        let trailer = answer.trailers().and_then(|trailers| trailers.get("x-trailer"));
        assert_eq!(trailer.is_some(), speaks == Protocol::Http2, "{speaks:?}");
        assert_eq!(answer.to_bytes(), "body");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lasts_arrives_as_it_comes_and_ends_with_its_client() {
    for speaks in BOTH {
        let behind = Behind::start(speaks).await;
        let front = Front::start(&behind).await;
        let mut client = front.client(Protocol::Http2).await;
        let watch = client.send(Method::GET, "/apis/watch", &[], Bytes::new()).await.expect("an answer");
        let mut events = watch.into_body();
        let frame =
            timeout(SOON, events.frame()).await.expect("an event at once").expect("one").expect("whole");
        assert_eq!(frame.into_data().expect("data"), "event\n");
        assert_eq!(behind.watching(), 1);
        drop(events);
        behind.until_nobody_watches().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_by_the_hundred_do_not_keep_others_waiting() {
    let behind = Behind::start(Protocol::Http2).await;
    let front = Front::start(&behind).await;
    // One client may ask for a hundred things at a time.
    let mut clients = [front.client(Protocol::Http2).await, front.client(Protocol::Http2).await];
    let mut watches = Vec::new();
    for number in 0..150 {
        let client = &mut clients[number % 2];
        let watch = client.send(Method::GET, "/apis/watch", &[], Bytes::new()).await.expect("an answer");
        watches.push(watch);
    }
    let answer = clients[0].get("/apis/headers").await.expect("an answer");
    assert_eq!(answer.status, 418);
    assert_eq!(behind.connections(), 3, "64 requests share one");
    drop(watches);
    behind.until_nobody_watches().await;
}

/// A server that takes few requests at once on a connection gets more connections: what waits in one behind watches waits
/// for hours.
#[tokio::test(flavor = "multi_thread")]
async fn watches_of_a_server_that_takes_few_at_once_do_not_keep_others_waiting() {
    let behind = Behind::start_with(Protocol::Http2, 10).await;
    let front = Front::start(&behind).await;
    let mut client = front.client(Protocol::Http2).await;
    let mut watches = Vec::new();
    for _ in 0..25 {
        let watch = client.send(Method::GET, "/apis/watch", &[], Bytes::new());
        watches.push(timeout(SOON, watch).await.expect("in time").expect("an answer"));
    }
    let answer = timeout(SOON, client.get("/apis/headers")).await.expect("in time").expect("an answer");
    assert_eq!((answer.status, behind.connections()), (418, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_do_not_read_hold_up_nobody_else() {
    let behind = Behind::start(Protocol::Http2).await;
    let front = Front::start(&behind).await;
    let mut unread = Vec::new();
    for _ in 0..20 {
        let mut client = front.client(Protocol::Http1).await;
        let answer = client.send(Method::GET, "/apis/large", &[], Bytes::new()).await.expect("an answer");
        unread.push((client, answer));
    }
    let mut reader = front.client(Protocol::Http1).await;
    let large = timeout(SOON, reader.get("/apis/large")).await.expect("in time").expect("an answer");
    assert_eq!(large.body.len(), LARGE);
}

#[tokio::test(flavor = "multi_thread")]
async fn upgraded_connections_are_carried() {
    let behind = Behind::start(Protocol::Http2).await;
    let front = Front::start(&behind).await;
    let mut client = front.client(Protocol::Http1).await;
    let headers = [("connection", "Upgrade"), ("upgrade", "echo")];
    let answer = client.send(Method::GET, "/apis/upgrade", &headers, Bytes::new()).await.expect("an answer");
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["upgrade"]),
        (101, &"echo".parse().expect("text"))
    );
    let upgraded = timeout(SOON, hyper::upgrade::on(answer)).await.expect("in time").expect("upgraded");
    let mut stream = TokioIo::new(upgraded);
    let mut said = [0; 3];
    timeout(SOON, stream.read_exact(&mut said)).await.expect("in time").expect("the name of the user");
    assert_eq!(&said, b"ann", "identity is told on this path too");
    stream.write_all(b"hello").await.expect("open");
    let mut heard = [0; 5];
    timeout(SOON, stream.read_exact(&mut heard)).await.expect("in time").expect("an echo");
    assert_eq!(&heard, b"hello");
    drop(stream);

    let mut client = front.client(Protocol::Http1).await;
    let refused =
        client.exchange(Method::GET, "/apis/headers", &headers, Bytes::new()).await.expect("an answer");
    assert_eq!(refused.status, 418, "an upgrade that is refused is relayed");
    // D8c: who says yes and goes on as before has not understood, and what it says would be taken for the other protocol.
    let mut client = front.client(Protocol::Http1).await;
    let ignored =
        client.exchange(Method::GET, "/apis/length", &headers, Bytes::new()).await.expect("an answer");
    assert_eq!((ignored.status, ignored.body.as_str()), (503, "invalid upgrade response: status code 200"));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_cannot_be_reached_gives_the_request_back() {
    let behind = Behind::start(Protocol::Http2).await;
    let nowhere = behind.backend(dial_to(closed_port().await));
    let request = support::request(Method::POST, "/apis/headers", "body");
    let failure = nowhere.forward(request, &user(), &[]).await.expect_err("nobody listens");
    assert!(matches!(failure.error, ForwardError::Connect(_)), "{}", failure.error);
    let request = *failure.request.expect("nothing was sent");
    assert!(!request.headers().contains_key("x-remote-user"), "as it came");
    let there = behind.backend(dial_to(behind.address));
    let answer = there.forward(request, &user(), &[]).await.expect("an answer");
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    assert!(String::from_utf8_lossy(&body).starts_with("POST /apis/headers behind.example:443 body\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_dies_while_asked_gives_back_only_reads() {
    for speaks in BOTH {
        let behind = Behind::start(speaks).await;
        let backend = Arc::new(behind.backend(dial_to(behind.address)));
        for (method, body, given_back) in [(Method::GET, "", true), (Method::POST, "body", false)] {
            let request = support::request(method.clone(), "/apis/die", body);
            let failure = backend.forward(request, &user(), &[]).await.expect_err("it hung up");
            assert!(matches!(failure.error, ForwardError::NoAnswer(_)), "{}", failure.error);
            assert_eq!(failure.request.is_some(), given_back, "{method} over {speaks:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_never_shakes_hands_is_given_up() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let behind = Behind::start(Protocol::Http2).await;
    let address = silent.local_addr().expect("an address");
    let backend = behind.backend_within(dial_to(address), Duration::from_millis(100));
    let failure =
        backend.forward(support::request(Method::GET, "/", ""), &user(), &[]).await.expect_err("silence");
    assert!(matches!(failure.error, ForwardError::ConnectTimeout(_)), "{}", failure.error);
    assert!(failure.request.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_others_vouch_for_is_not_believed() {
    let behind = Behind::start(Protocol::Http2).await;
    let other = Behind::start(Protocol::Http2).await;
    let backend = behind.backend(dial_to(other.address));
    let failure =
        backend.forward(support::request(Method::GET, "/", ""), &user(), &[]).await.expect_err("a stranger");
    assert!(failure.error.to_string().contains("certificate"), "{}", failure.error);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_ended_are_replaced() {
    let behind = Behind::start(Protocol::Http2).await;
    let backend = behind.backend(dial_to(behind.address));
    for round in 1..=3 {
        let request = support::request(Method::GET, "/apis/headers", "");
        let answer = backend.forward(request, &user(), &[]).await.expect("an answer");
        assert_eq!(answer.status().as_u16(), 418);
        drop(answer);
        assert_eq!(behind.connections(), round);
        behind.hang_up().await;
    }
}
