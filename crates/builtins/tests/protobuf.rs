//! Every kind in protobuf: against upstream's own test data, where it is there, and on bytes of no meaning.

mod support;

use std::fs;

use concord_builtins::{Release, protobuf, read_protobuf, schema, schemas};
use proptest::prelude::*;
use serde_json::{Map, Value};

use support::{data, files, json};

/// A kind's example in both forms.
struct Example {
    name: String,
    json: Map<String, Value>,
    protobuf: Vec<u8>,
}

fn examples() -> Vec<Example> {
    let Some(directory) = data(Release::LATEST) else { return Vec::new() };
    let mut examples = Vec::new();
    for path in files(&directory.join("api-testdata"), ".pb") {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let (group, version, kind) = parts(&name);
        if schema(group, version, kind).is_none() {
            continue;
        }
        let Value::Object(json) = json(&path.with_extension("json")) else { panic!("{name} is no object") };
        examples.push(Example { name, json, protobuf: fs::read(path).expect("a file") });
    }
    examples.sort_by(|a, b| a.name.cmp(&b.name));
    examples
}

/// Group, version and kind of a file.
fn parts(name: &str) -> (&str, &str, &str) {
    let (of, kind) = name.rsplit_once('.').expect("a version");
    let (group, version) = of.rsplit_once('.').expect("a group");
    (if group == "core" { "" } else { group }, version, kind)
}

fn encode(object: &Map<String, Value>) -> Vec<u8> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let codec = protobuf(group, version, text("kind")).expect("a kind");
    codec.encode(text("apiVersion"), text("kind"), object)
}

#[test]
fn every_kind_has_its_numbers() {
    for (group, version, kind) in schemas() {
        assert!(protobuf(group, version, kind).is_some(), "{group}/{version} {kind}");
    }
    assert!(protobuf("meta.k8s.io", "v1", "PartialObjectMetadata").is_some());
    assert!(protobuf("apps", "v1", "Pod").is_none());
}

#[test]
fn upstreams_examples_are_read_and_written() {
    let examples = examples();
    if examples.is_empty() {
        return;
    }
    assert!(examples.len() > 70, "{} examples", examples.len());
    let mut different = Vec::new();
    for Example { name, json, protobuf } in &examples {
        let mut expected = json.clone();
        let (group, version, kind) = parts(name);
        let schema = schema(group, version, kind).expect("a schema");
        schema.normalize(&mut expected).expect(name);
        match read_protobuf(protobuf) {
            Some(object) if object == expected => {}
            Some(object) => different.push(format!("{name}: {:?}", first_difference(&expected, &object))),
            None => different.push(format!("{name}: cannot be read")),
        }
        if encode(&expected) != *protobuf {
            different.push(format!("{name}: written otherwise"));
        }
    }
    assert!(different.is_empty(), "{} of {}:\n{}", different.len(), examples.len(), different.join("\n"));
}

fn first_difference(a: &Map<String, Value>, b: &Map<String, Value>) -> Option<(String, String, String)> {
    let names = a.keys().chain(b.keys());
    names.into_iter().find_map(|name| match (a.get(name), b.get(name)) {
        (a, b) if a == b => None,
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let (path, a, b) = first_difference(a, b)?;
            Some((format!("{name}.{path}"), a, b))
        }
        (a, b) => Some((name.clone(), format!("{a:?}"), format!("{b:?}"))),
    })
}

#[test]
fn nothing_in_an_object_is_written_as_go_writes_its_zeros() {
    let schema = schema("", "v1", "ConfigMap").expect("a schema");
    let Value::Object(empty) = schema.empty("ConfigMap", "v1") else { panic!("no object") };
    let metadata = b"\x0a\x00\x12\x00\x1a\x00\x22\x00\x2a\x00\x32\x00\x38\x00\x42\x00";
    let object = [&b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x12\x0a\x10"[..], metadata].concat();
    assert_eq!(encode(&empty), [&object[..], b"\x1a\x00\x22\x00"].concat());
}

#[test]
fn schemas_in_schemas_in_schemas_are_refused_at_a_depth() {
    let codec = protobuf("apiextensions.k8s.io", "v1", "CustomResourceDefinition").expect("a kind");
    // Field 28 of a schema is one that must not hold.
    let mut schema: Vec<u8> = Vec::new();
    let wrap = |number: u8, inner: &[u8]| {
        let mut outer = vec![];
        let tag = u32::from(number) << 3 | 2;
        if tag > 0x7f {
            outer.extend([tag as u8 | 0x80, (tag >> 7) as u8]);
        } else {
            outer.push(tag as u8);
        }
        let mut length = inner.len();
        while length > 0x7f {
            outer.push(length as u8 | 0x80);
            length >>= 7;
        }
        outer.push(length as u8);
        outer.extend_from_slice(inner);
        outer
    };
    for _ in 0..2000 {
        schema = wrap(28, &schema);
    }
    // spec, versions, schema, openAPIV3Schema.
    let crd = wrap(2, &wrap(7, &wrap(4, &wrap(1, &schema))));
    assert_eq!(
        codec.decode(&crd).map_err(|error| error.to_string()),
        Err("proto: exceeded max depth".to_owned())
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_without_meaning_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for (group, version, kind) in [("", "v1", "Pod"), ("apiextensions.k8s.io", "v1", "CustomResourceDefinition")] {
            let codec = protobuf(group, version, kind).expect("a kind");
            if let Ok(object) = codec.decode(&bytes) {
                codec.encode("v1", kind, &object);
            }
        }
    }

    #[test]
    fn damaged_examples_are_refused_or_read(at in any::<prop::sample::Index>(), byte in any::<u8>(), which in any::<prop::sample::Index>()) {
        let kinds = [("", "v1", "Pod"), ("apps", "apps/v1", "Deployment"), ("", "v1", "Service")];
        let (group, api_version, kind) = kinds[which.index(kinds.len())];
        let Some(Value::Object(empty)) = schema(group, "v1", kind).map(|schema| schema.empty(kind, api_version)) else {
            panic!("no object");
        };
        let mut body = encode(&empty);
        let at = at.index(body.len());
        body[at] = byte;
        drop(read_protobuf(&body));
        drop(read_protobuf(&body[..at]));
    }
}
