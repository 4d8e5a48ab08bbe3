//! The store is gone, a server does not believe another one, or webhooks stand in the way.

use std::time::{Duration, Instant};

use bytes::Bytes;
use concord_server::test_client::Protocol;
use http::Method;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpStream;

use super::{Fleet, agreed, eventually};
use crate::support::send;

const WITHOUT: &str = "--runtime-config=policy/v1=false";
/// What is answered from memory, by whoever serves it.
const BUDGETS: &str = "/apis/policy/v1/poddisruptionbudgets?resourceVersion=0";

/// How often etcd was asked for keys.
async fn ranges(fleet: &Fleet) -> u64 {
    let stream = TcpStream::connect(fleet.etcd.client_address(0)).await.expect("an etcd");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
    tokio::spawn(async move { drop(connection.await) });
    let request = http::Request::get("/metrics").header("host", "etcd");
    let request = request.body(Empty::<Bytes>::new()).expect("a request");
    let answer = sender.send_request(request).await.expect("an answer");
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    let text = String::from_utf8(body.into()).expect("text");
    let of = "etcd_debugging_mvcc_range_total ";
    text.lines().find_map(|line| line.strip_prefix(of)?.parse().ok()).expect("the metric")
}

/// X11: where a request goes is known without asking the store. F21: also when there is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_sent_on_from_memory_while_the_store_is_down() {
    const REQUESTS: u64 = 500;
    let mut fleet = Fleet::new().await;
    fleet.lease = "60s";
    let far = fleet.start("apiserver-a", &[WITHOUT]).await;
    let near = fleet.start("apiserver-b", &[]).await;
    agreed(&[&far, &near]).await;
    let mut admin = far.admin().await;
    let (begin, before) = (Instant::now(), ranges(&fleet).await);
    for _ in 0..REQUESTS {
        assert_eq!(admin.get(BUDGETS).await.expect("an answer").status, 200);
    }
    let (took, after) = (begin.elapsed(), ranges(&fleet).await);
    // What servers read anyway, in as long a time.
    tokio::time::sleep(took).await;
    let (asked, anyway) = (after - before, ranges(&fleet).await - after);
    assert!(asked < REQUESTS / 5 + anyway, "{REQUESTS} requests made {asked} reads, none {anyway}");
    fleet.etcd.kill(0).expect("killed");
    // Longer than records and whatever else is waited for.
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(12) {
        let answer = admin.get(BUDGETS).await.expect("an answer");
        assert_eq!(answer.status, 200, "after {:?}: {}", begin.elapsed(), answer.body);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    fleet.etcd.restart(0).expect("started");
    fleet.etcd.ready().await.expect("ready");
    agreed(&[&far, &near]).await;
}

/// F27: the other server does not take this one for a proxy, which is no fault of whoever asks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_not_believed_by_another_server_does_not_tell_its_users_that_they_are_unknown() {
    let fleet = Fleet::new().await;
    let far = fleet.start("apiserver-a", &[WITHOUT]).await;
    let near = fleet.start("apiserver-b", &[]).await;
    agreed(&[&far, &near]).await;
    assert_eq!(far.get(BUDGETS).await.status, 200);
    let data = near.stop("TERM").await;
    let file = |flag: &str, name: &str| format!("--{flag}={}", fleet.pki.path().join(name).display());
    let ca = file("requestheader-client-ca-file", "front-proxy-ca.crt");
    let certificate = file("proxy-client-cert-file", "front-proxy-client.crt");
    let key = file("proxy-client-key-file", "front-proxy-client.key");
    let flags = [
        ca.as_str(),
        &certificate,
        &key,
        "--requestheader-allowed-names=somebody-else",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
    ];
    let near = fleet.start_in(data, "apiserver-b", &flags).await;
    let line = "apiserver_peer_discovery_sync_errors_total{type=\"fetch_discovery\"} ";
    eventually("it is asked in vain", || async { far.metrics().await.contains(line).then_some(()) }).await;
    let mut admin = far.program.admin(Protocol::Http1).await;
    for _ in 0..20 {
        let answer = admin.get(BUDGETS).await.expect("an answer");
        assert_eq!(answer.status, 503, "{}", answer.body);
        assert_eq!(answer.headers["retry-after"], "1");
    }
    assert_eq!(far.get("/api/v1/pods").await.status, 200);
    assert_eq!(near.get(BUDGETS).await.status, 200);
}

/// F19: a webhook that nobody answers, and without which no client may write a lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_about_leases_keep_no_server_from_coming_and_going() {
    const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    let fleet = Fleet::new().await;
    let one = fleet.start("apiserver-a", &[WITHOUT]).await;
    let hook = json!({"metadata": {"name": "leases"}, "webhooks": [{
        "name": "leases.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
        "clientConfig": {"url": "https://127.0.0.1:9/"},
        "rules": [{"operations": ["*"], "apiGroups": ["coordination.k8s.io"], "apiVersions": ["*"], "resources": ["*"]}],
    }]});
    let hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let mut admin = one.admin().await;
    assert_eq!(send(&mut admin, Method::POST, hooks, &hook).await.0, 201);
    eventually("clients cannot write leases", || async {
        let lease = json!({"metadata": {"generateName": "a-"}, "spec": {}});
        (send(&mut one.admin().await, Method::POST, LEASES, &lease).await.0 == 500).then_some(())
    })
    .await;
    let two = fleet.start("apiserver-b", &[]).await;
    agreed(&[&one, &two]).await;
    assert_eq!(one.get(BUDGETS).await.status, 200);
    let lease = format!("{LEASES}/apiserver-b");
    assert_eq!(one.get(&lease).await.status, 200);
    two.stop("TERM").await;
    assert_eq!(one.get(&lease).await.status, 404);
}
