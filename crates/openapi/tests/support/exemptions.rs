//! What our documents say otherwise than upstream's: taken out of both, nothing differs.

use serde_json::{Map, Value};

/// Something that may differ.
pub(crate) struct Exemption {
    /// What docs/compatibility.md calls it.
    pub(crate) told: &'static str,
    /// Takes it out of a document.
    pub(crate) apply: fn(&mut Value),
}

/// Everything that may differ.
pub(crate) const ALL: &[Exemption] = &[
    Exemption {
        told: "Descriptions of operations, parameters, lists and their fields, and of watch events",
        apply: without_own_words,
    },
    Exemption {
        told: "What single values of an enum mean is not said in descriptions, only which there are",
        apply: without_meanings,
    },
    Exemption {
        told: "CBOR, and protobuf for discovery that is not aggregated, are not among the media types",
        apply: without_unserved_types,
    },
    Exemption {
        told: "The query parameters of `connect` operations and of logs",
        apply: without_options_of_connections,
    },
    Exemption {
        told: "A deleted Namespace is said to be answered with the object",
        apply: without_answer_of_namespaces,
    },
    Exemption { told: "`required` and media types are in the order of the alphabet", apply: sort },
    Exemption {
        told: "DeleteOptions and WatchEvent are kinds of the versions that are served",
        apply: without_versions_of_options,
    },
    Exemption { told: "`/logs` has no document", apply: without_logs },
];

/// Every operation of a document, with its path and method.
fn operations(document: &mut Value) -> impl Iterator<Item = (&String, &String, &mut Value)> {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    paths.flat_map(|(path, item)| {
        let members = item.as_object_mut().into_iter().flatten();
        members
            .filter(|(name, _)| *name != "parameters")
            .map(move |(name, operation)| (path, name, operation))
    })
}

fn path_items(document: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    document["paths"].as_object_mut().into_iter().flatten()
}

fn parameters(of: &mut Value) -> Option<&mut Vec<Value>> {
    of.get_mut("parameters").and_then(Value::as_array_mut)
}

/// The types, of either version.
fn schemas(document: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    let place = if document.get("definitions").is_some() { "/definitions" } else { "/components/schemas" };
    document.pointer_mut(place).and_then(Value::as_object_mut).into_iter().flatten()
}

fn remove(of: &mut Value, name: &str) {
    of.as_object_mut().map(|members| members.remove(name));
}

fn without_own_words(document: &mut Value) {
    let undescribed = |of: &mut Value| {
        parameters(of).into_iter().flatten().for_each(|parameter| remove(parameter, "description"));
    };
    path_items(document).for_each(|(_, item)| undescribed(item));
    for (_, _, operation) in operations(document) {
        remove(operation, "description");
        undescribed(operation);
    }
    for (name, schema) in schemas(document) {
        if (name.ends_with("List") && !name.contains(".meta.v1.")) || name.ends_with(".WatchEvent") {
            remove(schema, "description");
            let fields = schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten();
            fields.for_each(|(_, field)| remove(field, "description"));
        }
    }
}

/// Upstream's published files have no such part at all.
fn without_meanings(document: &mut Value) {
    match document {
        Value::Array(items) => items.iter_mut().for_each(without_meanings),
        Value::Object(members) => {
            if let Some(Value::String(text)) = members.get_mut("description") {
                let end = text.find("\n\nPossible enum values:").unwrap_or(text.len());
                text.truncate(end);
                text.truncate(text.trim_end().len());
            }
            members.values_mut().for_each(without_meanings);
        }
        _ => {}
    }
}

fn without_unserved_types(document: &mut Value) {
    for (_, _, operation) in operations(document) {
        let is_discovery = operation.get("x-kubernetes-action").is_none();
        let is_served = |name: &str| {
            let is_protobuf = name.starts_with("application/vnd.kubernetes.protobuf");
            !name.contains("cbor") && (!is_protobuf || !is_discovery)
        };
        let served = |of: &mut Value| {
            let types = of.get_mut("content").and_then(Value::as_object_mut);
            types.into_iter().for_each(|types| types.retain(|name, _| is_served(name)));
        };
        operation.get_mut("requestBody").into_iter().for_each(served);
        let responses = operation.get_mut("responses").and_then(Value::as_object_mut).into_iter().flatten();
        responses.for_each(|(_, response)| served(response));
        for name in ["consumes", "produces"] {
            let types = operation.get_mut(name).and_then(Value::as_array_mut);
            types
                .into_iter()
                .for_each(|types| types.retain(|name| is_served(name.as_str().unwrap_or_default())));
        }
    }
}

fn without_options_of_connections(document: &mut Value) {
    let is_connection = |path: &str| {
        let ends = ["attach", "exec", "log", "portforward", "proxy", "proxy/{path}"];
        ends.iter().any(|end| path.ends_with(&format!("/{{name}}/{end}")))
    };
    let untold = |of: &mut Value| {
        parameters(of).into_iter().for_each(|all| all.retain(|parameter| parameter["in"] == "path"));
        if parameters(of).is_some_and(|all| all.is_empty()) {
            remove(of, "parameters");
        }
    };
    for (_, item) in path_items(document).filter(|(path, _)| is_connection(path)) {
        untold(item);
        item.as_object_mut().into_iter().flatten().for_each(|(_, operation)| untold(operation));
    }
}

fn without_answer_of_namespaces(document: &mut Value) {
    for (path, method, operation) in operations(document) {
        if path == "/api/v1/namespaces/{name}" && method == "delete" {
            remove(operation, "responses");
        }
    }
}

fn sort(document: &mut Value) {
    match document {
        Value::Array(items) => items.iter_mut().for_each(sort),
        Value::Object(members) => {
            for name in ["required", "consumes", "produces"] {
                if let Some(Value::Array(names)) = members.get_mut(name) {
                    names.sort_by_key(ToString::to_string);
                }
            }
            members.values_mut().for_each(sort);
        }
        _ => {}
    }
}

fn without_versions_of_options(document: &mut Value) {
    for (name, schema) in schemas(document) {
        if name.ends_with(".DeleteOptions") || name.ends_with(".WatchEvent") {
            remove(schema, "x-kubernetes-group-version-kind");
        }
    }
}

fn without_logs(document: &mut Value) {
    let paths: Option<&mut Map<String, Value>> = document["paths"].as_object_mut();
    paths.into_iter().for_each(|paths| paths.retain(|path, _| !path.starts_with("/logs")));
}
