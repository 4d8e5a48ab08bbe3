//! A server that is told to stop while somebody still talks to it.

use concord_store::{Change, Scan, Store as _};
use concord_store_etcd::EtcdStore;
use concord_testing::audit::Auditor;
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::world::{World, until};

const LEASE: &str = "/registry/leases/kube-system/s1";
const WRITTEN: &str = "/registry/configmaps/default/s1--last";

/// Row 38: whoever still has something to write still is who it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_given_back_after_the_last_request() {
    let mut world = World::new().await;
    world.start(0, &[]).await;
    world.ready(0).await;
    let store = world.store().await;
    let exists =
        async |key: &str| !store.scan(Scan::key(key.to_owned())).await.expect("a page").entries.is_empty();
    let body = json!({"metadata": {"name": "s1--last"}}).to_string();
    let (first, last) = body.split_at(body.len() / 2);
    let mut stream = world.program(0).stream().await;
    let head = format!(
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{first}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.flush().await.expect("sent");
    let program = world.members[0].program.take().expect("it runs");
    // The request is being served as soon as another one that came later was answered.
    program.ready(200).await;
    program.signal("TERM");
    until("nobody new is let in", || async {
        TcpStream::connect(program.address).await.is_err().then_some(())
    })
    .await;
    assert!(exists(LEASE).await, "it still has a request");
    stream.write_all(last.as_bytes()).await.expect("sent");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 201");
    drop(stream);
    program.ended().await;
    assert!(!exists(LEASE).await && exists(WRITTEN).await);
    // In the log, one came after the other, and it is its own writer's.
    assert_eq!(in_the_log(&store).await, ["written", "given back"]);
    store.shutdown().await;
}

/// What happened, in its order.
async fn in_the_log(store: &EtcdStore) -> Vec<&'static str> {
    let last = store.current_revision().await.expect("a revision");
    let mut commits = store.follow(1);
    let mut auditor = Auditor::new(&[("configmaps", "core.configmaps")]);
    let (mut seen, mut order) = (1, Vec::new());
    while seen < last {
        for commit in commits.next().await.expect("more").expect("readable") {
            seen = commit.revision;
            auditor.commit(&commit).unwrap_or_else(|complaint| panic!("{complaint}"));
            order.extend(commit.changes.iter().filter_map(|change| match change {
                Change::Put(entry) if entry.key == WRITTEN => Some("written"),
                Change::Delete { key } if key == LEASE => Some("given back"),
                _ => None,
            }));
        }
    }
    order
}
