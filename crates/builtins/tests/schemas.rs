//! The field schemas against the published OpenAPI documents and the published objects of the release.

mod support;

use std::collections::{BTreeSet, HashMap};

use concord_builtins::{Release, schema, schemas};
use concord_codec::{FieldValidation, Options, decode};
use concord_merge::{
    strategic::{PatchSchema, PatchStrategy},
    typed::{ListKind, MapKind, Type},
};
use concord_schema::{Place, Scalar, Shape};
use serde_json::{Map, Value};
use support::{data, files, json};

/// The components of all OpenAPI documents.
fn components() -> Option<Map<String, Value>> {
    let documents = files(&data(Release::LATEST)?.join("openapi-spec/v3"), "_openapi.json");
    let mut components = Map::new();
    for document in documents {
        if let Some(schemas) = json(&document)["components"]["schemas"].as_object() {
            components.extend(schemas.clone());
        }
    }
    Some(components)
}

struct Comparison {
    components: Map<String, Value>,
    seen: BTreeSet<String>,
    fields: usize,
}

impl Comparison {
    /// The name of a component a schema refers to.
    fn reference(schema: &Value) -> Option<String> {
        let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str())?;
        reference.rsplit('/').next().map(str::to_owned)
    }

    fn compare(&mut self, path: &str, place: &Place, schema: &Value) {
        let component = Self::reference(schema);
        let atomic = schema["x-kubernetes-map-type"] == "atomic";
        let schema = match &component {
            None => schema.clone(),
            Some(name) => {
                let suffix = name.rsplit('.').take(2).collect::<Vec<_>>();
                assert_eq!(place.go_name(), format!("{}.{}", suffix[1], suffix[0]), "{path}");
                if !self.seen.insert(format!("{name} {atomic}")) {
                    return;
                }
                self.components[name].clone()
            }
        };
        let atomic = atomic || schema["x-kubernetes-map-type"] == "atomic";
        match place.shape() {
            Shape::Struct { .. } => self.structure(path, place, &schema, atomic),
            Shape::Map { .. } => {
                assert_eq!(place.kinds().map == Some(MapKind::Atomic), atomic, "{path}");
                let values = Type::values(place).expect("a map has values");
                self.compare(&format!("{path}.*"), &values, &schema["additionalProperties"]);
            }
            Shape::List { .. } => {
                self.list(path, place, &schema);
                let items = Type::items(place).expect("a list has items");
                self.compare(&format!("{path}[]"), &items, &schema["items"]);
            }
            Shape::Either { .. } => assert!(schema["type"].is_null(), "{path}"),
            Shape::Scalar(scalar) => scalar_is(path, *scalar, &schema),
        }
    }

    fn structure(&mut self, path: &str, place: &Place, schema: &Value, atomic: bool) {
        assert_eq!(place.kinds().map == Some(MapKind::Atomic), atomic, "{path}");
        let none = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&none);
        let found: Vec<_> = place.fields().map(|(name, _)| name.to_owned()).collect();
        let mut expected: Vec<_> = properties.keys().cloned().collect();
        expected.sort_unstable();
        assert_eq!(found, expected, "{path}");
        for (name, field) in place.fields() {
            let property = &properties[name];
            self.fields += 1;
            patch_is(&format!("{path}.{name}"), place, name, property);
            self.compare(&format!("{path}.{name}"), &field, property);
        }
    }

    fn list(&self, path: &str, place: &Place, schema: &Value) {
        let strategy = schema["x-kubernetes-patch-strategy"].as_str().unwrap_or_default();
        match (place.kinds().list.expect("a list"), schema["x-kubernetes-list-type"].as_str()) {
            (ListKind::Atomic, Some("atomic")) | (ListKind::Set, Some("set")) => {}
            (ListKind::Atomic, None) => assert!(!strategy.starts_with("merge"), "{path}"),
            (ListKind::Map(keys), Some("map")) => {
                assert_eq!(serde_json::json!(keys), schema["x-kubernetes-list-map-keys"], "{path}");
                self.key_defaults(path, place, keys, &schema["items"]);
            }
            (found, expected) => panic!("{path}: {found:?} instead of {expected:?}"),
        }
    }

    /// The schema's default of a key is what an item without it is taken to have.
    fn key_defaults(&self, path: &str, place: &Place, keys: &[String], items: &Value) {
        let items = &self.components[&Self::reference(items).expect("items with keys are structs")];
        let item = Type::items(place).expect("a list has items");
        for key in keys {
            let expected = items["properties"][key].get("default").cloned();
            assert_eq!(item.default_of(key), expected, "{path} {key}");
        }
    }
}

fn patch_is(path: &str, place: &Place, name: &str, property: &Value) {
    let field = PatchSchema::field(place, name).expect("a field of the struct");
    let expected = match property["x-kubernetes-patch-strategy"].as_str() {
        Some("merge" | "merge,retainKeys") => PatchStrategy::Merge,
        Some("replace") => PatchStrategy::Replace,
        _ => PatchStrategy::Default,
    };
    assert_eq!(field.strategy, expected, "{path}");
    assert_eq!(field.merge_key.as_deref(), property["x-kubernetes-patch-merge-key"].as_str(), "{path}");
}

fn scalar_is(path: &str, scalar: Scalar, schema: &Value) {
    let expected = match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("string"), None) => vec![Scalar::String],
        (Some("string"), Some("byte")) => vec![Scalar::Bytes],
        (Some("string"), Some("date-time")) => vec![Scalar::Time, Scalar::MicroTime],
        (Some("boolean"), None) => vec![Scalar::Bool],
        (Some("integer"), Some("int32")) => vec![Scalar::Int32],
        (Some("integer"), Some("int64")) => vec![Scalar::Int64],
        (Some("number"), Some("double")) => vec![Scalar::Float64],
        (Some("object"), None) => vec![Scalar::Raw, Scalar::FieldsV1],
        (None, Some("int-or-string")) => vec![Scalar::IntOrString],
        (None, None) => vec![Scalar::Quantity, Scalar::FreeForm],
        _ => Vec::new(),
    };
    assert!(expected.contains(&scalar), "{path}: {scalar:?} for {schema}");
}

#[test]
fn every_field_is_as_the_openapi_documents_tell() {
    let Some(components) = components() else { return };
    let mut kinds = HashMap::new();
    for (name, component) in &components {
        for kind in component["x-kubernetes-group-version-kind"].as_array().into_iter().flatten() {
            let part = |part: &str| kind[part].as_str().unwrap_or_default().to_owned();
            kinds.insert((part("group"), part("version"), part("kind")), name.clone());
        }
    }
    let mut comparison = Comparison { components, seen: BTreeSet::new(), fields: 0 };
    let mut others = 0;
    for (group, version, kind) in schemas() {
        // Kinds that only earlier or later releases have are in no document of this one.
        let Some(name) = kinds.get(&(group.to_owned(), version.to_owned(), kind.to_owned())) else {
            others += 1;
            continue;
        };
        let place = schema(group, version, kind).expect("it is listed").place().clone();
        let reference = serde_json::json!({"$ref": format!("#/components/schemas/{name}")});
        comparison.compare(kind, &place, &reference);
    }
    assert!(comparison.fields > 2700, "{} fields compared", comparison.fields);
    assert_eq!(others, 11);
}

#[test]
fn published_objects_survive_reading_and_writing() {
    let Some(data) = data(Release::LATEST) else { return };
    let mut survived = 0;
    for path in files(&data.join("api-testdata"), ".json") {
        let object = json(&path);
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        // Releases before this one are published too.
        let Some(schema) = schema(group, version, object["kind"].as_str().unwrap_or_default()) else {
            continue;
        };
        let options = Options {
            validation: FieldValidation::Strict,
            fields: Some(schema.fields()),
            ..Options::default()
        };
        let body = std::fs::read(&path).expect("a file of the data");
        let mut decoded = decode(&body, &options).expect("JSON");
        assert_eq!(decoded.violations, [], "{}", path.display());
        schema.normalize(&mut decoded.object).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(Value::Object(decoded.object), object, "{}", path.display());
        survived += 1;
    }
    assert!(survived > 80, "{survived} objects");
}

#[test]
fn empty_objects_are_what_go_writes_for_its_zero_values() {
    let empty = |group: &str, version: &str, kind: &str| {
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        schema(group, version, kind).expect("a kind").empty(kind, &api_version).to_string()
    };
    assert_eq!(empty("", "v1", "ConfigMap"), r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}"#);
    assert_eq!(
        empty("apps", "v1", "Deployment"),
        r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{},"spec":{"selector":null,"strategy":{},"template":{"metadata":{},"spec":{"containers":null}}},"status":{}}"#
    );
    assert_eq!(
        empty("rbac.authorization.k8s.io", "v1", "Role"),
        r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{},"rules":null}"#
    );
}

#[test]
fn wrong_types_are_refused_in_gos_words() {
    for (group, version, kind, body, expect) in [
        (
            "apps",
            "v1",
            "Deployment",
            r#"{"spec":{"replicas":"3"}}"#,
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "",
            "v1",
            "Pod",
            r#"{"spec":{"containers":[{"imagePullPolicy":1}]}}"#,
            "json: cannot unmarshal number into Go struct field Container.spec.containers.imagePullPolicy of type v1.PullPolicy",
        ),
        (
            "",
            "v1",
            "Pod",
            r#"{"spec":{"volumes":[{"emptyDir":"x"}]}}"#,
            "json: cannot unmarshal string into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource",
        ),
        (
            "",
            "v1",
            "ConfigMap",
            r#"{"data":{"a":1}}"#,
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            "",
            "v1",
            "ConfigMap",
            r#"{"metadata":{"labels":[]}}"#,
            "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
    ] {
        let schema = schema(group, version, kind).expect("a kind");
        let mut object = decode(body.as_bytes(), &Options::default()).expect("JSON").object;
        let error = schema.normalize(&mut object).expect_err("it does not fit");
        assert_eq!(error.to_string(), expect);
    }
}
