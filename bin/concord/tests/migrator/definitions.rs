//! Definitions that somebody else changes at the very moment at which a migration of their objects ends.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use concord_store::Txn;
use serde_json::{Value, json};

use crate::{
    faulty::Verdict,
    world::{World, progress},
};

pub(crate) const DEFINITION: &str =
    "/registry/apiextensions.k8s.io/customresourcedefinitions/leases.coordination.k8s.io";

/// A definition of something that this server serves anyway, so that nobody has to serve it because of this.
pub(crate) fn definition(generation: u64, stored: &[&str]) -> Value {
    let version = |name: &str| {
        json!({"name": name, "served": true, "storage": name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    let names = json!({"plural": "leases", "singular": "lease", "kind": "Lease", "listKind": "LeaseList"});
    json!({
        "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "leases.coordination.k8s.io", "uid": "u", "generation": generation,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {"api-approved.kubernetes.io": "https://example.com"}},
        "spec": {"group": "coordination.k8s.io", "scope": "Namespaced", "names": names,
            "conversion": {"strategy": "None"}, "versions": [version("v1"), version("v2")]},
        "status": {"acceptedNames": names, "conditions": [], "storedVersions": stored},
    })
}

/// Whether the end of a migration is said in the definition.
pub(crate) fn says_the_end(txn: &Txn) -> bool {
    let is_end = |value: &[u8]| String::from_utf8_lossy(value).contains("MigrationSucceeded");
    txn.writes.iter().any(|write| match write {
        concord_store::Write::Put { key, value, .. } => key == DEFINITION.as_bytes() && is_end(value),
        concord_store::Write::Delete { .. } => false,
    })
}

/// What becomes of the list of stored versions if the definition is changed into this one just before the migration writes
/// that list, and how the migration ends it.
async fn raced(change: &Value) -> (Value, String) {
    let world = World::new().await;
    world.put(DEFINITION, definition(1, &["v2", "v1"]).to_string()).await;
    let ends = Arc::new(AtomicUsize::new(0));
    let count = ends.clone();
    world.faulty.judge(move |txn| {
        let is_first = says_the_end(txn) && count.fetch_add(1, Ordering::Relaxed) == 0;
        if is_first { Verdict::Held } else { Verdict::Good }
    });
    let running = world.start();
    world.ask_about("m", ("coordination.k8s.io", "leases"), "2026-01-01T00:00:00Z", &[]).await;
    world.faulty.overtake(world.put(DEFINITION, change.to_string())).await;
    let ended = world.succeeds("m").await;
    assert_eq!(progress(&ended)["phase"], "Done");
    assert!(ends.load(Ordering::Relaxed) >= 2, "it was tried again");
    let (after, _) = world.stored(DEFINITION).await.expect("it is there");
    running.stop().await;
    let conditions = after["status"]["conditions"].as_array().expect("a list");
    let said = conditions.iter().find(|known| known["type"] == "StorageMigrating").expect("it is said");
    assert_eq!(said["status"], "False");
    (after["status"]["storedVersions"].clone(), said["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_changes_a_definition_at_the_end_loses_nothing() {
    // Somebody labels it: nothing that was proved is less true.
    let mut labelled = definition(1, &["v2", "v1"]);
    labelled["metadata"]["labels"] = json!({"a": "b"});
    let (stored, message) = raced(&labelled).await;
    assert_eq!(stored, json!(["v1"]));
    assert_eq!(message, "The migration has succeeded and the stored versions have been updated");
    // Somebody changes what is defined, with another version as stored: it was not proved for that.
    let (stored, message) = raced(&definition(2, &["v2", "v1", "v3"])).await;
    assert_eq!(stored, json!(["v2", "v1", "v3"]));
    assert!(message.ends_with("have not been updated due to a generation mismatch"), "{message}");
}
