//! Parts of other servers in the document of version 2.

use std::collections::{BTreeMap, BTreeSet};

use concord_meta::GroupVersion;
use serde_json::{Map, Value};

use crate::{
    legacy::{escape, own_paths, references, unescape},
    member::Member,
    run::Sorted,
};

const KINDS: &str = "x-kubernetes-group-version-kind";
const DEFINITIONS: &str = "#/definitions/";
const PARAMETERS: &str = "#/parameters/";
const RESPONSES: &str = "#/responses/";

/// What of a document belongs to a version of a group: its paths, and what they refer to.
pub(crate) fn part(document: &Map<String, Value>, version: &GroupVersion) -> Value {
    let mut paths: Map<String, Value> =
        own_paths(document, version).map(|(path, item)| (path.clone(), item.clone())).collect();
    let nothing = Map::new();
    let of = |name: &str| document.get(name).and_then(Value::as_object).unwrap_or(&nothing);
    for item in paths.values_mut() {
        complete(item, document);
        replace(item, RESPONSES, of("responses"));
    }
    let paths = Value::Object(paths);
    let mut wanted = BTreeSet::new();
    references(&paths, PARAMETERS, &mut wanted);
    let parameters = closure(wanted, of("parameters"), PARAMETERS);
    let mut wanted = BTreeSet::new();
    references(&paths, DEFINITIONS, &mut wanted);
    parameters.values().for_each(|parameter| references(parameter, DEFINITIONS, &mut wanted));
    let definitions = closure(wanted, of("definitions"), DEFINITIONS);
    serde_json::json!({"paths": paths, "parameters": parameters, "definitions": definitions})
}

/// Says in each operation what the document says for all.
fn complete(item: &mut Value, document: &Map<String, Value>) {
    let Value::Object(item) = item else { return };
    for (method, operation) in item {
        let Value::Object(operation) = operation else { continue };
        if method == "parameters" {
            continue;
        }
        for name in ["consumes", "produces", "schemes"] {
            if let (Some(common), false) = (document.get(name), operation.contains_key(name)) {
                operation.insert(name.to_owned(), common.clone());
            }
        }
    }
}

/// Puts what is shared where it is referred to.
fn replace(value: &mut Value, prefix: &str, shared: &Map<String, Value>) {
    let referred = value.get("$ref").and_then(|to| to.as_str()?.strip_prefix(prefix)).map(unescape);
    if let Some(name) = referred {
        *value = shared.get(&name).cloned().unwrap_or_else(|| serde_json::json!({"description": ""}));
        return;
    }
    match value {
        Value::Object(members) => members.values_mut().for_each(|member| replace(member, prefix, shared)),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, prefix, shared)),
        _ => {}
    }
}

/// What is wanted, and what that refers to. What is not there is anything.
fn closure(mut wanted: BTreeSet<String>, from: &Map<String, Value>, prefix: &str) -> Map<String, Value> {
    let mut found = Map::new();
    while let Some(name) = wanted.pop_first() {
        if found.contains_key(&name) {
            continue;
        }
        let value = from.get(&name).cloned().unwrap_or_else(|| serde_json::json!({}));
        references(&value, prefix, &mut wanted);
        found.insert(name, value);
    }
    found
}

/// What is shared in a document of version 2.
pub(crate) struct Whole<'a> {
    pub(crate) paths: &'a mut Sorted,
    pub(crate) definitions: &'a mut Sorted,
    pub(crate) parameters: &'a mut Map<String, Value>,
}

/// Adds a part to a document. Paths that it has already stay as they are. Names that mean something else in the part get
/// a number.
pub(crate) fn add(whole: &mut Whole<'_>, mut part: Map<String, Value>) {
    let mut take = |name: &str| match part.remove(name) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    };
    let (paths, mut definitions, mut parameters) = (take("paths"), take("definitions"), take("parameters"));
    let mut paths = Value::Object(paths);
    let renamed = conflicts(&definitions, |name, value| {
        whole.definitions.get(name).is_some_and(|known| !same(&known.value(), value))
    });
    for value in definitions.values_mut().chain(parameters.values_mut()).chain([&mut paths]) {
        rename(value, DEFINITIONS, &renamed);
    }
    // Which may have changed by what they refer to.
    let renamed_parameters = conflicts(&parameters, |name, value| {
        whole.parameters.get(name).is_some_and(|known| !same(known, value))
    });
    rename(&mut paths, PARAMETERS, &renamed_parameters);
    for (name, definition) in definitions {
        let name = renamed.get(&name).cloned().unwrap_or(name);
        match whole.definitions.get(&name) {
            Some(known) => unite_kinds(known.tree(), &definition),
            None => whole.definitions.add(name, Member::Tree(definition)),
        }
    }
    for (name, parameter) in parameters {
        whole.parameters.insert(renamed_parameters.get(&name).cloned().unwrap_or(name), parameter);
    }
    if let Value::Object(paths) = paths {
        for (path, item) in paths {
            whole.paths.add(path, Member::Tree(item));
        }
    }
}

/// New names for those that mean something else already.
fn conflicts(
    part: &Map<String, Value>,
    mut means_other: impl FnMut(&str, &Value) -> bool,
) -> BTreeMap<String, String> {
    let mut renamed = BTreeMap::new();
    for (name, value) in part {
        if !means_other(name, value) {
            continue;
        }
        // There are never more names than values.
        let numbered = (2_u32..).map(|number| format!("{name}_v{number}"));
        let free = |other: &String| !part.contains_key(other) && !means_other(other, value);
        if let Some(other) = numbered.into_iter().find(free) {
            renamed.insert(name.clone(), other);
        }
    }
    renamed
}

/// Whether two definitions mean the same, whatever kinds they are said to be of.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let plain = |members: &Map<String, Value>| members.keys().filter(|name| *name != KINDS).count();
            let is_equal = |(name, value): (&String, &Value)| name == KINDS || other.get(name) == Some(value);
            plain(one) == plain(other) && one.iter().all(is_equal)
        }
        (one, other) => one == other,
    }
}

fn unite_kinds(known: &mut Value, other: &Value) {
    let Some(Value::Array(others)) = other.get(KINDS) else { return };
    let Value::Object(known) = known else { return };
    let kinds = known.entry(KINDS).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(kinds) = kinds {
        for kind in others {
            if !kinds.contains(kind) {
                kinds.push(kind.clone());
            }
        }
    }
}

fn rename(value: &mut Value, prefix: &str, renamed: &BTreeMap<String, String>) {
    if renamed.is_empty() {
        return;
    }
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref")
                && let Some(name) =
                    reference.strip_prefix(prefix).and_then(|name| renamed.get(&unescape(name)))
            {
                *reference = format!("{prefix}{}", escape(name));
            }
            members.values_mut().for_each(|member| rename(member, prefix, renamed));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, prefix, renamed)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::member::Members;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(members) => members,
            other => panic!("{other} is no object"),
        }
    }

    #[test]
    fn a_part_has_its_paths_and_what_they_need() {
        let document = object(json!({
            "consumes": ["a/b"],
            "paths": {
                "/apis/a.io/v1/things": {
                    "parameters": [{"$ref": "#/parameters/p"}],
                    "get": {"responses": {"404": {"$ref": "#/responses/r"}}},
                },
                "/apis/apps/v1/deployments": {"get": {}},
            },
            "parameters": {"p": {"schema": {"$ref": "#/definitions/D"}}, "q": {}},
            "responses": {"r": {"description": "gone"}},
            "definitions": {"D": {"items": {"$ref": "#/definitions/E"}}, "E": {}, "F": {}},
        }));
        assert_eq!(
            part(&document, &GroupVersion::new("a.io", "v1")),
            json!({
                "paths": {"/apis/a.io/v1/things": {
                    "parameters": [{"$ref": "#/parameters/p"}],
                    "get": {"consumes": ["a/b"], "responses": {"404": {"description": "gone"}}},
                }},
                "parameters": {"p": {"schema": {"$ref": "#/definitions/D"}}},
                "definitions": {"D": {"items": {"$ref": "#/definitions/E"}}, "E": {}},
            })
        );
    }

    #[test]
    fn names_in_references_are_escaped() {
        let mut value = json!([{"$ref": "#/definitions/a~1b~0"}, {"$ref": "#/definitions/a/b~"}]);
        rename(&mut value, DEFINITIONS, &[("a/b~".to_owned(), "a/b~_v2".to_owned())].into());
        assert_eq!(value[0], json!({"$ref": "#/definitions/a~1b~0_v2"}));
    }

    #[test]
    fn names_that_are_taken_get_a_number() {
        let member = |(name, value): (&str, Value)| (name.to_owned(), Member::written(&value));
        let mut paths = Sorted::from(Members::from_iter([("/taken", json!({"own": {}}))].map(member)));
        let mut definitions = Sorted::from(Members::from_iter(
            [
                ("Same", json!({"type": "object", KINDS: [1]})),
                ("Other", json!({"type": "object"})),
                ("Other_v2", json!({"type": "integer"})),
            ]
            .map(member),
        ));
        let mut parameters = object(json!({"p": {"name": "own"}}));
        let mut whole =
            Whole { paths: &mut paths, definitions: &mut definitions, parameters: &mut parameters };
        add(
            &mut whole,
            object(json!({
                "paths": {"/taken": "theirs", "/new": [{"$ref": "#/definitions/Other"}, {"$ref": "#/parameters/p"}]},
                "definitions": {
                    "Same": {"type": "object", KINDS: [2]}, "Other": {"type": "string"},
                    "New": {"items": {"$ref": "#/definitions/Other"}},
                },
                "parameters": {"p": {"name": "theirs"}, "q": {}},
            })),
        );
        let (paths, definitions) = (paths.into_members(), definitions.into_members());
        assert_eq!(*paths["/taken"].value(), json!({"own": {}}));
        assert_eq!(
            *paths["/new"].value(),
            json!([{"$ref": "#/definitions/Other_v3"}, {"$ref": "#/parameters/p_v2"}])
        );
        assert_eq!(*definitions["Same"].value(), json!({"type": "object", KINDS: [1, 2]}));
        assert_eq!(*definitions["Other"].value(), json!({"type": "object"}));
        assert_eq!(*definitions["Other_v3"].value(), json!({"type": "string"}));
        assert_eq!(*definitions["New"].value(), json!({"items": {"$ref": "#/definitions/Other_v3"}}));
        assert_eq!(
            Value::Object(parameters),
            json!({"p": {"name": "own"}, "p_v2": {"name": "theirs"}, "q": {}})
        );
    }
}
