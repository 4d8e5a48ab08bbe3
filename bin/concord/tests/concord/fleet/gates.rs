//! With the features off, and a server that cannot register everything.

use bytes::Bytes;
use concord_server::test_client::Protocol;
use concord_store::{Store as _, Txn};
use http::Method;
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Secret},
};
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{
    migrate, migrations, succeeds,
    world::{World, said, storage_versions, until, until_refused, until_said},
};
use crate::support::{Program, client, refused, send};

const UPDATER: &str = "poststarthook/built-in-resources-storage-version-updater";
const KEEPER: &str = "poststarthook/start-kube-apiserver-identity-lease-controller";

async fn config_map(client: &Client, name: &str) -> Result<ConfigMap, kube::Error> {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.to_owned());
    Api::namespaced(client.clone(), "default").create(&PostParams::default(), &object).await
}

async fn identities(client: &Client) -> usize {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    let label = ListParams::default().labels("apiserver.kubernetes.io/identity");
    leases.list(&label).await.expect("a list").items.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_features_there_is_nothing_of_them() {
    let data = tempdir().expect("a directory");
    let ended = refused(data.path(), &["--feature-gates=APIServerIdentity=false"]).await;
    let error =
        "StorageVersionAPI is enabled, but depends on features that are disabled: [APIServerIdentity]";
    assert!(ended.stderr.contains(error), "{}", ended.stderr);
    let no_versions = "--feature-gates=StorageVersionAPI=false";
    let no_identity = "--feature-gates=StorageVersionAPI=false,APIServerIdentity=false,UnknownVersionInteroperabilityProxy=false";
    for (gates, leases) in [(no_versions, 1), (no_identity, 0)] {
        let server = Program::start_with(data.path(), &[gates]).await;
        let checks = server.ready(200).await.body;
        assert!(!checks.contains(UPDATER), "{checks}");
        assert_eq!(checks.contains(KEEPER), leases > 0, "{checks}");
        let client = client(data.path()).await;
        config_map(&client, &format!("with-{leases}")).await.expect("written");
        assert_eq!(identities(&client).await, leases);
        let missing = storage_versions(&client).get("core.pods").await.expect_err("not served");
        assert!(matches!(&missing, kube::Error::Api(status) if status.code == 404), "{missing}");
        server.signal("TERM");
        server.ended().await;
    }
}

/// Waits until a server leads: it is the one that migrates.
async fn until_leads(client: &Client, id: &str) {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    until("a leader", || async {
        let holder = leases.get("concord-controllers").await.ok()?.spec?.holder_identity?;
        holder.starts_with(&format!("{id}_")).then_some(())
    })
    .await;
}

/// Asks for a migration, and waits until it is said why it does not begin: the second server says nothing.
async fn migration_waits_for_the_silent(client: &Client, name: &str) {
    assert!(migrate(client, name, "", "configmaps").await);
    let silent = "servers have not said how they store the resource: s2";
    until("the reason why not", || async {
        let migration = migrations(client).get(name).await.ok()?;
        migration.data["status"].to_string().contains(silent).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_migrated_while_a_server_says_nothing() {
    let mut world = World::new().await;
    world.start(0, &[]).await;
    world.ready(0).await;
    let first = world.client(0).await;
    until_leads(&first, "s1").await;
    // It said something once, and then the feature is turned off.
    world.start(1, &[]).await;
    until_said(&first, "core.configmaps", "s1=v1,s2=v1 -> v1").await;
    world.stop(1, "KILL").await;
    let silent = ["--feature-gates=StorageVersionAPI=false"];
    world.start(1, &silent).await;
    world.ready(1).await;
    let second = world.client(1).await;
    config_map(&second, "s2").await.expect("it writes");
    migration_waits_for_the_silent(&first, "led-by-who-speaks").await;
    world.stop(1, "TERM").await;
    succeeds(&first, "led-by-who-speaks").await;
    until_said(&first, "core.configmaps", "s1=v1 -> v1").await;
    // Now it is the silent one that migrates.
    world.start(1, &silent).await;
    world.ready(1).await;
    world.stop(0, "TERM").await;
    let second = world.client(1).await;
    until_leads(&second, "s2").await;
    world.start(0, &[]).await;
    world.ready(0).await;
    migration_waits_for_the_silent(&second, "led-by-who-is-silent").await;
    world.stop(0, "TERM").await;
    succeeds(&second, "led-by-who-is-silent").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_cannot_register_everything_serves_what_it_can() {
    let mut world = World::new().await;
    let store = world.store().await;
    let key = "/registry/storageversions/core.configmaps";
    store.transact(Txn::new().put(key, "\0nothing")).await.expect("stored");
    world.start(0, &[]).await;
    let client = world.client(0).await;
    until_said(&client, "core.secrets", "s1=v1 -> v1").await;
    let mut secret = Secret::default();
    secret.metadata.name = Some("s".to_owned());
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    until("a resource that is registered", || async {
        secrets.create(&PostParams::default(), &secret).await.ok()
    })
    .await;
    let text = "wait for storage version registration to complete for resource: configmaps, \
        last seen error: the stored StorageVersion cannot be read";
    let (path, object) =
        ("/api/v1/namespaces/default/configmaps", json!({"metadata": {"generateName": "c"}}));
    // The first thing that is said may be that nobody has tried yet.
    until("the reason why not", || async {
        (until_refused(world.program(0), path, &object).await == text).then_some(())
    })
    .await;
    not_ready(&world).await;
    assert_eq!(said(&client, "core.configmaps").await, "");
    let page = store
        .scan(concord_store::Scan::new(concord_store::KeyRange::prefix("/registry/configmaps/default/"), 10));
    assert!(page.await.expect("a page").entries.is_empty(), "nothing is stored of what was refused");
    store.transact(Txn::new().delete(key)).await.expect("deleted");
    world.ready(0).await;
    config_map(&client, "c").await.expect("written");
    // Once it was ready, it stays ready; the gate decides then.
    store.transact(Txn::new().put(key, "\0nothing")).await.expect("stored");
    assert_eq!(until_refused(world.program(0), path, &object).await, text);
    assert_eq!(world.program(0).get(Protocol::Http2, "/readyz").await.status, 200);
    store.transact(Txn::new().delete(key)).await.expect("deleted");
    store.shutdown().await;
}

/// The check is red on all endpoints, and can be left out.
async fn not_ready(world: &World) {
    let mut admin = world.program(0).admin(Protocol::Http2).await;
    for endpoint in ["/readyz", "/livez", "/healthz"] {
        let answer = admin.get(&format!("{endpoint}?verbose")).await.expect("an answer");
        let failed = format!("[-]{UPDATER} failed: reason withheld");
        assert!(answer.status == 500 && answer.body.contains(&failed), "{endpoint}: {}", answer.body);
        let one = admin.get(&format!("{endpoint}/{UPDATER}")).await.expect("an answer");
        assert_eq!(one.status, 500, "{endpoint}");
    }
    let excluded = format!("/livez?exclude={UPDATER}");
    until("everything else", || async {
        let mut admin = world.program(0).admin(Protocol::Http2).await;
        let answer = admin.get(&excluded).await.expect("an answer");
        (answer.status == 200).then_some(())
    })
    .await;
    // What is only tried is refused as well, in any form.
    let dry = "/api/v1/namespaces/default/configmaps?dryRun=All";
    let (status, body, _) = send(&mut admin, Method::POST, dry, &json!({})).await;
    assert_eq!((status, &body["reason"]), (503, &Value::from("ServiceUnavailable")));
    let list = admin.exchange(Method::GET, "/api/v1/configmaps", &[], Bytes::new()).await.expect("an answer");
    assert_eq!(list.status, 200, "reads are served");
}
