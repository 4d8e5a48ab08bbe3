//! `concord serve` as an operator meets it.

use std::{fs, os::unix::process::ExitStatusExt as _};

use crate::support::{Program, SOON, refused, run};
use concord_server::test_client::Protocol;
use concord_testing::etcd::Cluster;
use tempfile::tempdir;

#[tokio::test]
async fn a_fresh_server_becomes_ready_and_says_what_it_is() {
    let data = tempdir().expect("a directory");
    let server = Program::start(data.path()).await;
    let ready = server.ready(200).await;
    assert_eq!(
        ready.body,
        "[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]etcd-readiness ok\n[+]informer-sync ok\n\
         [+]poststarthook/crd-informer-synced ok\n[+]autoregister-completion ok\n\
         [+]poststarthook/start-service-ip-repair-controllers ok\n\
         [+]poststarthook/start-system-namespaces-controller ok\n\
         [+]poststarthook/scheduling/bootstrap-system-priority-classes ok\n\
         [+]poststarthook/priority-and-fairness-config-producer ok\n\
         [+]poststarthook/bootstrap-controller ok\n\
         [+]poststarthook/start-kubernetes-service-cidr-controller ok\n\
         [+]poststarthook/rbac/bootstrap-roles ok\n\
         [+]poststarthook/start-kube-apiserver-identity-lease-controller ok\n\
         [+]poststarthook/start-kube-apiserver-identity-lease-garbage-collector ok\n\
         [+]poststarthook/built-in-resources-storage-version-updater ok\n[+]shutdown ok\nreadyz check passed\n"
    );
    for protocol in [Protocol::Http1, Protocol::Http2] {
        for path in ["/healthz", "/livez", "/readyz"] {
            let answer = server.get(protocol, path).await;
            assert_eq!((answer.status, answer.body.as_str()), (200, "ok"), "{protocol:?} {path}");
        }
        let single = server.admin(protocol).await.get("/livez/etcd").await.expect("an answer");
        assert_eq!((single.status, single.body.as_str()), (200, "ok"), "{protocol:?}");
        let version = server.get(protocol, "/version").await;
        assert!(version.body.contains("\"gitVersion\": \"v1.36.4+concord-"), "{}", version.body);
        assert_eq!(server.get(protocol, "/apis").await.status, 403, "nobody knows who is asking");
    }
}

#[tokio::test]
async fn a_second_server_in_the_same_directory_is_told_who_is_there() {
    let data = tempdir().expect("a directory");
    let server = Program::start(data.path()).await;
    server.ready(200).await;
    let second = refused(data.path(), &[]).await;
    assert!(second.stderr.contains(&format!("process {}", server.pid())), "{}", second.stderr);
    assert_eq!(server.get(Protocol::Http1, "/livez").await.status, 200, "the first one goes on");
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let (data, other) = (tempdir().expect("a directory"), tempdir().expect("a directory"));
    let server = Program::start(data.path()).await;
    let port = format!("--secure-port={}", server.address.port());
    let mut arguments = vec!["serve", "--bind-address=127.0.0.1", &port, "--data-dir"];
    arguments.push(other.path().to_str().expect("text"));
    let second = run(&arguments).await;
    assert!(!second.status.success());
    assert!(second.stderr.contains(&server.address.to_string()), "{}", second.stderr);
}

#[tokio::test]
async fn both_signals_end_the_server_in_order() {
    let data = tempdir().expect("a directory");
    for signal in ["TERM", "INT"] {
        let server = Program::start(data.path()).await;
        server.signal(signal);
        let ended = server.ended().await;
        assert_eq!(ended.status.code(), Some(0), "after {signal}: {}", ended.stderr);
        assert!(ended.stderr.contains(&format!("SIG{signal}")), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn readiness_fails_first_and_a_second_signal_does_not_wait() {
    let data = tempdir().expect("a directory");
    let delay = format!("--shutdown-delay-duration={}s", 10 * SOON.as_secs());
    let server = Program::start_with(data.path(), &[&delay]).await;
    server.ready(200).await;
    server.signal("TERM");
    let answer = server.ready(500).await;
    assert!(answer.body.contains("[-]shutdown failed"), "{}", answer.body);
    assert_eq!(server.get(Protocol::Http2, "/livez").await.status, 200);
    server.signal("TERM");
    assert_eq!(server.ended().await.status.code(), Some(1));
}

#[tokio::test]
async fn a_restart_keeps_the_certificate() {
    let data = tempdir().expect("a directory");
    let files = ["ca.crt", "ca.key", "apiserver.crt", "apiserver.key"];
    let read = || files.map(|name| fs::read(data.path().join("pki").join(name)).expect("the file is there"));
    let server = Program::start(data.path()).await;
    let before = read();
    server.signal("TERM");
    server.ended().await;
    let server = Program::start(data.path()).await;
    assert_eq!(read(), before);
    server.ready(200).await;
    assert_eq!(server.get(Protocol::Http1, "/livez").await.status, 200);
}

#[tokio::test]
async fn a_killed_server_starts_again() {
    let data = tempdir().expect("a directory");
    for _ in 0..3 {
        let server = Program::start(data.path()).await;
        server.ready(200).await;
        server.signal("KILL");
        assert_eq!(server.ended().await.status.signal(), Some(9));
    }
    Program::start(data.path()).await.ready(200).await;
}

#[tokio::test]
async fn the_log_is_json_when_asked() {
    let data = tempdir().expect("a directory");
    let server = Program::start_with(data.path(), &["--logging-format=json"]).await;
    server.signal("TERM");
    let log = server.ended().await.stderr;
    assert!(log.lines().count() >= 2, "{log}");
    assert!(log.lines().all(|line| line.starts_with('{') && line.contains(r#""level":"INFO""#)), "{log}");
}

#[tokio::test]
async fn an_etcd_that_is_not_there_shows_in_health_not_in_a_crash() {
    let data = tempdir().expect("a directory");
    // Port 9 is for discarding, and nothing here listens on it.
    let server = Program::start_with(data.path(), &["--etcd-servers=http://127.0.0.1:9"]).await;
    let answer = server.ready(500).await;
    assert!(answer.body.contains("[-]etcd failed: reason withheld\n"), "{}", answer.body);
    assert!(answer.body.contains("[-]informer-sync failed: reason withheld\n"), "{}", answer.body);
    server.signal("TERM");
    assert_eq!(server.ended().await.status.code(), Some(0));
}

#[tokio::test]
async fn etcd_flags_that_cannot_work_are_explained() {
    let data = tempdir().expect("a directory");
    for (flag, complaint) in [
        ("--etcd-servers=https://127.0.0.1:2379", "--etcd-cafile"),
        ("--etcd-servers=not a url", "etcd flags"),
    ] {
        let ended = refused(data.path(), &[flag]).await;
        assert!(ended.stderr.contains(complaint), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn without_a_home_the_data_directory_is_asked_for() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_concord"));
    let output = command.arg("serve").env_clear().output().expect("it runs");
    assert!(String::from_utf8_lossy(&output.stderr).contains("--data-dir"));
}

#[tokio::test]
async fn metrics_tell_what_is_stored_and_which_features_there_are() {
    let data = tempdir().expect("a directory");
    let server = Program::start(data.path()).await;
    server.ready(200).await;
    let mut admin = server.admin(Protocol::Http2).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let created = admin.exchange(http::Method::POST, maps, &[], r#"{"metadata":{"name":"counted"}}"#.into());
    assert_eq!(created.await.expect("an answer").status, 201);
    let metrics = admin.get("/metrics").await.expect("metrics").body;
    for line in [
        "apiserver_storage_objects{resource=\"configmaps\"} ",
        "apiserver_resource_objects{group=\"apps\",resource=\"deployments\"} 0\n",
        "apiserver_storage_size_bytes{storage_cluster_id=\"etcd-0\"} ",
        "etcd_request_duration_seconds_count{group=\"\",operation=\"create\",resource=\"configmaps\"} ",
        "apiserver_authorization_decisions_total{decision=\"allowed\",name=\"rbac\",type=\"RBAC\"} ",
        "apiserver_flowcontrol_current_limit_seats{priority_level=\"catch-all\"} ",
        "apiserver_flowcontrol_upper_limit_seats{priority_level=\"catch-all\"} ",
        "workqueue_adds_total{name=\"serviceaccount\"} ",
        "kubernetes_feature_enabled{name=\"StorageVersionAPI\",stage=\"ALPHA\"} 1\n",
    ] {
        assert!(metrics.contains(line), "{line} is missing in\n{metrics}");
    }
}

/// Where there is no file to look at, the store is asked.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_tell_how_large_etcd_is() {
    const SIZE: &str = "apiserver_storage_size_bytes{storage_cluster_id=\"etcd-0\"} ";
    let etcd = Cluster::single().await.expect("an etcd");
    let data = tempdir().expect("a directory");
    let servers = format!("--etcd-servers={}", etcd.endpoints().join(","));
    let server = Program::start_with(data.path(), &[&servers]).await;
    server.ready(200).await;
    let mut admin = server.admin(Protocol::Http2).await;
    let told = async {
        loop {
            let metrics = admin.get("/metrics").await.expect("metrics").body;
            let size = metrics.lines().find_map(|line| line.strip_prefix(SIZE)).expect("a line");
            // A new etcd is of some pages; before it has answered there is nothing to say.
            if size.parse::<f64>().expect("a number") >= 4096.0 {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, told).await.expect("it is told");
}
