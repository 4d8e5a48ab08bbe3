//! Every rule has a row: a change to a valid object, and what kube-apiserver says about it.
//!
//! `cases/<group>.<Kind>.txt` begins with the object, one JSON document up to an empty line. A row is what is done to it:
//!
//! ```text
//! create spec/type="X" ; spec/ports-       set a member, remove one
//! update/status spec/x=1 => status/y=2     update through a subresource, after the object was changed as before the arrow
//! [A=true B=false] create spec/x=1         the same where feature A is on and B off
//! [now=1] update spec/x=1                  the same a second after 1970 began
//! warn spec/x=1, warn/update, warn/status  what the client is told of, if it is made or changed so
//!   spec.type: Unsupported value: "X"      the errors that follow, one per line, `\n` for line breaks
//! ```
//!
//! `{{"k#":"",*513}}` stands for the text between `{{` and `*`, 513 times, with the numbers from 0 on for `#`.
//!
//! `populated` has more of them, made from objects in which most fields are set: one field after the other was changed,
//! and of the answers each was kept once. What is after `~` in the name of a file only tells objects of one kind apart.
//!
//! The expectations are the answers of a kube-apiserver v1.36.4, or follow from its source: `docs/validation.md` says which.

use std::{fs, path::Path};

use concord_meta::{
    field,
    names::NameRule,
    objectmeta::{self, Scope},
};
use concord_validation::{Gates, Validator};
use serde_json::{Map, Value};

fn apply(object: &Value, changes: &str) -> Value {
    let mut object = object.clone();
    for change in changes.split(" ; ").map(str::trim).filter(|change| !change.is_empty()) {
        match change.split_once('=') {
            Some((path, value)) => {
                let value = serde_json::from_str(value).unwrap_or_else(|error| panic!("{change}: {error}"));
                *place(&mut object, path) = value;
            }
            None => {
                let path = change.strip_suffix('-').unwrap_or_else(|| panic!("{change}: neither = nor -"));
                let (parent, name) =
                    path.rsplit_once('/').map_or((None, path), |(parent, name)| (Some(parent), name));
                let parent = parent.map_or_else(|| "".to_owned(), ToOwned::to_owned);
                let parent = if parent.is_empty() { &mut object } else { place(&mut object, &parent) };
                match parent {
                    Value::Object(members) => drop(members.remove(&unescape(name))),
                    Value::Array(items) => drop(items.remove(name.parse().expect("an index"))),
                    _ => panic!("{change}: nothing to remove"),
                }
            }
        }
    }
    object
}

/// Writes out what is to be repeated.
fn expand(text: &str) -> String {
    let Some((before, rest)) = text.split_once("{{") else { return text.to_owned() };
    let (repeated, after) = rest.split_once("}}").unwrap_or_else(|| panic!("{text}: no end"));
    let (part, times) = repeated.rsplit_once('*').unwrap_or_else(|| panic!("{text}: no number"));
    let times: usize = times.parse().unwrap_or_else(|_| panic!("{text}: no number"));
    let parts: String = (0..times).map(|number| part.replace('#', &number.to_string())).collect();
    format!("{before}{parts}{}", expand(after))
}

fn unescape(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

/// The place at a path; objects on the way are made, and one item past a list's end can be written.
fn place<'v>(object: &'v mut Value, path: &str) -> &'v mut Value {
    path.split('/').map(unescape).fold(object, |value, name| {
        if value.is_null() {
            *value = Value::Object(Map::new());
        }
        match value {
            Value::Object(members) => members.entry(name).or_insert(Value::Null),
            Value::Array(items) => {
                let index: usize = name.parse().unwrap_or_else(|_| panic!("{path}: no index"));
                if index == items.len() {
                    items.push(Value::Null);
                }
                &mut items[index]
            }
            _ => panic!("{path}: nothing there"),
        }
    })
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("an object")
}

/// The rules of the kind come after those that hold for any object.
fn update(validator: Validator, subresource: &str, new: &Value, old: &Value) -> Vec<field::Error> {
    let path = field::Path::new("metadata");
    let metadata = |value: &Value| value["metadata"].as_object().expect("metadata").clone();
    let (new_metadata, old_metadata) = (metadata(new), metadata(old));
    let scope = if new_metadata.contains_key("namespace") { Scope::Namespaced } else { Scope::Cluster };
    let mut errors = objectmeta::validate_create(&new_metadata, scope, NameRule::PathSegment, &path);
    errors.extend(objectmeta::validate_update(&new_metadata, &old_metadata, &path));
    errors.extend(validator.update(subresource, object(new), object(old)));
    errors
}

/// The validator with the gates that a row begins with, and the rest of the row.
fn gated(validator: Validator, row: &str) -> (Validator, &str) {
    let Some((gates, row)) = row.strip_prefix('[').and_then(|row| row.split_once("] ")) else {
        return (validator, row);
    };
    if let Some(now) = gates.strip_prefix("now=") {
        return (validator.at(now.parse().expect("a time")), row);
    }
    let set: Vec<(&str, bool)> = gates
        .split(' ')
        .map(|gate| gate.split_once('=').unwrap_or_else(|| panic!("{gate}: no value")))
        .map(|(name, value)| {
            (name, value.parse().unwrap_or_else(|_| panic!("{name}: neither true nor false")))
        })
        .collect();
    for (name, _) in &set {
        let alone = Gates::new(|gate| gate == *name);
        assert_ne!(alone, Gates::new(|_| false), "{name}: no rule depends on it");
    }
    (validator.with(Gates::default().and(&set)), row)
}

fn answer(validator: Validator, base: &Value, action: &str) -> Vec<String> {
    let action = expand(action);
    let (validator, action) = gated(validator, &action);
    let (verb, changes) = action.split_once(' ').unwrap_or((action, ""));
    let (before, changes) = changes.split_once(" => ").unwrap_or(("", changes));
    let old = apply(base, before);
    let new = apply(&old, changes);
    let errors = match verb.split_once('/') {
        None if verb == "create" => validator.create(object(&new)),
        None if verb == "update" => update(validator, "", &new, &old),
        Some(("update", subresource)) => update(validator, subresource, &new, &old),
        None if verb == "warn" => return validator.warnings("", object(&new), None),
        Some(("warn", "update")) => return validator.warnings("", object(&new), Some(object(&old))),
        Some(("warn", subresource)) => {
            return validator.warnings(subresource, object(&new), Some(object(&old)));
        }
        _ => panic!("{verb}: no such verb"),
    };
    errors.iter().map(|error| format!("{}: {}", error.field, error.body())).collect()
}

fn check_file(path: &Path) -> (usize, Vec<String>) {
    let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
    let kind = name.split_once('~').map_or(name, |(kind, _)| kind);
    let (group, kind) = kind.rsplit_once('.').expect("group.Kind");
    let group = if group == "core" { "" } else { group };
    let validator = concord_validation::of(group, kind).unwrap_or_else(|| panic!("{name}: no rules"));
    let text = fs::read_to_string(path).expect("a readable file");
    let (base, rows) = text.split_once("\n\n").expect("an object and rows");
    let base: Value = serde_json::from_str(base).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (mut count, mut wrong) = (0, Vec::new());
    let mut lines = rows.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
    while let Some(action) = lines.next() {
        let mut expected = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
            expected.push(expand(&line[2..]));
        }
        let answer: Vec<String> =
            answer(validator, &base, action).iter().map(|text| text.replace('\n', "\\n")).collect();
        count += 1;
        if answer != expected {
            wrong.push(format!(
                "{name}: {action}\n  expected:\n    {}\n  found:\n    {}",
                expected.join("\n    "),
                answer.join("\n    ")
            ));
        }
    }
    (count, wrong)
}

fn check(directory: &str) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(directory);
    let mut files: Vec<_> =
        fs::read_dir(directory).expect("cases").map(|file| file.expect("a file").path()).collect();
    files.sort();
    let (mut count, mut wrong) = (0, Vec::new());
    for file in files {
        let (rows, more) = check_file(&file);
        count += rows;
        wrong.extend(more);
    }
    assert!(wrong.is_empty(), "{} of {count} rows differ\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 0, "no rows");
}

#[test]
fn the_rules_are_upstreams() {
    check("cases");
}

#[test]
fn the_rules_are_upstreams_for_objects_with_many_fields() {
    check("populated");
}
