//! Clients that lie, and servers that hang, lie, answer without end or are nobody's.

use std::time::Duration;

use bytes::Bytes;
use concord_server::test_client::{Protocol, TestClient};
use concord_store::{Store as _, Txn};
use concord_testing::{
    proxy::{Fault, Proxy},
    webhook::{Asked, Certificate, Reply, WebhookServer},
};
use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Fleet, Member, agreed, bundle, eventually, resources};
use crate::support::send;

const JOBS: &str = "/apis/batch/v1/jobs";
const NAME: &str = "kubernetes.default.svc";

/// Writes to the store itself, as only servers can.
async fn write(fleet: &Fleet, key: &str, value: &Value) {
    let store = fleet.store().await;
    store.transact(Txn::new().put(format!("/registry/{key}"), value.to_string())).await.expect("written");
    store.shutdown().await;
}

fn lease(id: &str) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": id, "namespace": "kube-system", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"apiserver.kubernetes.io/identity": "kube-apiserver"}},
        "spec": {"holderIdentity": format!("{id}_1"), "leaseDurationSeconds": 3600,
            "renewTime": "2050-01-01T00:00:00.000000Z"}})
}

/// Makes a server appear that is at a port.
async fn appear(fleet: &Fleet, id: &str, ip: &str, port: u16) {
    let record = json!({"kind": "Endpoints", "apiVersion": "v1", "metadata": {"labels": {"apiserverIdentity": id}},
        "subsets": [{"addresses": [{"ip": ip}], "ports": [{"name": "https", "port": port, "protocol": "TCP"}]}]});
    write(fleet, &format!("peerserverleases/{id}"), &record).await;
    write(fleet, &format!("leases/kube-system/{id}"), &lease(id)).await;
}

fn list(groups: &[(&str, &str)]) -> String {
    let item = |(group, resource): &(&str, &str)| {
        json!({"metadata": {"name": group}, "versions": [{"version": "v1", "freshness": "Current", "resources": [
            {"resource": resource, "responseKind": {"group": "", "version": "", "kind": "X"}, "scope": "Cluster",
             "singularResource": "x", "verbs": ["get", "list", "create"]}]}]})
    };
    let items: Vec<Value> = groups.iter().map(item).collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
        .to_string()
}

/// A server that says it has lies, and does with requests for them what their names say.
fn liar(asked: &Asked) -> Reply {
    let path = asked.line.split_whitespace().nth(1).unwrap_or_default();
    match path {
        "/api" => Reply::ok(&list(&[("", "myths")])),
        "/apis" => Reply::ok(&list(&[
            ("lies.example.com", "hangups"),
            ("ends.example.com", "ends"),
            ("cuts.example.com", "cuts"),
            ("waits.example.com", "waits"),
            ("unknown.example.com", "unknowns"),
            ("foreign.example.com", "foreigns"),
            ("redirects.example.com", "redirects"),
            ("custom.example.com", "foos"),
        ])),
        _ if path.contains("hangups") => Reply::hang_up(),
        _ if path.contains("ends") => Reply::endless(),
        _ if path.contains("cuts") => Reply::cut(),
        _ if path.contains("waits") => Reply::never(),
        _ if path.contains("unknowns") => Reply::new("404 Not Found", "404 page not found\n"),
        _ if path.contains("foreigns") => Reply::new("401 Unauthorized", "{}"),
        _ if path.contains("redirects") => Reply::new("302 Found\r\nlocation: https://example.com/", ""),
        _ => Reply::new("404 Not Found", "404 page not found\n"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_lies_harms_nobody_but_itself() {
    let mut fleet = Fleet::new().await;
    let first = fleet.start("apiserver-first", &[]).await;
    first.stop("TERM").await;
    let liars = WebhookServer::start(Certificate::For(NAME), liar).await.expect("a server");
    let foreign = WebhookServer::start(Certificate::For(NAME), liar).await.expect("a server");
    let misnamed = WebhookServer::start(Certificate::For("other.default.svc"), liar).await.expect("a server");
    let huge = WebhookServer::start(Certificate::For(NAME), |_| Reply::ok(&" ".repeat(100 << 20))).await;
    let huge = huge.expect("a server");
    let hung = WebhookServer::start(Certificate::For(NAME), |_| Reply::never()).await.expect("a server");
    let authorities = [&liars, &huge, &hung, &misnamed].map(|server| server.authority.as_str());
    fleet.peer_ca = bundle(&fleet, &authorities);
    let without = fleet.start("apiserver-a", &["--runtime-config=batch/v1=false"]).await;
    let with = fleet.start("apiserver-b", &[]).await;
    let servers =
        [("liar", &liars), ("foreign", &foreign), ("huge", &huge), ("hung", &hung), ("misnamed", &misnamed)];
    for (id, server) in servers {
        appear(&fleet, &format!("apiserver-{id}"), "127.0.0.1", server.port).await;
    }
    appear(&fleet, "apiserver-metadata", "169.254.169.254", 80).await;
    // Whoever says something sensible is heard, whatever the others do.
    eventually("the good and the bad are known", || async {
        let all = resources(&without.discovery("").await.0);
        (all.contains("batch/v1/jobs") && all.contains("lies.example.com/v1/hangups")).then_some(())
    })
    .await;
    assert_eq!(without.get(JOBS).await.status, 200);
    let (core, _) = without.aggregated("/api", "application/json").await;
    assert!(String::from_utf8_lossy(&core).contains("myths"), "the core group is merged as well");
    for (path, status) in [
        ("/api/v1/myths", 503),
        ("/apis/lies.example.com/v1/hangups", 503),
        ("/apis/unknown.example.com/v1/unknowns", 503),
        ("/apis/foreign.example.com/v1/foreigns", 503),
        ("/apis/redirects.example.com/v1/redirects", 502),
        // Some server may have it: those that never said what they have.
        ("/apis/nobody.example.com/v1/things", 503),
        ("/api/v1/pods", 200),
    ] {
        let answer = without.get(path).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        assert!(!answer.body.contains("127.0.0.1"), "{}", answer.body);
    }
    what_breaks_off_is_not_made_whole(&without).await;
    who_does_not_wait_is_counted(&without, &liars).await;
    // Of nobody whom the authority did not sign is anything asked, nor (F26) of one that is signed under another name.
    assert!(foreign.asked().is_empty(), "{:?}", foreign.asked());
    assert!(misnamed.asked().is_empty(), "{:?}", misnamed.asked());
    custom_resources_are_not_taken_from_others(&without).await;
    drop(with);
}

/// An answer that has begun goes on for as long as the other server takes, and ends in an error where that one vanishes.
async fn what_breaks_off_is_not_made_whole(member: &Member) {
    let mut admin = member.program.admin(Protocol::Http1).await;
    let begun = admin.send(Method::GET, "/apis/ends.example.com/v1/ends", &[], Bytes::new()).await;
    assert_eq!(begun.expect("a head").status(), 200);
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let (_admin, begun) = begun_and_cut(member, protocol).await;
        assert_eq!(begun.status(), 200);
        let whole = timeout(Duration::from_secs(30), begun.into_body().collect()).await.expect("an end");
        assert!(whole.is_err(), "one byte of ten is not an answer");
    }
}

/// The head of an answer that is cut off, and the client that hears it. The end may overtake it; then it is asked for again.
async fn begun_and_cut(member: &Member, protocol: Protocol) -> (TestClient, http::Response<Incoming>) {
    for _ in 0..50 {
        let mut admin = member.program.admin(protocol).await;
        let begun = admin.send(Method::GET, "/apis/cuts.example.com/v1/cuts", &[], Bytes::new()).await;
        if let Ok(begun) = begun {
            return (admin, begun);
        }
    }
    panic!("there was never a head");
}

/// A client that goes before there is an answer is no failure of the other server's.
async fn who_does_not_wait_is_counted(member: &Member, liars: &WebhookServer) {
    const WAITS: &str = "/apis/waits.example.com/v1/waits";
    let mut admin = member.admin().await;
    let arrived = eventually("the other server is asked", || async {
        liars.asked().iter().any(|asked| asked.line.contains(WAITS)).then_some(())
    });
    tokio::select! {
        answer = admin.send(Method::GET, WAITS, &[], Bytes::new()) => panic!("nobody answers: {answer:?}"),
        () = arrived => {}
    }
    drop(admin);
    let line = r#"apiserver_peer_proxy_errors_total{group="waits.example.com",resource="waits",type="cancelled",version="v1"} 1"#;
    eventually("the request is given up there, too", || async {
        member.metrics().await.contains(line).then_some(())
    })
    .await;
}

/// What the log says is custom is served from here, whoever else claims it.
async fn custom_resources_are_not_taken_from_others(member: &Member) {
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.custom.example.com"}, "spec": {"group": "custom.example.com", "scope": "Cluster",
        "names": {"plural": "foos", "kind": "Foo"}, "versions": [{"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let mut admin = member.admin().await;
    assert_eq!(send(&mut admin, Method::POST, definitions, &definition).await.0, 201);
    let path = "/apis/custom.example.com/v1/foos";
    eventually("the custom resource is served", || async {
        let answer = member.get(path).await;
        (answer.status == 200 && answer.body.contains("FooList")).then_some(())
    })
    .await;
    assert_eq!(
        admin
            .request(Method::DELETE, &format!("{definitions}/foos.custom.example.com"))
            .await
            .expect("an answer")
            .status,
        200
    );
    // It does not come back from one that still claims it.
    eventually("it is gone", || async {
        (!resources(&member.discovery("").await.0).contains("custom.example.com/v1/foos")).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_clients_say_about_proxies_counts_for_nothing() {
    let fleet = Fleet::new().await;
    let without = fleet.start("apiserver-a", &["--runtime-config=batch/v1=false"]).await;
    let with = fleet.start("apiserver-b", &[]).await;
    agreed(&[&without, &with]).await;
    let mark = "x-kubernetes-peer-proxied";
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut admin = without.program.admin(protocol).await;
        for headers in [
            &[(mark, "true")][..],
            &[(mark, "false")],
            &[(mark, "true"), (mark, "false")],
            &[("X-Kubernetes-Peer-Proxied", "TRUE"), (mark, "")],
            &[("x-remote-user", "nobody"), ("x-remote-group", "none")],
        ] {
            let answer = admin.exchange(Method::GET, JOBS, headers, Bytes::new()).await.expect("an answer");
            assert_eq!(answer.status, 200, "{headers:?}: {}", answer.body);
        }
    }
    let mut admin = without.program.admin(Protocol::Http1).await;
    let headers = [("connection", mark), (mark, "true")];
    let answer = admin.exchange(Method::GET, JOBS, &headers, Bytes::new()).await.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
    // Who is nobody stays nobody, here and there.
    let ca = fleet.pki.path().join("ca.crt");
    let mut nobody =
        TestClient::connect(without.program.address, &ca, Protocol::Http1).await.expect("a connection");
    let headers = [("x-remote-user", "admin"), ("x-remote-group", "system:masters"), (mark, "true")];
    let denied = nobody.exchange(Method::GET, JOBS, &headers, Bytes::new()).await.expect("an answer");
    assert_eq!(denied.status, 403, "{}", denied.body);
    assert!(denied.body.contains("system:anonymous"), "{}", denied.body);
    forged_leases_change_nothing(&without).await;
    thousands_of_forged_leases_change_little(&fleet, &without).await;
}

/// Ten thousand of them at once, as servers would have written them: nobody is asked, and what is served is served as before.
/// What nobody is known to serve might be served by one of them.
async fn thousands_of_forged_leases_change_little(fleet: &Fleet, member: &Member) {
    const FORGED: usize = 10_000;
    let before = member.metrics().await;
    let store = fleet.store().await;
    for first in (0..FORGED).step_by(100) {
        let txn = (first..first + 100).fold(Txn::new(), |txn, at| {
            let id = format!("apiserver-{at:a>26}");
            txn.put(format!("/registry/leases/kube-system/{id}"), lease(&id).to_string())
        });
        store.transact(txn).await.expect("written");
    }
    store.shutdown().await;
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    for _ in 0..20 {
        let answer = member.get(jobs).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?limit=1";
    assert!(member.get(leases).await.body.contains("remainingItemCount"));
    assert_eq!(member.get("/apis/nobody.example.com/v1/things").await.status, 503);
    let asked = |metrics: &str| {
        let of = r#"apiserver_rerouted_request_total{code="200",group="",resource="",version=""} "#;
        let line = metrics.lines().find_map(|line| line.strip_prefix(of));
        line.and_then(|count| count.parse::<usize>().ok()).unwrap_or_default()
    };
    let metrics = member.metrics().await;
    assert!(metrics.contains("concord_peers{state=\"fresh\"} 1\n"), "{metrics}");
    assert!(metrics.contains("concord_peers{state=\"unknown\"} 100\n"), "{metrics}");
    // At most one round of what is asked every minute.
    assert!(asked(&metrics) <= asked(&before) + 3, "{} {}", asked(&before), asked(&metrics));
}

/// Leases that clients can make: in other namespaces, without a holder, of names that no server has.
async fn forged_leases_change_nothing(member: &Member) {
    let mut admin = member.admin().await;
    for (namespace, name, label, holder) in [
        ("default", "apiserver-xzyuxin5ffqe4sbn4knhvm7e74", "kube-apiserver", json!("x")),
        ("kube-system", "evil", "kube-apiserver", json!("x")),
        ("kube-system", "apiserver-short", "kube-apiserver", json!("x")),
        ("kube-system", "apiserver-qkqlewvapptsegjj4bzzcqpmla", "kube-apiserver", Value::Null),
        ("kube-system", "apiserver-qkqlewvapptsegjj4bzzcqpmlb", "other", json!("x")),
    ] {
        let lease = json!({"metadata": {"name": name, "labels": {"apiserver.kubernetes.io/identity": label},
            "annotations": {"kubernetes.io/peer-advertise-address": "192.0.2.1:1"}},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 3600, "renewTime": "2050-01-01T00:00:00.000000Z"}});
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        assert_eq!(send(&mut admin, Method::POST, &path, &lease).await.0, 201, "{name}");
    }
    // Whoever read the leases would not be sure now that nobody has it.
    let answer = member.get("/apis/nobody.example.com/v1/things").await;
    assert_eq!(answer.status, 404, "{}", answer.body);
    assert!(member.metrics().await.contains("concord_peers{state=\"unknown\"} 0\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_cannot_reach_each_other_serve_all_else() {
    let fleet = Fleet::new().await;
    let without = fleet.start("apiserver-a", &["--runtime-config=batch/v1=false"]).await;
    let between = Proxy::start("127.0.0.1:9".parse().expect("an address"), 0).await.expect("a proxy");
    let port = format!("--peer-advertise-port={}", between.address().port());
    let with = fleet.start("apiserver-b", &["--peer-advertise-ip=127.0.0.1", &port]).await;
    between.retarget(with.program.address);
    agreed(&[&without, &with]).await;
    assert_eq!(without.get(JOBS).await.status, 200);
    // Neither can reach the other, but both reach the store.
    between.set(Fault::Refuse);
    between.cut();
    eventually("nobody can answer", || async {
        let answer = without.get(JOBS).await;
        assert!(matches!(answer.status, 200 | 503), "{}: {}", answer.status, answer.body);
        (answer.status == 503).then_some(())
    })
    .await;
    for _ in 0..5 {
        assert_eq!(without.get(JOBS).await.status, 503);
        assert_eq!(without.get("/api/v1/pods").await.status, 200);
        assert_eq!(with.get(JOBS).await.status, 200);
    }
    between.set(Fault::None);
    eventually("it is served again", || async { (without.get(JOBS).await.status == 200).then_some(()) })
        .await;
}
