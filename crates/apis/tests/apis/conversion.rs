//! The versions of every kind: which can be made from which, and that nothing is lost on the way.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fs,
    path::{Path, PathBuf},
};

use concord_apis::Release;
use concord_builtins::{Catalog, schema};
use concord_conversion::{Difference, convert, difference};
use concord_schema::{Place, Shape};
use serde_json::{Map, Value};

/// The kinds that are stored, with all versions that any release has of them.
fn kinds() -> BTreeMap<(&'static str, &'static str), BTreeSet<String>> {
    let mut kinds: BTreeMap<(&str, &str), BTreeSet<String>> = BTreeMap::new();
    let resources =
        Release::all().flat_map(|release| Catalog::of(release).versions()).flat_map(|v| &v.resources);
    for facts in resources {
        if let Some(storage) = facts.storage {
            kinds.entry((storage.group, facts.kind)).or_default().insert(facts.api_version());
        }
    }
    kinds
}

fn place(api_version: &str, kind: &str) -> Place {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    schema(group, version, kind).expect("every kind has one").place().clone()
}

/// Kinds that were made anew: no release serves both versions, and upstream converts neither.
const MADE_ANEW: [&str; 1] = ["Workload"];

/// Kinds of which an older version lacks something, so that there is no way back.
const LOSSY: [&str; 2] = ["StorageVersionMigration", "Workload"];

#[test]
fn every_version_of_a_kind_can_be_made_from_every_other() {
    let mut pairs = 0;
    for ((_, kind), versions) in kinds() {
        for from in &versions {
            for to in versions.iter().filter(|to| *to != from) {
                let difference = difference(kind, from, to);
                assert_eq!(difference.is_some(), !MADE_ANEW.contains(&kind), "{kind} {from} {to}");
                if difference == Some(Difference::Name) {
                    let mut seen = HashSet::new();
                    // A version that only an earlier release has may lack what the kind got later.
                    let earlier = from.contains("alpha") || to.contains("alpha");
                    same_fields(&place(from, kind), &place(to, kind), earlier, &mut seen);
                }
                pairs += 1;
            }
        }
    }
    assert!(pairs > 40, "only {pairs} pairs");
}

/// That two types have the same fields, all the way down.
fn same_fields(one: &Place, other: &Place, earlier: bool, seen: &mut HashSet<(String, String)>) {
    if !seen.insert((one.go_name().to_owned(), other.go_name().to_owned())) {
        return;
    }
    match (one.shape(), other.shape()) {
        (Shape::Scalar(one), Shape::Scalar(other)) => assert_eq!(one, other),
        (Shape::List { items: one_items, .. }, Shape::List { items, .. }) => {
            same_fields(&one.at(*one_items), &other.at(*items), earlier, seen);
        }
        (Shape::Map { values: one_values, .. }, Shape::Map { values, .. }) => {
            same_fields(&one.at(*one_values), &other.at(*values), earlier, seen);
        }
        (Shape::Struct { .. }, Shape::Struct { .. }) => {
            let fields: BTreeMap<String, Place> =
                other.fields().map(|(name, place)| (name.to_owned(), place)).collect();
            let names: BTreeSet<&str> = one.fields().map(|(name, _)| name).collect();
            let all = fields.keys().all(|name| names.contains(name.as_str())) && names.len() == fields.len();
            assert!(all || earlier, "{} and {}", one.go_name(), other.go_name());
            for (name, place) in one.fields() {
                if let Some(other) = fields.get(name) {
                    same_fields(&place, other, earlier, seen);
                }
            }
        }
        _ => assert_eq!(one.go_name(), other.go_name()),
    }
}

#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn populated() -> Option<PathBuf> {
    let data =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/kubernetes-v1.36/api-testdata");
    if data.is_dir() {
        return Some(data);
    }
    println!("skipped: there is no ../shared/data");
    None
}

fn normalize(object: &mut Map<String, Value>, api_version: &str, kind: &str) {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let schema = schema(group, version, kind).expect("every kind has one");
    schema.normalize(object).unwrap_or_else(|error| panic!("{api_version} {kind}: {error}"));
}

#[test]
fn populated_objects_survive_every_other_version() {
    let Some(data) = populated() else { return };
    let mut compared = 0;
    for ((_, kind), versions) in kinds() {
        for from in versions.iter().filter(|_| versions.len() > 1 && !LOSSY.contains(&kind)) {
            let group_version =
                if from.contains('/') { from.replace('/', ".") } else { format!("core.{from}") };
            let file = data.join(format!("{group_version}.{kind}.json"));
            let Ok(text) = fs::read(&file) else { continue };
            let Ok(Value::Object(mut object)) = serde_json::from_slice(&text) else { panic!("{file:?}") };
            // Its targets have types that v1 would not mean: a property test has those that it does.
            if from == "autoscaling/v2" {
                continue;
            }
            normalize(&mut object, from, kind);
            // A version that a later release dropped may lack what the kind got since.
            let current =
                |to: &&String| file.with_file_name(format!("{}.{kind}.json", to.replace('/', "."))).exists();
            for to in versions.iter().filter(|to| *to != from).filter(|to| current(to) || **to == "v1") {
                let mut there = object.clone();
                convert(&mut there, from, to).expect("known");
                normalize(&mut there, to, kind);
                assert_ne!(there, object);
                convert(&mut there, to, from).expect("known");
                normalize(&mut there, from, kind);
                // The measured CPU is kept in more detail from then on.
                let kept = there["metadata"]["annotations"].as_object_mut();
                kept.map(|kept| kept.remove("autoscaling.alpha.kubernetes.io/current-metrics"));
                assert_eq!(Value::Object(there), Value::Object(object.clone()), "{kind} {from} by {to}");
                compared += 1;
            }
        }
    }
    assert!(compared > 20, "only {compared}");
}
