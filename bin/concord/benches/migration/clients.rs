//! What clients do, and what they feel.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use concord_server::test_client::Protocol;
use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams, WatchEvent, WatchParams},
};
use rand::RngExt as _;
use serde_json::json;

use crate::{SIZE, support::Program};

/// How many objects are made at once.
const AT_ONCE: usize = 16;

/// Between two gets of one client.
const PACE: Duration = Duration::from_millis(5);

fn name(number: usize) -> String {
    format!("map-{number:06}")
}

pub(crate) async fn create(client: &Client, count: usize) {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let create = |number: usize| {
        let maps = maps.clone();
        async move {
            let map = json!({"metadata": {"name": name(number)}, "data": {"word": "x".repeat(SIZE)}});
            let map = serde_json::from_value(map).expect("a ConfigMap");
            maps.create(&PostParams::default(), &map).await.expect("created");
        }
    };
    stream::iter(0..count).for_each_concurrent(AT_ONCE, create).await;
}

/// How long a migration takes, from asking for it until it has succeeded.
pub(crate) async fn migrate(client: &Client, name: &str, resource: &str) -> Duration {
    let kind = GroupVersionKind::gvk("storagemigration.k8s.io", "v1beta1", "StorageVersionMigration");
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let new = json!({"apiVersion": "storagemigration.k8s.io/v1beta1", "kind": "StorageVersionMigration",
        "metadata": {"name": name}, "spec": {"resource": {"group": "", "resource": resource}}});
    let begin = Instant::now();
    let new = serde_json::from_value(new).expect("an object");
    all.create(&PostParams::default(), &new).await.expect("created");
    // Nobody asks for it again and again: that would be what the gets beside it wait for.
    let only = WatchParams::default().fields(&format!("metadata.name={name}"));
    let mut changes = all.watch(&only, "0").await.expect("a watch").boxed();
    loop {
        let (WatchEvent::Added(migration) | WatchEvent::Modified(migration)) =
            changes.next().await.expect("it has not ended").expect("a change")
        else {
            continue;
        };
        let conditions = migration.data["status"]["conditions"].as_array().into_iter().flatten();
        let mut ends = conditions.filter(|known| known["type"] != "Running" && known["status"] == "True");
        if let Some(end) = ends.next() {
            assert_eq!(end["type"], "Succeeded", "{end}");
            return begin.elapsed();
        }
    }
}

pub(crate) async fn gets(client: &Client, count: usize, time: Duration) -> Vec<Duration> {
    let stop = Arc::new(AtomicBool::new(false));
    let gets = tokio::spawn(gets_until(client.clone(), count, stop.clone()));
    tokio::time::sleep(time).await;
    stop.store(true, Ordering::Relaxed);
    gets.await.expect("no panic")
}

/// What gets of any of the objects take, one after the other.
pub(crate) async fn gets_until(client: Client, count: usize, stop: Arc<AtomicBool>) -> Vec<Duration> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mut took = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let name = name(rand::rng().random_range(0..count));
        let begin = Instant::now();
        maps.get(&name).await.expect("there");
        took.push(begin.elapsed());
        tokio::time::sleep(PACE).await;
    }
    took
}

pub(crate) fn encrypt(file: &Path, providers: &str) {
    let key = "{aesgcm: {keys: [{name: key1, secret: MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=}]}}";
    let providers = providers.replace("<key>", key);
    let text = format!(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n\
         - resources: [configmaps]\n  providers: [{providers}]\n"
    );
    let new = file.with_extension("new");
    fs::write(&new, text).expect("written");
    fs::rename(&new, file).expect("replaced");
}

/// Waits until the file is in force that was written as the `times`th.
pub(crate) async fn reloaded(server: &Program, times: usize) {
    let mut admin = server.admin(Protocol::Http2).await;
    loop {
        let metrics = admin.get("/metrics").await.expect("an answer").body;
        let counted = "apiserver_encryption_config_controller_automatic_reloads_total{";
        let is_success = |line: &str| line.starts_with(counted) && line.contains("status=\"success\"");
        let count = metrics.lines().find(|line| is_success(line)).and_then(|line| line.rsplit_once(' '));
        if count.is_some_and(|(_, count)| count.parse().is_ok_and(|count: f64| count as usize >= times)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// In milliseconds.
pub(crate) fn percentile(took: &[Duration], percent: usize) -> f64 {
    let mut sorted = took.to_vec();
    sorted.sort_unstable();
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).map_or(f64::NAN, |took| took.as_secs_f64() * 1000.0)
}
