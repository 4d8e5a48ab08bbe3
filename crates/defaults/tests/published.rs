//! The published objects of the release, which have a value in every field, where they are at hand.

use std::{fs, path::Path};

use concord_builtins::schema;
use serde_json::{Map, Value};

/// What is not kept as it is given: fields that say the same as others.
const SAID_TWICE: [&str; 5] = ["apiVersion", "kind", "podCIDRs", "podIPs.ip", "serviceAccount"];

#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn published() -> Vec<Map<String, Value>> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/kubernetes-v1.36/api-testdata");
    let Ok(entries) = fs::read_dir(root) else {
        println!("skipped: there is no ../shared/data");
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let texts = paths.filter(|path| path.extension().is_some_and(|end| end == "json")).map(fs::read);
    texts.map(|text| serde_json::from_slice(&text.expect("a file")).expect("an object")).collect()
}

/// The paths of what is other than it was, or gone.
fn lost(before: &Value, after: Option<&Value>, path: &str, paths: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(before), Some(Value::Object(after))) => {
            for (name, value) in before {
                lost(value, after.get(name), &format!("{path}.{name}"), paths);
            }
        }
        (Value::Array(before), Some(Value::Array(after))) if before.len() == after.len() => {
            for (before, after) in before.iter().zip(after) {
                lost(before, Some(after), path, paths);
            }
        }
        (before, after) if after == Some(before) => {}
        _ => paths.push(path.to_owned()),
    }
}

#[test]
fn published_objects_lose_nothing_and_stay_as_they_are() {
    let objects = published();
    let mut seen = 0;
    for before in &objects {
        let text = |name: &str| before.get(name).and_then(Value::as_str).unwrap_or_default();
        let Some(defaults) = concord_defaults::of(text("apiVersion"), text("kind")) else { continue };
        let mut after = before.clone();
        defaults.apply(&mut after);
        let once = Value::Object(after.clone());
        let mut paths = Vec::new();
        lost(&Value::Object(before.clone()), Some(&once), "", &mut paths);
        paths.retain(|path| !SAID_TWICE.iter().any(|name| path.ends_with(&format!(".{name}"))));
        assert_eq!(paths, Vec::<String>::new(), "{} {}", text("apiVersion"), text("kind"));
        defaults.apply(&mut after);
        assert_eq!(Value::Object(after), once, "{} {}", text("apiVersion"), text("kind"));
        seen += 1;
    }
    assert!(objects.is_empty() || seen > 30, "{seen} of {} objects", objects.len());
}

#[test]
fn empty_objects_get_the_same_defaults_only_once_and_stay_normal() {
    for object in published() {
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
        let (Some(defaults), Some(schema)) =
            (concord_defaults::of(text("apiVersion"), text("kind")), schema(group, version, text("kind")))
        else {
            continue;
        };
        let Value::Object(mut object) = schema.empty(text("kind"), text("apiVersion")) else {
            panic!("a kind is an object")
        };
        defaults.apply(&mut object);
        let once = object.clone();
        schema.normalize(&mut object).expect("normal");
        assert_eq!(object, once, "defaults are in normal form");
        defaults.apply(&mut object);
        assert_eq!(object, once, "nothing changes any more");
    }
}
