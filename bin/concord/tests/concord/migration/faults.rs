//! A server that is killed in the middle.

use std::path::Path;

use concord_store_embedded::{EmbeddedStore, Options};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use tempfile::tempdir;

use super::{ask, kept, migration, migrations, progress, succeeds, until};
use crate::{
    encryption::EncryptionFile,
    support::{Program, client},
};

const CONFIGS: &str = "/registry/configmaps/default/";

async fn create(client: &Client, count: usize) {
    let configs: Api<ConfigMap> = Api::default_namespaced(client.clone());
    for number in 0..count {
        let metadata = ObjectMeta { name: Some(format!("config-{number:03}")), ..ObjectMeta::default() };
        let data = Some([("word".to_owned(), number.to_string())].into());
        let config = ConfigMap { metadata, data, ..ConfigMap::default() };
        configs.create(&PostParams::default(), &config).await.expect("created");
    }
}

/// What is kept in the file of a server that has ended.
async fn in_file(data: &Path) -> Vec<(String, bytes::Bytes)> {
    let store = EmbeddedStore::open(&Options::new(data.join("store.db"))).expect("a store");
    let all = kept(&store, CONFIGS).await;
    store.close().await;
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_goes_on_after_its_server_was_killed() {
    let data = tempdir().expect("a directory");
    let file = EncryptionFile::new("[configmaps]", "[{identity: {}}, {aescbc: {keys: [<key1>]}}]");
    let flags = ["--storage-migration-delay=0s".to_owned(), file.flag()];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    {
        let server = Program::start_with(data.path(), &flags).await;
        server.ready(200).await;
        create(&client(data.path()).await, 120).await;
        server.signal("KILL");
        server.ended().await;
    }
    file.replace("[configmaps]", "[{aescbc: {keys: [<key1>]}}, {identity: {}}]");
    {
        let server = Program::start_with(data.path(), &flags).await;
        server.ready(200).await;
        let client = client(data.path()).await;
        let slow = migration("seal", "", "configmaps", &[("max-requests-per-second", "40")]);
        migrations(&client).create(&PostParams::default(), &slow).await.expect("created");
        let begun = |migration: &kube::api::DynamicObject| progress(migration)["migrated"].as_u64() > Some(0);
        until(&client, "seal", "the first objects", begun).await;
        server.signal("KILL");
        server.ended().await;
    }
    let sealed = |all: &[(String, bytes::Bytes)]| {
        all.iter().filter(|(_, value)| value.starts_with(b"k8s:enc:")).count()
    };
    let half = in_file(data.path()).await;
    let written = sealed(&half);
    assert!(written > 0 && written < half.len(), "{written} of {}: it was not in the middle", half.len());
    let server = Program::start_with(data.path(), &flags).await;
    server.ready(200).await;
    let client = client(data.path()).await;
    let ended = succeeds(&client, "seal").await;
    let configs: Api<ConfigMap> = Api::default_namespaced(client.clone());
    assert_eq!(configs.get("config-007").await.expect("readable").data.expect("data")["word"], "7");
    // Nothing is left of it.
    ask(&client, "again", "", "configmaps").await;
    let again = succeeds(&client, "again").await;
    assert_eq!(progress(&again)["migrated"], 0);
    server.signal("TERM");
    server.ended().await;
    let all = in_file(data.path()).await;
    assert_eq!((sealed(&all), all.len()), (half.len(), half.len()));
    // Nobody wrote again what was written before: the bytes are the same, and no two encryptions are.
    for (name, value) in half.iter().filter(|(_, value)| value.starts_with(b"k8s:enc:")) {
        assert!(all.contains(&(name.clone(), value.clone())), "{name} was written twice");
    }
    assert_eq!(progress(&ended)["failed"], 0);
}
