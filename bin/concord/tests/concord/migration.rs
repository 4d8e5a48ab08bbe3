//! Migration of what is stored: upstream's scenarios, its defects absent, and what it cannot do.
//!
//! Upstream's integration scenarios: (a) Secrets, `secrets::secrets_are_brought_under_a_new_key`; (b) a definition with a
//! converter, `trouble::objects_that_a_webhook_converts_wait_for_it`, and without one,
//! `definitions::a_definition_gets_another_version`; (c) chaos,
//! `definitions::many_migrations_among_many_writers_touch_nothing_that_is_right`.
//!
//! Upstream's defects, and the test that fails with each of them:
//!
//! | defect | test |
//! |---|---|
//! | a failed migration shortens `storedVersions` | `definitions::one_object_that_cannot_be_written_neither_stops_the_others_nor_is_forgotten` |
//! | so does the beginning of the next one | the same |
//! | a definition that goes away ends the process | `flips::what_is_gone_for_a_minute_does_not_come_back` |
//! | `events` never end | `control::every_stored_resource_can_be_migrated_and_nothing_else` |
//! | servers that write differently are not noticed | `secrets::nothing_is_migrated_while_servers_encrypt_with_different_keys`, `fleet` |
//!
//! What a migrator has to pass, and what shows it. `migrator::` is the test program beside this one, `standalone::` that of
//! `concord-migrator`; other crates are named.
//!
//! | | what | test |
//! |---|---|---|
//! | 1, 2, 6 | validation, what each endpoint changes, tables | `api::migrations_are_validated_as_upstream_does`, `versions` |
//! | 3, 4, 5, 8 | apply, irreversible ends, encodings, versions | `versions::a_migration_is_the_same_whichever_way_it_is_looked_at`; version 1alpha1: `concord-conversion` |
//! | 7 | the gate | `api::without_the_feature_there_are_no_migrations` |
//! | 9 | no objects | `control::every_stored_resource_…`, the benchmark `migration` |
//! | 10 | many objects, progress, time left | `migrator::orders::of_many_objects_it_is_known_how_long_they_take` |
//! | 11 | in namespaces and not | `control::every_stored_resource_…` |
//! | 12 | changed, deleted, made again before its turn | `migrator::answers::what_changes_before_its_turn_is_taken_as_it_is` |
//! | 13, 14, 17 | terminating, without managedFields, edited by a webhook | `odd::objects_that_are_not_like_others_are_migrated_as_well` |
//! | 15, 16, 20 | too large, invalid today, denied | `migrator::answers::what_cannot_be_written_is_named_and_all_others_are_done`, `odd`, `definitions::one_object_…` |
//! | 18 | a webhook that is away | `orders::a_migration_that_is_held_up_ends_within_a_second`, `chaos` |
//! | 19 | a converter that is away, wrong or slow | `trouble::objects_that_a_webhook_converts_wait_for_it` |
//! | 21 | what can be migrated, what comes late or never | `control::every_stored_resource_…`, `flips::what_is_gone_…`, `standalone::a_resource_may_come_later_but_not_too_late` |
//! | 22 | two of one resource | `definitions::many_migrations_…`, `choose.rs` |
//! | 23, 25 | deleted while it runs; a definition that comes back | `definitions::a_definition_that_goes_away_harms_nobody` |
//! | 24 | a definition that does not | `flips::what_is_gone_for_a_minute_does_not_come_back` |
//! | 26 | a label | `migrator::orders::a_label_does_not_make_it_begin_anew` |
//! | 27 to 29, 34 | when `storedVersions` gets shorter | `definitions` |
//! | 30, 32 | never for another definition than the one it was proved for | `definitions.rs` of `concord-migrator` |
//! | 31 | the version goes back in the middle | `flips::a_version_that_comes_back_in_the_middle_is_what_everything_is_stored_in` |
//! | 33 | others apply the definition | `flips::whoever_applies_a_definition_does_not_lose_what_is_stored` |
//! | 35 | death at every word | `migrator::crashes::whenever_it_dies_another_one_ends_it_and_writes_nothing_twice`, `faults` |
//! | 36 | two leaders | `migrator::crashes::two_at_once_write_nothing_twice`, `chaos` |
//! | 37 | answers that say "not now", or get lost | `migrator::answers::what_fails_for_now_is_no_reason_to_end`, `standalone::a_server_that_is_gone_among_others_is_no_end` |
//! | 38 | compaction, no space, etcd's leader | `migrator::store`, `chaos` |
//! | 39 | clocks | `migrator::orders::no_clock_decides_how_long_a_resource_may_be_missing` |
//! | 40 | a server that is behind | `migrator::store::a_server_that_is_behind_does_not_succeed` |
//! | 41 | large resource versions | `standalone::resource_versions_of_any_size_are_passed_on`, `api` |
//! | 42 | frozen | `fleet::a_server_that_was_frozen_in_the_middle_ends_it` |
//! | 43 | an end that cannot be told | `trouble::an_end_that_cannot_be_told_is_told_later` |
//! | 44, 47 | one with another form | `secrets::nothing_is_migrated_while_servers_encrypt_with_different_keys` |
//! | 45, 49 | agreement lost in the middle, one that joins | `fleet::whoever_writes_otherwise_in_the_middle_is_waited_for` |
//! | 46 | one that goes back after success | `trouble::what_a_server_wrote_that_went_back_for_a_while_is_found` |
//! | 48 | a dead one | `fleet::a_dead_server_is_waited_for_as_long_as_its_lease` |
//! | 50 | creates right after a flip | `odd::what_is_created_right_after_the_change_of_a_definition_is_accounted_for` |
//! | 51 | another server for every request | `standalone::a_server_that_is_gone_among_others_is_no_end` |
//! | 52 | bytes of a kube-apiserver, both ways | `concord-encryption`, `encryption::kube_apiserver` |
//! | 53, 54, 58, 61 | order, names used twice, identity first, stale or not, damage | `concord-encryption`, `concord-store-sealed`, `encryption` |
//! | 55 | a key that is gone | `encryption::what_cannot_be_decrypted_…`, `secrets::what_nobody_can_read_is_named_and_holds_nothing_up` |
//! | 56 | files that are read again | `encryption::a_file_behind_links_is_read_again_and_a_good_one_follows_a_bad_one` |
//! | 57 | key management services | `kms.rs` of `concord-store-sealed`, `migrator::services`, `secrets` |
//! | 59 | nothing secret is told | `leaks`, and whatever a server prints in any of these tests |
//! | 60 | rotation among writers | `secrets::a_key_is_rotated_while_two_servers_write`, `chaos` |
//! | 62 | pause, resume, cancel | `migrator::orders::a_pause_is_heard_at_once_and_outlives_the_process`, `migrator::answers::a_cancel_is_heard_…` |
//! | 63 | the rate | `orders::a_rate_is_kept_and_none_is_too_low`, `pace.rs` of `concord-migrator` |
//! | 64 | dry runs | `migrator::orders::a_dry_run_writes_nothing_but_what_it_says` |
//! | 65, 66 | the command | `command` |
//! | 67 | parents | there are none: each resource has a migration of its own |

mod api;
mod chaos;
mod clocks;
mod command;
mod control;
mod definitions;
mod faults;
mod fleet;
mod flips;
mod odd;
mod orders;
mod outages;
mod outside;
mod secrets;
mod trouble;
mod upgrades;
mod versions;

use std::time::{Duration, Instant};

use bytes::Bytes;
use concord_store::{KeyRange, Scan, Store};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::support::SOON;

/// A progress annotation and all others begin like this.
const ANNOTATIONS: &str = "storagemigration.concord.dev";

fn kind(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

fn migrations(client: &Client) -> Api<DynamicObject> {
    let kind = kind("storagemigration.k8s.io", "v1beta1", "StorageVersionMigration");
    Api::all_with(client.clone(), &kind)
}

fn migration(name: &str, group: &str, resource: &str, annotations: &[(&str, &str)]) -> DynamicObject {
    let annotations: Value =
        annotations.iter().map(|(name, value)| (format!("{ANNOTATIONS}/{name}"), json!(value))).collect();
    let object = json!({
        "apiVersion": "storagemigration.k8s.io/v1beta1", "kind": "StorageVersionMigration",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"resource": {"group": group, "resource": resource}},
    });
    serde_json::from_value(object).expect("an object")
}

async fn ask(client: &Client, name: &str, group: &str, resource: &str) {
    let made =
        migrations(client).create(&PostParams::default(), &migration(name, group, resource, &[])).await;
    made.expect("created");
}

/// The reason of a condition and its message, if it has this status.
fn condition(migration: &DynamicObject, kind: &str, status: &str) -> Option<(String, String)> {
    let conditions = migration.data["status"]["conditions"].as_array().into_iter().flatten();
    let mut found = conditions.filter(|known| known["type"] == kind && known["status"] == status);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    found.next().map(|known| (text(&known["reason"]), text(&known["message"])))
}

fn progress(migration: &DynamicObject) -> Value {
    let annotations = migration.metadata.annotations.clone().unwrap_or_default();
    let text = annotations.get(&format!("{ANNOTATIONS}/progress")).cloned().unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Looks at a migration until it is as it is awaited.
async fn until(
    client: &Client,
    name: &str,
    what: &str,
    is_so: impl Fn(&DynamicObject) -> bool,
) -> DynamicObject {
    let begin = Instant::now();
    loop {
        // A server that is killed in the meantime does not answer.
        if let Ok(migration) = migrations(client).get(name).await {
            if is_so(&migration) {
                return migration;
            }
            let status = &migration.data["status"];
            assert!(
                begin.elapsed() < SOON,
                "not in time: {what} of {name}: {status} {}",
                progress(&migration)
            );
        }
        assert!(begin.elapsed() < SOON, "not in time: {what} of {name}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits for the end, which has to be a success.
async fn succeeds(client: &Client, name: &str) -> DynamicObject {
    let ended = until(client, name, "the end", |migration| {
        ["Succeeded", "Failed"].iter().any(|kind| condition(migration, kind, "True").is_some())
            && condition(migration, "Running", "True").is_none()
    });
    let ended = ended.await;
    let status = &ended.data["status"];
    assert!(condition(&ended, "Succeeded", "True").is_some(), "{status}");
    ended
}

/// What is kept under keys that begin like this: the name, and how the value begins.
async fn kept(store: &dyn Store, prefix: &str) -> Vec<(String, Bytes)> {
    let mut scan = Scan::new(KeyRange::prefix(prefix.to_owned()), 1000);
    let mut all = Vec::new();
    loop {
        let page = store.scan(scan.clone()).await.expect("a page");
        for entry in page.entries {
            let name = String::from_utf8_lossy(&entry.key[prefix.len()..]).into_owned();
            all.push((name, entry.value));
        }
        let Some(resume) = page.resume else { return all };
        scan = Scan { range: scan.range.starting_at(resume), revision: Some(page.revision), ..scan };
    }
}

const FOOS: &str = "foos.example.com";

/// A definition of a custom resource that stores one of these versions.
fn definition(versions: &[&str], stored: &str) -> Value {
    let version = |name: &&str| {
        json!({"name": name, "served": true, "storage": *name == stored,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    let versions: Vec<Value> = versions.iter().map(version).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": FOOS},
        "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "foos", "kind": "Foo"},
            "versions": versions},
    })
}

fn definitions(client: &Client) -> Api<DynamicObject> {
    let kind = kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    Api::all_with(client.clone(), &kind)
}

fn foos(client: &Client, version: &str) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &kind("example.com", version, "Foo"))
}

/// Makes a definition, or changes its versions.
async fn define(client: &Client, versions: &[&str], stored: &str) -> DynamicObject {
    let definition = definition(versions, stored);
    let spec = json!({"spec": {"versions": definition["spec"]["versions"]}});
    let changed = definitions(client).patch(FOOS, &PatchParams::default(), &Patch::Merge(spec)).await;
    match changed {
        Ok(changed) => changed,
        Err(kube::Error::Api(status)) if status.code == 404 => {
            let new = serde_json::from_value(definition).expect("an object");
            definitions(client).create(&PostParams::default(), &new).await.expect("created")
        }
        Err(error) => panic!("{error}"),
    }
}

async fn stored_versions(client: &Client) -> Value {
    definitions(client).get(FOOS).await.expect("there").data["status"]["storedVersions"].clone()
}

/// Makes an object, as soon as that version is served.
async fn create_foo(client: &Client, version: &str, name: &str) -> DynamicObject {
    let object = json!({"apiVersion": format!("example.com/{version}"), "kind": "Foo",
        "metadata": {"name": name}, "spec": {"word": name}});
    let object: DynamicObject = serde_json::from_value(object).expect("an object");
    let begin = Instant::now();
    loop {
        match foos(client, version).create(&PostParams::default(), &object).await {
            Ok(made) => return made,
            Err(error) => assert!(begin.elapsed() < SOON, "not in time: {name} is made: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
