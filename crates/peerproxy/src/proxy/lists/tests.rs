//! Who asks together with whom, and what comes of it.

use std::sync::atomic::{AtomicU64, Ordering};

use concord_server::{Handler as _, UserInfo, full};
use futures_util::FutureExt as _;
use http::{HeaderValue, Method};
use http_body_util::BodyExt as _;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use super::*;
use crate::{
    fake::Fake,
    proxy::tests::{read, world_with},
    transport::SendError,
};

mod failures;

const LIST: &str = "/apis/batch/v1/namespaces/a/jobs";
const LABELS: [&str; 3] = ["batch", "v1", "jobs"];

/// A request that has arrived at a peer.
struct Arrived {
    port: u16,
    request: Request,
    reply: oneshot::Sender<Result<Response, SendError>>,
}

impl Arrived {
    fn answer(self, text: &'static str) {
        let mut response = Response::new(full(text));
        response.headers_mut().insert("audit-id", self.request.headers()["audit-id"].clone());
        response.headers_mut().insert("x-said", HeaderValue::from_static(text));
        self.reply.send(Ok(response)).expect("somebody waits");
    }
}

struct World {
    proxy: Arc<PeerProxy>,
    arrivals: mpsc::UnboundedReceiver<Arrived>,
    asked: usize,
}

type Asked = JoinHandle<Response>;

impl World {
    fn new(ports: &[u16]) -> Self {
        let (arrives, arrivals) = mpsc::unbounded_channel();
        let transport = Fake::new(move |port, request| {
            let (reply, replied) = oneshot::channel();
            arrives.send(Arrived { port, request, reply }).expect("the test looks");
            Box::pin(async move { replied.await.unwrap_or_else(|_| Err(SendError::Broken("gone".into()))) })
        });
        Self { proxy: Arc::new(world_with(ports, Arc::new(transport))), arrivals, asked: 0 }
    }

    /// Asks, and gets as far as it gets.
    async fn ask(&mut self, mut request: Request) -> Asked {
        self.asked += 1;
        let id = HeaderValue::try_from(self.asked.to_string()).expect("digits");
        request.headers_mut().insert("audit-id", id);
        let proxy = self.proxy.clone();
        let asked = tokio::spawn(async move { proxy.handle(request).await });
        settle().await;
        asked
    }

    async fn list(&mut self) -> Asked {
        self.ask(request(LIST, &[])).await
    }

    /// The one request that has arrived and was not looked at yet.
    fn arrived(&mut self) -> Arrived {
        let arrived = self.arrivals.try_recv().expect("a request");
        assert!(self.is_quiet(), "and no more");
        arrived
    }

    fn is_quiet(&mut self) -> bool {
        self.arrivals.try_recv().is_err()
    }

    fn errors(&self, kind: &str) -> u64 {
        self.proxy.peers.metrics().peers().proxy_errors(kind, LABELS)
    }
}

/// Lets everybody do what they can.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

fn request(path: &str, headers: &[(&'static str, &'static str)]) -> Request {
    let mut request = Request::new(full(""));
    *request.uri_mut() = path.parse().expect("a path");
    for (name, value) in headers {
        request.headers_mut().append(*name, HeaderValue::from_static(value));
    }
    request.extensions_mut().insert(Arc::new(UserInfo { name: "alice".into(), ..UserInfo::default() }));
    request
}

fn of(user: UserInfo) -> Request {
    let mut request = request(LIST, &[]);
    request.extensions_mut().insert(Arc::new(user));
    request
}

async fn text(asked: Asked) -> String {
    let response = asked.await.expect("no panic");
    assert!(response.extensions().get::<Served>().is_some());
    let (status, text) = read(response).await;
    assert_eq!(status, 200);
    text
}

#[tokio::test]
async fn nobody_gets_an_answer_that_was_asked_for_before_he_asked() {
    let mut world = World::new(&[9]);
    let first = world.list().await;
    let sent = world.arrived();
    let gathered = [world.list().await, world.list().await, world.list().await];
    assert!(world.is_quiet(), "they wait for each other");
    sent.answer("first");
    assert_eq!(text(first).await, "first");
    settle().await;
    let sent = world.arrived();
    // It has been sent: who comes now is too late for it.
    let late = world.list().await;
    assert!(world.is_quiet());
    sent.answer("second");
    for one in gathered {
        assert_eq!(text(one).await, "second");
    }
    settle().await;
    world.arrived().answer("third");
    assert_eq!(text(late).await, "third");
    settle().await;
    assert!(world.is_quiet() && world.proxy.together.is_idle());
    // And who comes when nobody asks does not wait.
    let alone = world.list().await;
    world.arrived().answer("fourth");
    assert_eq!(text(alone).await, "fourth");
    assert!(world.proxy.together.is_idle());
    assert_eq!(world.errors("cancelled"), 0);
}

#[tokio::test]
async fn headers_are_everybodys_but_for_the_id() {
    let mut world = World::new(&[9]);
    let first = world.list().await;
    let sent = world.arrived();
    let gathered = [world.list().await, world.list().await];
    sent.answer("first");
    assert_eq!(first.await.expect("an answer").headers()["audit-id"], "1");
    settle().await;
    let sent = world.arrived();
    assert_eq!(sent.request.headers()["audit-id"], "2", "that of one of them");
    sent.answer("second");
    for one in gathered {
        let response = one.await.expect("an answer");
        assert_eq!(response.headers()["x-said"], "second");
        assert!(!response.headers().contains_key("audit-id"), "whoever made it adds it");
    }
}

#[tokio::test]
async fn only_who_asks_the_same_asks_together() {
    let alice = || UserInfo { name: "alice".into(), ..UserInfo::default() };
    let others = [
        request("/apis/batch/v1/namespaces/b/jobs", &[]),
        request("/apis/batch/v1/jobs", &[]),
        request("/apis/batch/v1/namespaces/a/jobs?limit=1", &[]),
        request("/apis/batch/v1/namespaces/a/jobs?resourceVersion=0", &[]),
        request(LIST, &[("accept", "application/yaml")]),
        request(LIST, &[("accept-encoding", "gzip")]),
        request(LIST, &[("if-none-match", "x")]),
        request(LIST, &[("user-agent", "curl/8")]),
        request(LIST, &[("traceparent", "00-1-2-01")]),
        request(LIST, &[("x-unknown", "1")]),
        of(UserInfo { name: "bob".into(), ..alice() }),
        of(UserInfo { uid: "1".into(), ..alice() }),
        of(UserInfo { groups: vec!["system:masters".into()], ..alice() }),
        of(UserInfo { extra: [("scopes".into(), vec!["none".into()])].into(), ..alice() }),
    ];
    let mut world = World::new(&[9]);
    let _leads = world.list().await;
    let _sent = world.arrived();
    let mut asked = Vec::new();
    for other in others {
        let what = format!("{:?}", (other.uri(), other.headers(), other.user()));
        asked.push(world.ask(other).await);
        assert!(world.arrivals.try_recv().is_ok(), "{what}");
    }
    // What is for this server alone, or tells requests apart that are the same, does not count.
    let mut world = World::new(&[9]);
    let _leads = world.list().await;
    let _sent = world.arrived();
    for same in [
        &[("authorization", "Bearer other")][..],
        &[("x-forwarded-for", "10.0.0.1")],
        &[("connection", "close")],
        &[("impersonate-user", "alice")],
    ] {
        asked.push(world.ask(request(LIST, same)).await);
        assert!(world.is_quiet(), "{same:?}");
    }
    asked.into_iter().for_each(|asked| asked.abort());
}

#[tokio::test]
async fn only_lists_are_asked_for_together() {
    let with = |method: Method, path: &str, body: &'static str| {
        let mut request = request(path, &[]);
        *request.method_mut() = method;
        *request.body_mut() = full(body);
        request
    };
    let each: [(&str, &dyn Fn() -> Request); 7] = [
        ("a watch", &|| request(&format!("{LIST}?watch=1"), &[])),
        ("an old watch", &|| request("/apis/batch/v1/watch/namespaces/a/jobs", &[])),
        ("a get", &|| request(&format!("{LIST}/x"), &[])),
        ("a head", &|| with(Method::HEAD, LIST, "")),
        ("a write", &|| with(Method::POST, LIST, "{}")),
        ("a list with a body", &|| with(Method::GET, LIST, "{}")),
        ("an upgrade", &|| request(LIST, &[("connection", "upgrade"), ("upgrade", "websocket")])),
    ];
    for (what, make) in each {
        let mut world = World::new(&[9]);
        let asked = [world.ask(make()).await, world.ask(make()).await, world.ask(make()).await];
        let arrived: Vec<_> = std::iter::from_fn(|| world.arrivals.try_recv().ok()).collect();
        assert_eq!(arrived.len(), 3, "{what}");
        assert!(world.proxy.together.is_idle(), "{what}");
        asked.into_iter().for_each(|asked| asked.abort());
    }
}

#[tokio::test]
async fn it_is_asked_as_long_as_anybody_waits() {
    let mut world = World::new(&[9]);
    let first = world.list().await;
    let sent = world.arrived();
    let (second, third) = (world.list().await, world.list().await);
    // Who asks alone ends with its client, and the next need not wait for it.
    first.abort();
    settle().await;
    assert!(sent.reply.is_closed());
    let sent = world.arrived();
    // Whoever the request was made of may go, too.
    second.abort();
    settle().await;
    assert_eq!((sent.reply.is_closed(), world.errors("cancelled")), (false, 2));
    sent.answer("an answer");
    assert_eq!(text(third).await, "an answer");
    // If all are gone, nobody asks any more; whether it was asked already or not.
    let (first, second) = (world.list().await, world.list().await);
    let sent = world.arrived();
    second.abort();
    settle().await;
    sent.answer("an answer");
    assert_eq!(text(first).await, "an answer");
    settle().await;
    assert!(world.is_quiet() && world.proxy.together.is_idle());
    let first = world.list().await;
    let one = world.arrived();
    let gathered = [world.list().await, world.list().await];
    one.answer("an answer");
    settle().await;
    let sent = world.arrived();
    gathered.iter().for_each(JoinHandle::abort);
    settle().await;
    assert!(sent.reply.is_closed() && world.proxy.together.is_idle());
    assert_eq!((text(first).await, world.errors("cancelled")), ("an answer".to_owned(), 5));
}

#[tokio::test]
async fn a_list_is_read_by_all_while_it_comes() {
    let mut world = World::new(&[9]);
    let first = world.list().await;
    let sent = world.arrived();
    let gathered = [world.list().await, world.list().await];
    sent.answer("first");
    text(first).await;
    settle().await;
    let (say, mut words) = mpsc::unbounded_channel();
    let body = futures_util::stream::poll_fn(move |context| words.poll_recv(context));
    let response = Response::new(http_body_util::StreamBody::new(body).boxed_unsync());
    world.arrived().reply.send(Ok(response)).expect("somebody waits");
    let mut bodies = Vec::new();
    for one in gathered {
        bodies.push(one.await.expect("a head").into_body());
    }
    say.send(Ok(hyper::body::Frame::data("a piece".into()))).expect("somebody reads");
    for body in &mut bodies {
        let piece = body.frame().await.expect("more").expect("data").into_data().expect("data");
        assert_eq!(piece, "a piece");
    }
    assert!(!world.proxy.together.is_idle());
    say.send(Err("lost".into())).expect("somebody reads");
    for mut body in bodies {
        assert!(body.frame().await.expect("an end").is_err(), "half a list is never whole");
    }
    assert!(say.is_closed() && world.proxy.together.is_idle());
}

/// Every answer has the time at which its request was sent, and nobody gets one from before he asked; while others go away at any
/// moment, and on several threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn answers_are_never_older_than_questions() {
    let (clock, sent) = (Arc::new(AtomicU64::new(1)), Arc::new(AtomicU64::new(0)));
    let (now, count) = (clock.clone(), sent.clone());
    let transport = Fake::new(move |_, _| {
        let time = now.fetch_add(1, Ordering::SeqCst);
        count.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            for _ in 0..time % 5 {
                tokio::task::yield_now().await;
            }
            Ok(Response::new(full(time.to_string())))
        })
    });
    let proxy = Arc::new(world_with(&[9], Arc::new(transport)));
    let asks = (0..32_u64).map(|number| {
        let (proxy, clock) = (proxy.clone(), clock.clone());
        tokio::spawn(async move {
            let mut answered = 0;
            for at in 0..300 {
                let before = clock.fetch_add(1, Ordering::SeqCst);
                let asking = proxy.handle(request(LIST, &[]));
                if (number + at) % 6 == 0 {
                    // It goes away as soon as it has to wait, and has asked for nothing.
                    drop(asking.now_or_never());
                    continue;
                }
                let (_, time) = read(asking.await).await;
                assert!(time.parse::<u64>().expect("a time") > before);
                answered += 1;
            }
            answered
        })
    });
    let mut answered = 0;
    for asks in asks.collect::<Vec<_>>() {
        answered += asks.await.expect("every answer was new enough");
    }
    assert!(sent.load(Ordering::SeqCst) < answered, "some asked together");
    while !proxy.together.is_idle() {
        tokio::task::yield_now().await;
    }
}
