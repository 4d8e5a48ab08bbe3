//! Servers behind several servers on one etcd, found by what the cluster knows of them.

use std::{net::SocketAddr, path::Path, time::Duration};

use bytes::Bytes;
use concord_server::test_client::{Protocol, TestClient};
use concord_store::{Store as _, Txn};
use concord_testing::etcd::Cluster;
use http::Method;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use tokio::{io::AsyncReadExt as _, time::timeout};

use super::{
    API_SERVICES,
    bookshelf::{BOOKS, NAME, Shelf},
    condition, parse, until,
};
use crate::{
    encryption::etcd_store,
    support::{Program, SOON, send},
};

/// A server of a fleet. The first one makes the PKI.
async fn member(etcd: &Cluster, pki: &Path, id: &str, flags: &[&str]) -> (TempDir, Program) {
    let data = tempdir().expect("a directory");
    std::os::unix::fs::symlink(pki, data.path().join("pki")).expect("a link");
    let own = [format!("--etcd-servers={}", etcd.endpoints()[0]), format!("--server-id={id}")];
    let flags: Vec<&str> = own.iter().map(String::as_str).chain(flags.iter().copied()).collect();
    let program = Program::start_with(data.path(), &flags).await;
    program.ready(200).await;
    (data, program)
}

/// What the store says where the endpoints of a Service are. Clients may not say that they are on loopback.
async fn place(etcd: &Cluster, at: SocketAddr, ready: bool) {
    let slice = json!({"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "addressType": "IPv4",
        "metadata": {"name": "bookshelf-1", "namespace": "default", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"kubernetes.io/service-name": "bookshelf"}},
        "endpoints": [{"addresses": [at.ip().to_string()], "conditions": {"ready": ready}}],
        "ports": [{"name": "https", "port": at.port(), "protocol": "TCP"}]});
    let store = etcd_store(etcd).await;
    let key = "/registry/endpointslices/default/bookshelf-1";
    store.transact(Txn::new().put(key, slice.to_string())).await.expect("written");
    store.shutdown().await;
}

async fn make(admin: &mut TestClient, path: &str, object: &Value) {
    let (status, answer, _) = send(admin, Method::POST, path, object).await;
    assert_eq!(status, 201, "{answer}");
}

/// Found by the endpoints of a Service, and by a name outside of the cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_found_by_endpoints_and_by_name() {
    const SERVICES: &str = "/api/v1/namespaces/default/services";
    let (etcd, pki) = (Cluster::single().await.expect("an etcd"), tempdir().expect("a directory"));
    let (_data, program) = member(&etcd, pki.path(), "apiserver-a", &["--enable-aggregator-routing"]).await;
    let shelf = Shelf::start(&pki.path().join("front-proxy-ca.crt")).await;
    let mut admin = program.admin(Protocol::Http2).await;
    make(&mut admin, API_SERVICES, &shelf.api_service).await;
    let message = condition(&mut admin, NAME, "False", "ServiceNotFound").await;
    assert_eq!(message, "service/bookshelf in \"default\" is not present");
    let service =
        json!({"metadata": {"name": "bookshelf"}, "spec": {"ports": [{"name": "https", "port": 443}]}});
    make(&mut admin, SERVICES, &service).await;
    condition(&mut admin, NAME, "False", "EndpointsNotFound").await;
    place(&etcd, shelf.address, false).await;
    condition(&mut admin, NAME, "False", "MissingEndpoints").await;
    place(&etcd, shelf.address, true).await;
    condition(&mut admin, NAME, "True", "Passed").await;
    until(&mut admin, BOOKS, "books are served", |status, _| status == 200).await;

    // A server without that flag goes where the name of the Service says.
    let (_data, other) = member(&etcd, pki.path(), "apiserver-b", &[]).await;
    let mut there = other.admin(Protocol::Http2).await;
    assert_eq!(send(&mut admin, Method::DELETE, &format!("{SERVICES}/bookshelf"), &Value::Null).await.0, 200);
    let named = json!({"metadata": {"name": "bookshelf"}, "spec": {"type": "ExternalName", "externalName": "localhost"}});
    make(&mut admin, SERVICES, &named).await;
    let port = json!({"spec": {"service": {"port": shelf.address.port()}}});
    assert_eq!(send(&mut admin, Method::PATCH, &format!("{API_SERVICES}/{NAME}"), &port).await.0, 200);
    until(&mut there, BOOKS, "books are served by name", |status, _| status == 200).await;
    shelf.stop().await;
}

/// Two servers do not agree on whether a third can be reached. Each goes by what it finds; what is said stays what it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_disagree_do_not_take_turns() {
    let (etcd, pki) = (Cluster::single().await.expect("an etcd"), tempdir().expect("a directory"));
    let front = pki.path().join("front-proxy-ca.crt");
    concord_pki::FrontProxyPki::open_or_create(pki.path(), std::time::SystemTime::now()).expect("a PKI");
    let shelf = Shelf::start(&front).await;
    let near = format!("--service-address=default/bookshelf={}", shelf.address);
    let far = "--service-address=default/bookshelf=127.0.0.1:9";
    let (_near_data, near) = member(&etcd, pki.path(), "apiserver-a", &[&near]).await;
    let (_far_data, far) = member(&etcd, pki.path(), "apiserver-b", &[far]).await;
    let (mut near_admin, mut far_admin) =
        (near.admin(Protocol::Http2).await, far.admin(Protocol::Http2).await);
    make(&mut near_admin, API_SERVICES, &shelf.api_service).await;
    let unavailable = |is: u8| format!("aggregator_unavailable_apiservice{{name=\"{NAME}\"}} {is}\n");
    let says = |is: u8| move |_: u16, body: &str| body.contains(&unavailable(is));
    until(&mut near_admin, "/metrics", "one finds it", says(0)).await;
    until(&mut far_admin, "/metrics", "one does not", says(1)).await;
    until(&mut near_admin, BOOKS, "who reaches it serves it", |status, _| status == 200).await;
    assert_eq!(far_admin.get(BOOKS).await.expect("an answer").status, 503);
    // One of the two says so, whoever it is. Each looks again and again, and each time finds the same.
    let is_said = |_: u16, body: &str| parse(body)["status"]["conditions"][0]["status"].is_string();
    let path = format!("{API_SERVICES}/{NAME}");
    let before = parse(&until(&mut near_admin, &path, "one of them says so", is_said).await);
    for _ in 0..10 {
        // A request that cannot be answered has it looked at at once.
        assert_eq!(far_admin.get(BOOKS).await.expect("an answer").status, 503);
        assert_eq!(near_admin.get(BOOKS).await.expect("an answer").status, 200);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let after = parse(&near_admin.get(&path).await.expect("an answer").body);
    assert_eq!(after["status"], before["status"]);
    shelf.stop().await;
}

/// What the extension server has in a namespace goes with it, and holds it while nobody knows what it has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_books_go_with_their_namespace() {
    let world = super::bookshelf::World::start().await;
    let mut admin = world.program.admin(Protocol::Http2).await;
    let books = |namespace: &str| format!("/apis/library.example.com/v1/namespaces/{namespace}/books");
    for namespace in ["reading", "closed"] {
        make(&mut admin, "/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await;
        for name in ["dune", "emma"] {
            let book = json!({"apiVersion": "library.example.com/v1", "kind": "Book", "metadata": {"name": name},
                "spec": {"title": name}});
            make(&mut admin, &books(namespace), &book).await;
        }
    }
    a_watch_over_a_socket(&world.program, &books("reading")).await;
    let delete = |namespace: &str| format!("/api/v1/namespaces/{namespace}");
    // It is known what there is once its discovery was read.
    assert_eq!(send(&mut admin, Method::DELETE, &delete("reading"), &Value::Null).await.0, 200);
    until(&mut admin, &delete("reading"), "the namespace is gone", |status, _| status == 404).await;
    let left = parse(&admin.get(&books("reading")).await.expect("an answer").body);
    assert_eq!(left["items"], json!([]));
    let left = parse(&admin.get(&books("closed")).await.expect("an answer").body);
    assert_eq!(left["items"].as_array().map(Vec::len), Some(2));

    world.shelf.stop().await;
    // Somebody has to notice.
    until(&mut admin, &books("closed"), "it is gone", |status, body| {
        status == 503 && body == "service unavailable\n"
    })
    .await;
    assert_eq!(send(&mut admin, Method::DELETE, &delete("closed"), &Value::Null).await.0, 200);
    let is_held = |status: u16, body: &str| {
        let conditions = parse(body)["status"]["conditions"].clone();
        status == 200 && conditions[0]["status"] == "True"
    };
    let held = until(&mut admin, &delete("closed"), "the namespace says what holds it", is_held).await;
    assert_eq!(
        parse(&held)["status"]["conditions"][0]["message"],
        "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: \
         library.example.com/v1: stale GroupVersion discovery: library.example.com/v1"
    );
    // Who takes the API away takes the reason away.
    let service = format!("{API_SERVICES}/{NAME}");
    assert_eq!(send(&mut admin, Method::DELETE, &service, &Value::Null).await.0, 200);
    until(&mut admin, &delete("closed"), "the namespace is gone", |status, _| status == 404).await;
}

/// A watch over a WebSocket, through the server in front.
async fn a_watch_over_a_socket(program: &Program, books: &str) {
    let mut admin = program.admin(Protocol::Http1).await;
    let headers = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let answer = admin.send(Method::GET, &format!("{books}?watch=1"), &headers, Bytes::new()).await;
    let answer = answer.expect("a head");
    assert_eq!(answer.status(), 101);
    let mut stream = TokioIo::new(hyper::upgrade::on(answer).await.expect("upgraded"));
    let mut text = String::new();
    while !(text.contains("dune") && text.contains("emma")) {
        let mut piece = vec![0; 4096];
        let read = timeout(SOON, stream.read(&mut piece)).await.expect("in time").expect("bytes");
        assert!(read > 0, "it ended with {text}");
        text.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
}
