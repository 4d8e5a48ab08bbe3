//! What lasts: watches and upgraded connections through another server, and a store that stalls meanwhile.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bytes::Bytes;
use concord_server::test_client::{Protocol, TestClient};
use http::{Method, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt as _, sync::Notify, time::timeout};

use super::{Fleet, Member, agreed, eventually};
use crate::support::{SOON, send};

const WITHOUT: &str = "--runtime-config=policy/v1=false";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// Makes an object through a server, as often as it is told to try again. It is made once.
async fn make(member: &Member, name: &str) {
    let budget = json!({"metadata": {"name": name}, "spec": {}});
    eventually("it is made", || async {
        let (status, made, _) = send(&mut member.admin().await, Method::POST, BUDGETS, &budget).await;
        // What was answered with "try again" may have been done.
        assert!(matches!(status, 201 | 409 | 429 | 503), "{name}: {status} {made}");
        matches!(status, 201 | 409).then_some(())
    })
    .await;
}

/// What a client has seen of a collection, over as many watches as it took.
#[derive(Default)]
struct Informer {
    revision: String,
    added: BTreeMap<String, usize>,
    watches: usize,
    rest: Vec<u8>,
}

impl Informer {
    /// A watch from where the last one ended.
    async fn watch(&mut self, member: &Member) -> (Incoming, TestClient) {
        self.watches += 1;
        self.rest.clear();
        let path = format!("{BUDGETS}?watch=1&timeoutSeconds=60&resourceVersion={}", self.revision);
        eventually("a watch begins", || async {
            let mut admin = member.admin().await;
            let answer = admin.send(Method::GET, &path, &[], Bytes::new()).await.expect("a head");
            assert!(matches!(answer.status().as_u16(), 200 | 429 | 503), "{}", answer.status());
            // The connection ends with its client.
            (answer.status() == 200).then(|| (answer.into_body(), admin))
        })
        .await
    }

    fn take(&mut self, data: &[u8]) {
        self.rest.extend_from_slice(data);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let event: Value = serde_json::from_slice(&line).expect("an event");
            let metadata = &event["object"]["metadata"];
            assert_eq!(event["type"], "ADDED", "{event}");
            metadata["resourceVersion"].as_str().expect("a revision").clone_into(&mut self.revision);
            *self.added.entry(metadata["name"].as_str().expect("a name").to_owned()).or_default() += 1;
        }
    }
}

/// The server that a watch goes to ends, and another one has it from then on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_event_is_lost_or_repeated_when_the_server_of_a_watch_ends() {
    const MADE: usize = 40;
    let fleet = Fleet::new().await;
    let far = fleet.start("apiserver-a", &[WITHOUT]).await;
    let first = fleet.start("apiserver-b", &[]).await;
    agreed(&[&far, &first]).await;
    let mut informer = Informer { revision: "0".to_owned(), ..Informer::default() };
    make(&far, "b-0").await;
    let mut events = informer.watch(&far).await;
    let second = fleet.start("apiserver-c", &[]).await;
    agreed(&[&far, &first, &second]).await;
    // Some are made before the server begins to end, some meanwhile, and some when it has ended.
    let (begins, has_ended) = (Notify::new(), Notify::new());
    let writing = async {
        for at in 1..MADE {
            match at {
                10 => begins.notify_one(),
                30 => has_ended.notified().await,
                _ => {}
            }
            make(&far, &format!("b-{at}")).await;
        }
    };
    let ending = async {
        begins.notified().await;
        first.stop("TERM").await;
        has_ended.notify_one();
    };
    let watching = async {
        let begin = Instant::now();
        while informer.added.len() < MADE {
            assert!(begin.elapsed() < SOON, "only {:?}", informer.added);
            match timeout(SOON, events.0.frame()).await.expect("more, or an end") {
                Some(Ok(frame)) => informer.take(frame.data_ref().expect("data")),
                _ => events = informer.watch(&far).await,
            }
        }
    };
    tokio::join!(writing, ending, watching);
    assert!(informer.watches > 1, "the watch outlived its server");
    assert!(informer.added.values().all(|times| *times == 1), "{:?}", informer.added);
    bytes_are_carried_after_an_upgrade(&far).await;
    pages_patches_and_collections(&far, MADE + 1).await;
}

/// What else there is to do with a collection: reading it in parts, every kind of patch, and deleting all of it.
async fn pages_patches_and_collections(far: &Member, count: usize) {
    let mut admin = far.admin().await;
    let (mut read, mut next) = (0, String::new());
    loop {
        let page = admin.get(&format!("{BUDGETS}?limit=7&continue={next}")).await.expect("an answer");
        assert_eq!(page.status, 200, "{}", page.body);
        let page: Value = serde_json::from_str(&page.body).expect("JSON");
        read += page["items"].as_array().expect("items").len();
        let token = page["metadata"]["continue"].as_str().unwrap_or_default();
        if token.is_empty() {
            break;
        }
        token.clone_into(&mut next);
    }
    assert_eq!(read, count);
    let path = format!("{BUDGETS}/b-1");
    let apply = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b-1",
        "labels": {"applied": "yes"}}});
    for (kind, path, patch) in [
        (
            "application/json-patch+json",
            path.clone(),
            json!([{"op": "add", "path": "/metadata/labels", "value": {"json": "yes"}}]),
        ),
        ("application/merge-patch+json", path.clone(), json!({"metadata": {"labels": {"merge": "yes"}}})),
        (
            "application/strategic-merge-patch+json",
            path.clone(),
            json!({"metadata": {"labels": {"strategic": "yes"}}}),
        ),
        ("application/apply-patch+yaml", format!("{path}?fieldManager=test"), apply),
    ] {
        let headers = [("content-type", kind)];
        let answer = admin.exchange(Method::PATCH, &path, &headers, patch.to_string().into()).await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, 200, "{kind}: {}", answer.body);
    }
    let patched: Value =
        serde_json::from_str(&admin.get(&path).await.expect("an answer").body).expect("JSON");
    let labels = json!({"json": "yes", "merge": "yes", "strategic": "yes", "applied": "yes"});
    assert_eq!(patched["metadata"]["labels"], labels);
    assert_eq!(admin.request(Method::DELETE, BUDGETS).await.expect("an answer").status, 200);
    let left: Value = serde_json::from_str(&admin.get(BUDGETS).await.expect("an answer").body).expect("JSON");
    assert_eq!(left["items"], json!([]));
}

/// A watch over a WebSocket, with its events.
async fn bytes_are_carried_after_an_upgrade(far: &Member) {
    let mut admin = far.program.admin(Protocol::Http1).await;
    let headers = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        // It is not this one who asks.
        ("x-remote-user", "nobody"),
    ];
    let path = format!("{BUDGETS}?watch=1");
    let answer = admin.send(Method::GET, &path, &headers, Bytes::new()).await.expect("a head");
    assert_eq!(answer.status(), 101);
    assert_eq!(answer.headers()[header::UPGRADE], "websocket");
    let mut stream = TokioIo::new(hyper::upgrade::on(answer).await.expect("upgraded"));
    make(far, "over-a-socket").await;
    let mut text = String::new();
    while !text.contains("over-a-socket") {
        let mut piece = vec![0; 4096];
        let read = timeout(SOON, stream.read(&mut piece)).await.expect("in time").expect("bytes");
        assert!(read > 0, "it ended with {text}");
        text.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    assert!(text.contains("b-0"), "{text}");
}

/// Nobody can write, and records expire, but what is known stays known.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_stalls_does_not_part_the_servers() {
    /// Longer than records live.
    const STALL: Duration = Duration::from_secs(9);
    let mut fleet = Fleet::new().await;
    // When it goes on, nobody is to be taken for dead.
    fleet.lease = "60s";
    let far = fleet.start("apiserver-a", &[WITHOUT]).await;
    let near = fleet.start("apiserver-b", &[]).await;
    agreed(&[&far, &near]).await;
    let path = format!("{BUDGETS}?resourceVersion=0");
    assert_eq!(far.get(&path).await.status, 200);
    fleet.etcd.pause(0).expect("stopped");
    let begin = Instant::now();
    let (mut asked, mut resumed) = (0, false);
    // It stalls for longer than a record lives, and then everybody sees that all records are gone.
    while begin.elapsed() < STALL + Duration::from_secs(3) {
        if begin.elapsed() > STALL && !resumed {
            fleet.etcd.resume(0).expect("it goes on");
            resumed = true;
        }
        let answer = far.get(&path).await;
        assert_eq!(answer.status, 200, "after {:?}: {}", begin.elapsed(), answer.body);
        asked += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(asked > 20, "{asked}");
    agreed(&[&far, &near]).await;
}
