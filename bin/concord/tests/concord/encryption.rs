//! Encryption at rest, as operators meet it: what is in the store, and what a changed file does.

mod kube_apiserver;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use bytes::Bytes;
use concord_server::test_client::Protocol;
use concord_store::{Scan, Store};
use concord_store_embedded::{EmbeddedStore, Options};
use concord_store_etcd::{Config, EtcdStore};
use concord_testing::etcd::Cluster;
use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tempfile::{TempDir, tempdir};

use crate::support::{CANARY, CANARY_ENCODED, Program, SOON, client, refused, send};

const KEY: &str = "/registry/secrets/default/hidden";
const PLAIN: &str = CANARY;

/// A file with these providers for Secrets.
pub(crate) struct EncryptionFile {
    directory: TempDir,
}

impl EncryptionFile {
    pub(crate) fn new(resources: &str, providers: &str) -> Self {
        let file = Self { directory: tempdir().expect("a directory") };
        file.replace(resources, providers);
        file
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("encryption.yaml")
    }

    pub(crate) fn flag(&self) -> String {
        format!("--encryption-provider-config={}", self.path().display())
    }

    /// Replaces the file as a careful operator does: nobody sees half of it.
    pub(crate) fn replace(&self, resources: &str, providers: &str) {
        let secrets = [
            ("<key1>", "{name: key1, secret: MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=}"),
            // Another key of the same name.
            ("<key1b>", "{name: key1, secret: MzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM=}"),
            ("<key2>", "{name: key2, secret: MjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjI=}"),
        ];
        let text = format!(
            "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n\
             - resources: {resources}\n  providers: {providers}\n"
        );
        let text = secrets.iter().fold(text, |text, (name, key)| text.replace(name, key));
        let new = self.directory.path().join("new");
        fs::write(&new, text).expect("written");
        fs::rename(&new, self.path()).expect("replaced");
    }
}

const RELOAD: &str = "--encryption-provider-config-automatic-reload";

async fn kept(store: &dyn Store, key: &str) -> Bytes {
    let page = store.scan(Scan::key(key.to_owned())).await.expect("a page");
    page.entries.first().map(|entry| entry.value.clone()).expect("it is there")
}

/// What an embedded store keeps under a key, after its server has ended.
async fn kept_in_file(data: &Path, key: &str) -> Bytes {
    let store = EmbeddedStore::open(&Options::new(data.join("store.db"))).expect("a store");
    let value = kept(&store, key).await;
    store.close().await;
    value
}

pub(crate) async fn etcd_store(etcd: &Cluster) -> EtcdStore {
    let config = Config { prefix: "/registry/".into(), ..Config::new(etcd.endpoints().iter().cloned()) };
    EtcdStore::open(config).await.expect("a store")
}

fn secret(name: &str) -> Secret {
    let secret = json!({"metadata": {"name": name}, "stringData": {"word": PLAIN}});
    serde_json::from_value(secret).expect("a secret")
}

async fn create(client: &Client, name: &str) -> Secret {
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    secrets.create(&PostParams::default(), &secret(name)).await.expect("created")
}

/// A patch that changes nothing.
async fn touch(client: &Client, name: &str) -> Secret {
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    secrets.patch(name, &PatchParams::default(), &Patch::Merge(json!({}))).await.expect("patched")
}

/// Waits until a change of the file is in force.
pub(crate) async fn reloads(server: &Program, status: &str, count: usize) {
    let begin = Instant::now();
    let mut admin = server.admin(Protocol::Http2).await;
    loop {
        let metrics = admin.get("/metrics").await.expect("an answer").body;
        let of_status = |line: &&str| {
            line.starts_with("apiserver_encryption_config_controller_automatic_reloads_total{")
                && line.contains(&format!("status=\"{status}\""))
        };
        if metrics.lines().filter(of_status).any(|line| line.ends_with(&format!(" {count}"))) {
            return;
        }
        assert!(begin.elapsed() < SOON, "not in time: {count} reloads with {status}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_not_plain_in_the_file_and_survive_a_restart() {
    let data = tempdir().expect("a directory");
    let file = EncryptionFile::new("[secrets]", "[{secretbox: {keys: [<key1>]}}, {identity: {}}]");
    let flag = file.flag();
    for round in 0..2 {
        let server = Program::start_with(data.path(), &[&flag]).await;
        server.ready(200).await;
        let client = client(data.path()).await;
        let secrets: Api<Secret> = Api::default_namespaced(client.clone());
        if round == 0 {
            create(&client, "hidden").await;
            let configs: Api<ConfigMap> = Api::default_namespaced(client.clone());
            let config = json!({"metadata": {"name": "shown"}, "data": {"word": "seen by everybody"}});
            let config = serde_json::from_value(config).expect("a ConfigMap");
            configs.create(&PostParams::default(), &config).await.expect("created");
        }
        let read = secrets.get("hidden").await.expect("readable").data.expect("data");
        assert_eq!(read["word"].0, PLAIN.as_bytes());
        server.signal("TERM");
        server.ended().await;
    }
    let value = kept_in_file(data.path(), KEY).await;
    assert!(value.starts_with(b"k8s:enc:secretbox:v1:key1:"), "{value:?}");
    let bytes = fs::read(data.path().join("store.db")).expect("the file");
    let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(!holds(PLAIN) && !holds(CANARY_ENCODED), "a Secret is plain in the file");
    assert!(holds("seen by everybody"), "what is not encrypted can be found this way");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_rotated_without_a_restart() {
    let (etcd, data) = (Cluster::single().await.expect("an etcd"), tempdir().expect("a directory"));
    let file = EncryptionFile::new("[secrets]", "[{aescbc: {keys: [<key1>]}}, {identity: {}}]");
    let flags = [format!("--etcd-servers={}", etcd.endpoints()[0]), file.flag(), RELOAD.to_owned()];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let server = Program::start_with(data.path(), &flags).await;
    server.ready(200).await;
    let (client, store) = (client(data.path()).await, etcd_store(&etcd).await);
    let first = create(&client, "hidden").await;
    assert!(kept(&store, KEY).await.starts_with(b"k8s:enc:aescbc:v1:key1:"));
    let same = touch(&client, "hidden").await;
    assert_eq!(same.metadata.resource_version, first.metadata.resource_version, "nothing to write");

    file.replace("[secrets]", "[{aescbc: {keys: [<key2>, <key1>]}}, {identity: {}}]");
    reloads(&server, "success", 1).await;
    assert!(kept(&store, KEY).await.starts_with(b"k8s:enc:aescbc:v1:key1:"), "nobody has written it");
    let moved = touch(&client, "hidden").await;
    assert!(kept(&store, KEY).await.starts_with(b"k8s:enc:aescbc:v1:key2:"));
    assert_ne!(moved.metadata.resource_version, first.metadata.resource_version);
    assert_eq!(moved.data, first.data);
    let same = touch(&client, "hidden").await;
    assert_eq!(same.metadata.resource_version, moved.metadata.resource_version, "written once");

    a_bad_file_changes_nothing(&server, &file, &client).await;
    store.shutdown().await;
}

/// A file as a volume of Kubernetes has it: a link to a link, which is what is replaced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_behind_links_is_read_again_and_a_good_one_follows_a_bad_one() {
    let (data, volume) = (tempdir().expect("a directory"), tempdir().expect("a directory"));
    let put = |round: usize, providers: &str| {
        let version = volume.path().join(format!("..version-{round}"));
        fs::create_dir(&version).expect("made");
        let from = EncryptionFile::new("[secrets]", providers);
        fs::copy(from.path(), version.join("encryption.yaml")).expect("copied");
        let link = volume.path().join("..new");
        std::os::unix::fs::symlink(&version, &link).expect("linked");
        fs::rename(&link, volume.path().join("..data")).expect("replaced");
    };
    put(0, "[{aescbc: {keys: [<key1>]}}, {identity: {}}]");
    let path = volume.path().join("encryption.yaml");
    std::os::unix::fs::symlink("..data/encryption.yaml", &path).expect("linked");
    let flag = format!("--encryption-provider-config={}", path.display());
    let server = Program::start_with(data.path(), &[&flag, RELOAD]).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    create(&client, "hidden").await;
    put(1, "[{aescbc: {keys: [<key2>, <key1>]}}, {identity: {}}]");
    reloads(&server, "success", 1).await;
    create(&client, "second").await;
    put(2, "[{aescbc: {keys: ]");
    reloads(&server, "failure", 1).await;
    create(&client, "third").await;
    put(3, "[{secretbox: {keys: [<key1>]}}, {aescbc: {keys: [<key2>, <key1>]}}]");
    reloads(&server, "success", 2).await;
    touch(&client, "hidden").await;
    server.signal("TERM");
    server.ended().await;
    for (name, seal) in
        [("hidden", "secretbox:v1:key1"), ("second", "aescbc:v1:key2"), ("third", "aescbc:v1:key2")]
    {
        let value = kept_in_file(data.path(), &format!("/registry/secrets/default/{name}")).await;
        assert!(value.starts_with(format!("k8s:enc:{seal}:").as_bytes()), "{name}: {value:?}");
    }
}

async fn a_bad_file_changes_nothing(server: &Program, file: &EncryptionFile, client: &Client) {
    file.replace("[secrets]", "[{aescbc: {keys: [{name: key3, secret: short}]}}]");
    reloads(server, "failure", 1).await;
    create(client, "meanwhile").await;
    touch(client, "hidden").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_decrypted_is_refused_as_upstream_does_and_comes_back_with_its_key() {
    let data = tempdir().expect("a directory");
    let file = EncryptionFile::new("[secrets]", "[{aescbc: {keys: [<key1>]}}, {identity: {}}]");
    let (flag, path) = (file.flag(), "/api/v1/namespaces/default/secrets/hidden");
    {
        let server = Program::start_with(data.path(), &[&flag]).await;
        server.ready(200).await;
        create(&client(data.path()).await, "hidden").await;
        server.signal("TERM");
        server.ended().await;
    }
    file.replace("[secrets]", "[{aescbc: {keys: [<key2>]}}, {identity: {}}]");
    let server = Program::start_with(data.path(), &[&flag, RELOAD]).await;
    server.ready(200).await;
    let mut admin = server.admin(Protocol::Http2).await;
    let (status, answer, _) = send(&mut admin, Method::GET, path, &json!(null)).await;
    let why = "no matching key was found for the provided AES transformer";
    assert_eq!((status, &answer["reason"]), (500, &json!("InternalError")));
    assert_eq!(answer["message"], format!("Internal error occurred: {why}"));
    assert_eq!(answer["details"], json!({"causes": [{"message": why}]}));
    let others = json!({"metadata": {"name": "other"}, "stringData": {"a": "b"}});
    let (status, ..) = send(&mut admin, Method::POST, "/api/v1/namespaces/default/secrets", &others).await;
    assert_eq!(status, 201, "other objects are fine");
    let other = "/api/v1/namespaces/default/secrets/other";
    assert_eq!(send(&mut admin, Method::GET, other, &json!(null)).await.0, 200);
    // A list is all of them or none: a shorter one would be taken for the truth.
    for (list, expected) in [("/api/v1/secrets", 500), ("/api/v1/configmaps", 200)] {
        let (status, answer, _) = send(&mut admin, Method::GET, list, &json!(null)).await;
        assert_eq!(status, expected, "{list}: {answer}");
        assert!(
            status == 200 || answer["message"].as_str().is_some_and(|said| said.contains(why)),
            "{answer}"
        );
    }

    file.replace("[secrets]", "[{aescbc: {keys: [<key2>, <key1>]}}, {identity: {}}]");
    reloads(&server, "success", 1).await;
    let begin = Instant::now();
    while send(&mut admin, Method::GET, path, &json!(null)).await.0 != 200 {
        assert!(begin.elapsed() < SOON, "not in time: the Secret can be read again");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_used_keeps_the_server_from_starting() {
    let data = tempdir().expect("a directory");
    let file = EncryptionFile::new("[secrets]", "[{aescbc: {keys: [{name: key1, secret: c2hvcnQ=}]}}]");
    let ended = refused(data.path(), &[&file.flag()]).await;
    assert!(ended.stderr.contains("--encryption-provider-config"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("c2hvcnQ="), "a secret was printed");
}
