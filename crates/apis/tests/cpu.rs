//! What creating a Deployment costs beside a ConfigMap.

use std::{fs, sync::Arc, time::Duration};

use concord_apis::{RuntimeConfig, Settings, api_set};
use concord_endpoints::Apis;
use concord_registry::Registry;
use concord_replica::{Config, Replica};
use concord_server::{Handler as _, full};
use concord_store_embedded::{EmbeddedStore, Options};
use http::Request;
use serde_json::{Value, json};

/// The time that all threads of this process had a processor for, in hundredths of a second; `None` where the system does
/// not say.
fn processor() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut times = fields.split(' ').skip(11).map_while(|time| time.parse::<u64>().ok());
    Some(times.next()? + times.next()?)
}

/// An object whose size in the store is about the same for both kinds.
fn body(kind: &str, name: &str) -> (&'static str, Value) {
    let labels = json!({"app": "a"});
    let deployment = || {
        let container = json!({"name": "a", "image": "b:1", "ports": [{"containerPort": 80}]});
        json!({
            "metadata": {"name": name},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        })
    };
    match kind {
        "Deployment" => ("/apis/apps/v1/namespaces/default/deployments", deployment()),
        _ => (
            "/api/v1/namespaces/default/configmaps",
            json!({"metadata": {"name": name}, "data": {"a": "b".repeat(600)}}),
        ),
    }
}

async fn apis() -> (Apis, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = EmbeddedStore::open(&Options::new(directory.path().join("db")));
    let store = Arc::new(store.expect("a store"));
    let replica = Arc::new(Replica::start(store.clone(), Config::default(), Vec::new()));
    replica.consistent(Duration::from_secs(30)).await.expect("loads");
    let registry = Arc::new(Registry::new(store, replica, Vec::new()));
    let runtime_config = RuntimeConfig::parse(&[""; 0]).expect("valid");
    let set = api_set(&Settings { runtime_config, ..Settings::default() });
    (Apis::new(registry, set, concord_endpoints::Settings::default()), directory)
}

#[tokio::test]
#[expect(clippy::print_stdout, reason = "what was measured, and that nothing was")]
async fn a_deployment_costs_at_most_twice_what_a_config_map_does() {
    // Another build would tell nothing, and take long.
    let (rounds, each) = if cfg!(debug_assertions) { (1, 20) } else { (5, 2000) };
    let (apis, _directory) = apis().await;
    let mut spent = [("ConfigMap", 0), ("Deployment", 0)];
    for round in 0..rounds {
        for (kind, sum) in &mut spent {
            let Some(before) = processor() else {
                println!("skipped: the system does not say how long the processor was used");
                return;
            };
            for index in 0..each {
                let (path, object) = body(kind, &format!("a-{round}-{index}"));
                let request = Request::builder().method("POST").uri(path);
                let answer = apis.handle(request.body(full(object.to_string())).expect("valid")).await;
                assert_eq!(answer.status(), 201, "{kind}");
            }
            *sum += processor().expect("told before") - before;
        }
    }
    let [(_, config_maps), (_, deployments)] = spent;
    let count = rounds * each;
    println!("{count} ConfigMaps: {config_maps}0 ms of CPU; as many Deployments: {deployments}0 ms");
    assert!(cfg!(debug_assertions) || deployments <= 2 * config_maps, "more than twice as much");
}
