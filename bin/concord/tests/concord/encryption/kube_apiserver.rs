//! Beside a kube-apiserver with the same file, on the same etcd: each reads what the other one wrote.
//!
//! `CONCORD_KUBE_APISERVER` names the binary; without it there is nothing to compare with. It needs a younger etcd than the
//! oldest that we take: `CONCORD_ETCD`.

use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    time::Instant,
};

use concord_testing::{etcd::Cluster, kms::KmsPlugin};
use kube::{
    Api, Client, Config,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams},
    config::AuthInfo,
};
use serde_json::json;
use tempfile::tempdir;

use super::{EncryptionFile, etcd_store, kept};
use crate::support::{Program, SOON, client};

/// A running kube-apiserver, killed when dropped.
struct Upstream(Child);

impl Drop for Upstream {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Starts it with the keys of a server of ours, and waits until it is ready.
async fn upstream(binary: &str, etcd: &Cluster, file: &EncryptionFile, keys: &Path) -> (Upstream, Client) {
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
    let home = keys.join("upstream");
    fs::create_dir(&home).expect("made");
    fs::write(home.join("tokens.csv"), "canary,admin,admin,system:masters\n").expect("written");
    let pki = keys.join("pki");
    let log = fs::File::create(home.join("log")).expect("made");
    let child = Command::new(binary)
        .arg(format!("--etcd-servers={}", etcd.endpoints()[0]))
        .arg(file.flag())
        .args(["--bind-address=127.0.0.1", "--advertise-address=192.0.2.1", "--authorization-mode=RBAC"])
        .args(["--service-cluster-ip-range=10.96.0.0/16", "--service-account-issuer=https://a.example.com"])
        .arg(format!("--secure-port={port}"))
        .arg(format!("--cert-dir={}", home.display()))
        .arg(format!("--token-auth-file={}", home.join("tokens.csv").display()))
        .arg(format!("--service-account-key-file={}", pki.join("sa.pub").display()))
        .arg(format!("--service-account-signing-key-file={}", pki.join("sa.key").display()))
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("started");
    let mut child = Upstream(child);
    let mut config = Config::new(format!("https://127.0.0.1:{port}").parse().expect("an address"));
    config.accept_invalid_certs = true;
    config.auth_info = AuthInfo { token: Some("canary".to_owned().into()), ..AuthInfo::default() };
    let client = Client::try_from(config).expect("a client");
    let begin = Instant::now();
    loop {
        let ready = http::Request::get("/readyz").body(Vec::new()).expect("a request");
        if client.request_text(ready).await.is_ok() {
            return (child, client);
        }
        let log = || fs::read_to_string(home.join("log")).unwrap_or_default();
        let has_ended = child.0.try_wait().is_ok_and(|ended| ended.is_some());
        assert!(!has_ended && begin.elapsed() < SOON * 2, "not in time: {}", log());
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

/// Every way to store something, and a kind that is stored so.
fn providers(plugin: &KmsPlugin) -> Vec<(&'static str, &'static str, String, &'static str)> {
    let kms =
        format!("{{kms: {{apiVersion: v2, name: vault, endpoint: '{}', timeout: 5s}}}}", plugin.endpoint());
    let of = |kind: &str| format!("{{{kind}: {{keys: [<key1>]}}}}");
    vec![
        ("secrets", "Secret", of("aescbc"), "k8s:enc:aescbc:v1:key1:"),
        ("configmaps", "ConfigMap", of("aesgcm"), "k8s:enc:aesgcm:v1:key1:"),
        ("limitranges", "LimitRange", of("secretbox"), "k8s:enc:secretbox:v1:key1:"),
        ("resourcequotas", "ResourceQuota", kms, "k8s:enc:kms:v2:vault:"),
    ]
}

async fn create(client: &Client, kind: &str, name: &str) {
    let object = json!({"apiVersion": "v1", "kind": kind,
        "metadata": {"name": name, "annotations": {"word": "the same"}}});
    let object: DynamicObject = serde_json::from_value(object).expect("an object");
    api(client, kind).create(&PostParams::default(), &object).await.expect("created");
}

fn api(client: &Client, kind: &str) -> Api<DynamicObject> {
    Api::default_namespaced_with(
        client.clone(),
        &ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind)),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_reads_what_the_other_one_encrypted() {
    let Ok(binary) = std::env::var("CONCORD_KUBE_APISERVER") else {
        eprintln!("skipped: CONCORD_KUBE_APISERVER names no kube-apiserver");
        return;
    };
    let plugin = KmsPlugin::start("key-1").expect("a service");
    let all = providers(&plugin);
    let rule = |(resource, _, provider, _): &(&str, &str, String, &str)| {
        format!("[{resource}]\n  providers: [{provider}, {{identity: {{}}}}]\n- resources: ")
    };
    let rules: String = all.iter().map(rule).collect();
    // What is left of the last one is about something that is kept as it is.
    let file = EncryptionFile::new(&format!("{rules}[leases.coordination.k8s.io]"), "[{identity: {}}]");
    let (etcd, data) = (Cluster::single().await.expect("an etcd"), tempdir().expect("a directory"));
    // By itself each would take the name of the machine for its own.
    let flags =
        [format!("--etcd-servers={}", etcd.endpoints()[0]), file.flag(), "--server-id=ours".to_owned()];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let server = Program::start_with(data.path(), &flags).await;
    server.ready(200).await;
    let ours = client(data.path()).await;
    let (_upstream, theirs) = upstream(&binary, &etcd, &file, data.path()).await;
    let store = etcd_store(&etcd).await;
    for (resource, kind, _, seal) in &all {
        create(&ours, kind, "ours").await;
        create(&theirs, kind, "theirs").await;
        for (name, reader) in [("ours", &theirs), ("theirs", &ours)] {
            let value = kept(&store, &format!("/registry/{resource}/default/{name}")).await;
            assert!(value.starts_with(seal.as_bytes()), "{kind} {name}");
            let read =
                api(reader, kind).get(name).await.unwrap_or_else(|error| panic!("{kind} {name}: {error}"));
            assert_eq!(read.metadata.annotations.expect("annotations")["word"], "the same", "{kind} {name}");
        }
    }
    store.shutdown().await;
}
