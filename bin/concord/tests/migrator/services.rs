//! Objects whose keys a key management service has.

use std::time::{Duration, Instant};

use concord_testing::kms::KmsPlugin;
use serde_json::json;

use crate::world::{World, holds, progress};

/// Three objects of which the service has the key of one, and this server has not seen that one while it had its key.
async fn with_wrapped(plugin: &KmsPlugin, failure: impl FnOnce(&KmsPlugin)) -> World {
    let service =
        format!("{{kms: {{apiVersion: v2, name: vault, endpoint: '{}', timeout: 2s}}}}", plugin.endpoint());
    let world = World::new().await;
    world.create(["a", "z"].into_iter()).await;
    world.encrypt_with_service(&format!("{service}, <key>, {{identity: {{}}}}")).await;
    world.faulty.show(false);
    world.create(["wrapped"].into_iter()).await;
    world.encrypt_with_service(&format!("<key>, {service}, {{identity: {{}}}}")).await;
    failure(plugin);
    world.faulty.show(true);
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_service_does_not_decrypt_is_named_and_holds_nothing_up() {
    // An answer about the value; and one that may be about anything, of a service that says that it is well.
    for code in [3, 2] {
        let plugin = KmsPlugin::start("key-1").expect("a service");
        let broken = |plugin: &KmsPlugin| {
            plugin.change(|behaviour| {
                behaviour.decrypt_failure = Some((code, "the key was destroyed".to_owned()))
            });
        };
        let world = with_wrapped(&plugin, broken).await;
        let (running, begin) = (world.start(), Instant::now());
        world.ask("m", &[]).await;
        let ended = world.ends("m").await;
        let (_, message) = holds(&ended, "Failed").expect("it failed");
        assert!(message.starts_with("1 of 3 objects could not be migrated; default/wrapped: "), "{message}");
        assert!(message.contains("the key was destroyed"), "{message}");
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
        assert_eq!(world.left().await, ["wrapped"]);
        assert_eq!(progress(&ended)["migrated"], json!(2));
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_is_away_is_waited_for() {
    let plugin = KmsPlugin::start("key-1").expect("a service");
    let away = |plugin: &KmsPlugin| {
        plugin.change(|behaviour| behaviour.failure = Some((14, "gone fishing".to_owned())));
    };
    let world = with_wrapped(&plugin, away).await;
    let running = world.start();
    world.ask("m", &[]).await;
    let held = world.until("m", "that it says why", |now| progress(now)["lastError"].is_string()).await;
    assert!(holds(&held, "Failed").is_none(), "{held}");
    plugin.change(|behaviour| behaviour.failure = None);
    // It is asked every ten seconds until then.
    world.succeeds("m").await;
    assert!(world.left().await.is_empty());
    running.stop().await;
}
