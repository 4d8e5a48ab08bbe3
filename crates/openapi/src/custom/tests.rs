use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Defined, EMBEDDED, Envelope, INT_OR_STRING, PRESERVE};
use crate::annotations::Texts;

fn defined(schema: &Value) -> Defined {
    let mut spec = json!({"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]});
    Defined::read(&mut spec, "v1").expect("the version")
}

fn lossless(schema: &Value) -> Value {
    defined(schema).lossless(&Envelope::lossless(&Texts::new()))
}

fn lossy(schema: &Value) -> Value {
    defined(schema).lossy(&Envelope::lossy(&Texts::new()))
}

/// What a schema becomes as the type of the field `a`, in version 3 and in version 2.
fn field(schema: &Value) -> (Value, Value) {
    let root = json!({"type": "object", "properties": {"a": schema}});
    (lossless(&root)["properties"]["a"].take(), lossy(&root)["properties"]["a"].take())
}

/// Fields, and what kube-apiserver 1.36 publishes of them.
#[test]
fn fields_are_published_as_upstream_does() {
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let same = |schema: Value| (schema.clone(), schema.clone(), schema);
    for (schema, v3, v2) in [
        same(json!({"type": "string", "enum": ["a"], "title": "T", "example": "x", "pattern": "^x"})),
        same(json!({"type": "integer", "minimum": 0, "maximum": 10, "exclusiveMaximum": true})),
        same(json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"})),
        same(json!({"type": "object", "additionalProperties": true})),
        same(json!({"x-kubernetes-preserve-unknown-fields": true})),
        (
            json!({"type": "string", "default": "x", "nullable": true}),
            json!({"type": "string", "default": "x", "nullable": true}),
            json!({}),
        ),
        (
            json!({INT_OR_STRING: true}),
            json!({INT_OR_STRING: true, "anyOf": either}),
            json!({INT_OR_STRING: true}),
        ),
        (
            json!({INT_OR_STRING: true, "anyOf": either, "pattern": "^a"}),
            json!({INT_OR_STRING: true, "anyOf": either, "pattern": "^a"}),
            json!({INT_OR_STRING: true, "pattern": "^a"}),
        ),
        (
            json!({INT_OR_STRING: true, "anyOf": [{"maximum": 5}], "allOf": [{"minimum": 1}]}),
            json!({INT_OR_STRING: true, "anyOf": [{"maximum": 5}], "allOf": [{"anyOf": either}, {"minimum": 1}]}),
            json!({INT_OR_STRING: true}),
        ),
        (
            json!({"type": "object", PRESERVE: true, "properties": {"a": {"type": "string"}}}),
            json!({"type": "object", PRESERVE: true, "properties": {"a": {"type": "string"}}}),
            json!({PRESERVE: true}),
        ),
        (
            json!({"type": "array", PRESERVE: true, "items": {"type": "string"}}),
            json!({"type": "array", PRESERVE: true, "items": {"type": "string"}}),
            json!({PRESERVE: true}),
        ),
        (
            json!({"type": "object", "required": ["a", "b"],
                   "properties": {"a": {"type": "string", "nullable": true}, "b": {"type": "string"}}}),
            json!({"type": "object", "required": ["a", "b"],
                   "properties": {"a": {"type": "string", "nullable": true}, "b": {"type": "string"}}}),
            json!({"type": "object", "required": ["b"], "properties": {"a": {}, "b": {"type": "string"}}}),
        ),
        (
            json!({"type": "object", "not": {"required": ["a"]}, "oneOf": [{"required": ["b"]}], "default": {}}),
            json!({"type": "object", "not": {"required": ["a"]}, "oneOf": [{"required": ["b"]}], "default": {}}),
            json!({"type": "object"}),
        ),
    ] {
        assert_eq!(field(&schema), (v3, v2), "{schema}");
    }
}

#[test]
fn without_a_schema_it_is_any_object() {
    let mut spec = json!({"versions": [{"name": "v1"}]});
    let defined = Defined::read(&mut spec, "v1").expect("the version");
    assert_eq!(defined.lossless(&Envelope::lossless(&Texts::new())), json!({"type": "object"}));
    assert!(Defined::read(&mut spec, "v2").is_none());
    let open = json!({"type": "object", PRESERVE: true, "properties": {"a": {"type": "string"}}});
    assert_eq!(lossy(&open), json!({"type": "object"}));
}

#[test]
fn what_the_author_says_of_the_envelope_stays() {
    let schema = json!({
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string", "enum": ["a/v1"]},
            "kind": {"type": "string", "description": "own"},
            "metadata": {"type": "object", "properties": {"name": {"maxLength": 20}}},
        },
    });
    let published = lossless(&schema);
    assert_eq!(published["properties"]["apiVersion"], json!({"type": "string", "enum": ["a/v1"]}));
    assert_eq!(published["properties"]["kind"], json!({"type": "string", "description": "own"}));
    let meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    let metadata = json!({
        "allOf": [{"$ref": format!("#/components/schemas/{meta}")}],
        "anyOf": [{"properties": {"name": {"maxLength": 20}}}],
    });
    assert_eq!(published["properties"]["metadata"], metadata);
    let old = lossy(&schema);
    assert_eq!(old["properties"]["kind"], json!({"type": "string"}));
    assert_eq!(old["properties"]["metadata"], json!({"$ref": format!("#/definitions/{meta}")}));
}

#[test]
fn embedded_resources_are_objects() {
    let schema = json!({"type": "object", EMBEDDED: true, "required": ["spec", "kind"], "properties": {"spec": {"type": "object"}}});
    let (v3, v2) = field(&schema);
    for published in [&v3, &v2] {
        assert_eq!(published["required"], json!(["spec", "kind", "apiVersion"]));
        assert_eq!(published["properties"]["kind"], json!({"type": "string"}));
    }
    let (v3, v2) = field(&json!({"type": "object", EMBEDDED: true, PRESERVE: true}));
    assert!(v3["properties"]["metadata"]["allOf"].is_array());
    assert_eq!(v2, json!({EMBEDDED: true, PRESERVE: true}));
}

#[test]
fn selectable_fields_are_told() {
    let mut spec = json!({"versions": [{
        "name": "v1",
        "selectableFields": [{"jsonPath": ".spec.color"}],
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }]});
    let defined = Defined::read(&mut spec, "v1").expect("the version");
    let published = defined.lossless(&Envelope::lossless(&Texts::new()));
    assert_eq!(published["x-kubernetes-selectable-fields"], json!([{"fieldPath": "spec.color"}]));
}

fn with(mut schema: Value, more: Value) -> Value {
    if let (Value::Object(schema), Value::Object(more)) = (&mut schema, more) {
        schema.extend(more);
    }
    schema
}

/// Schemas as definitions may have them.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string", "minLength": 0, "default": "", "format": "date-time"})),
        Just(json!({"type": "string", "enum": ["", "a"], "pattern": "^a?$", "title": "T"})),
        Just(
            json!({"type": "integer", "minimum": 0, "default": 9_007_199_254_740_993_i64, "format": "int64"})
        ),
        Just(json!({"type": "number", "multipleOf": 0.5, "maximum": 3, "exclusiveMaximum": true})),
        Just(json!({"type": "boolean", "default": false, "description": "D"})),
        Just(json!({INT_OR_STRING: true, "anyOf": [{"maximum": 5}, {"pattern": "x"}]})),
        Just(json!({INT_OR_STRING: true})),
        Just(json!({PRESERVE: true})),
        Just(
            json!({"type": "string", "externalDocs": {"url": "https://example.com"}, "example": {"a": [1]}})
        ),
    ];
    let extras = prop_oneof![
        Just(json!({})),
        Just(json!({"nullable": true, "default": null})),
        Just(json!({"allOf": [{"not": {"enum": [3]}}], "anyOf": [{}], "oneOf": [{"maximum": 1}]})),
        Just(json!({"x-kubernetes-validations": [
            {"rule": "true", "message": "m", "optionalOldSelf": true},
            {"rule": "self == oldSelf", "messageExpression": "'m'", "reason": "FieldValueForbidden", "fieldPath": ".a"},
        ]})),
    ];
    leaf.prop_recursive(5, 60, 5, move |inner| {
        let fields = proptest::collection::btree_map("[a-c]{1,2}|x-own|items", inner.clone(), 0..4);
        let object = (fields, any::<bool>()).prop_map(|(fields, embedded)| {
            let required: Vec<&String> = fields.keys().take(1).collect();
            let object = json!({"type": "object", "required": required, "properties": fields});
            if embedded { with(object, json!({EMBEDDED: true})) } else { object }
        });
        let list_type = prop_oneof![
            Just(json!({})),
            Just(json!({"x-kubernetes-list-type": "atomic"})),
            Just(json!({"x-kubernetes-list-type": "set"})),
            Just(json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]})),
        ];
        let list = (inner.clone(), list_type)
            .prop_map(|(items, of)| with(json!({"type": "array", "items": items, "minItems": 0}), of));
        let map_type = prop_oneof![Just("atomic"), Just("granular")];
        let map = (inner, map_type).prop_map(
            |(values, of)| json!({"type": "object", "additionalProperties": values, "x-kubernetes-map-type": of}),
        );
        (prop_oneof![3 => object, 1 => list, 1 => map], extras.clone())
            .prop_map(|(schema, extras)| with(schema, extras))
    })
}

/// Whether all that the author says is there, and nothing else but what is added on purpose.
fn assert_kept(published: &Value, author: &Value, is_object: bool) {
    let (Value::Object(published), Value::Object(author)) = (published, author) else {
        return assert_eq!(published, author);
    };
    for (name, said) in author {
        match (name.as_str(), &published[name]) {
            ("properties", Value::Object(fields)) => {
                let said = said.as_object().expect("fields");
                said.iter().for_each(|(field, said)| assert_kept(&fields[field], said, is_embedded(said)));
                let added = fields.keys().filter(|field| !said.contains_key(*field));
                assert_eq!(added.count(), if is_object { 3 } else { 0 }, "{fields:?}");
            }
            ("items" | "additionalProperties", inner) => assert_kept(inner, said, is_embedded(said)),
            ("required", Value::Array(names)) if is_object => {
                let said = said.as_array().expect("names");
                assert!(said.iter().all(|name| names.contains(name)));
            }
            ("allOf", Value::Array(all)) if author.contains_key(INT_OR_STRING) => {
                assert_eq!(Value::from(&all[1..]), *said);
            }
            (_, published) => assert_eq!(published, said, "{name}"),
        }
    }
    let added = published.keys().filter(|name| !author.contains_key(*name)).map(String::as_str);
    let allowed = |name: &str| match name {
        "anyOf" | "allOf" => author.contains_key(INT_OR_STRING),
        "properties" | "required" => is_object,
        _ => false,
    };
    added.for_each(|name| assert!(allowed(name), "{name} was added"));
}

fn is_embedded(schema: &Value) -> bool {
    schema[EMBEDDED] == true
}

/// What old clients cannot read is nowhere.
fn assert_readable(schema: &Map<String, Value>) {
    for name in ["allOf", "anyOf", "oneOf", "not", "default", "nullable"] {
        assert!(!schema.contains_key(name), "{name} in {schema:?}");
    }
    // What every object has is added to embedded resources, typed or not.
    let untyped = !schema.contains_key("type") && !schema.contains_key(EMBEDDED);
    assert!(!untyped || !(schema.contains_key("items") || schema.contains_key("properties")), "{schema:?}");
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values);
    let inner = ["items", "additionalProperties"].into_iter().filter_map(|name| schema.get(name));
    fields.chain(inner).filter_map(Value::as_object).for_each(assert_readable);
}

/// What version 2 says of a schema: the documented transformation, rule by rule.
fn documented(author: &Value) -> Value {
    let Value::Object(said) = author else { return author.clone() };
    let is = |name: &str| said.get(name) == Some(&Value::Bool(true));
    let (nullable, open) = (is("nullable"), is(PRESERVE));
    let is_list = said.get("type") == Some(&json!("array"));
    let has_items = said.contains_key("items") && !nullable && !open;
    let may_be_null = |name: &Value| {
        let field = said.get("properties").and_then(|fields| fields.get(name.as_str()?));
        !nullable && !open && field.is_some_and(|field| field["nullable"] == true)
    };
    let mut published = Map::new();
    for (name, value) in said {
        let value = match (name.as_str(), value) {
            ("allOf" | "anyOf" | "oneOf" | "not" | "default" | "nullable", _) => continue,
            ("items" | "properties" | "type", _) if nullable => continue,
            ("items" | "properties", _) if open => continue,
            ("type", ty) if open && ty == "object" || is_list && !has_items => continue,
            ("properties", Value::Object(fields)) if fields.is_empty() => continue,
            ("properties", Value::Object(fields)) => {
                fields.iter().map(|(name, field)| (name.clone(), documented(field))).collect()
            }
            ("items" | "additionalProperties", inner) => documented(inner),
            ("required", _) if said.get("additionalProperties").is_some_and(|of| of["nullable"] == true) => {
                continue;
            }
            ("required", Value::Array(names)) => {
                let names: Vec<Value> = names.iter().filter(|name| !may_be_null(name)).cloned().collect();
                if names.is_empty() {
                    continue;
                }
                names.into()
            }
            (_, value) => value.clone(),
        };
        published.insert(name.clone(), value);
    }
    match is(EMBEDDED) && !open {
        true => as_object(published.into(), true),
        false => published.into(),
    }
}

/// With what every object has.
fn as_object(mut schema: Value, embedded: bool) -> Value {
    let metadata = json!({"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"});
    for (name, of) in [
        ("apiVersion", json!({"type": "string"})),
        ("kind", json!({"type": "string"})),
        ("metadata", metadata),
    ] {
        schema["properties"][name] = of;
    }
    if embedded {
        let mut required = schema["required"].as_array().cloned().unwrap_or_default();
        required.extend(["kind".into(), "apiVersion".into()]);
        schema["required"] = required.into();
    }
    schema
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_an_author_says_is_lost(spec in schemas()) {
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        assert_kept(&lossless(&schema), &schema, true);
    }

    #[test]
    fn what_an_author_says_of_every_object_is_kept(
        names in "[a-z]{1,3}", kinds in "[A-Z]{1,3}", length in 0_u32..70, embedded in any::<bool>(),
    ) {
        let name = json!({"type": "string", "maxLength": length, "pattern": names});
        let object = json!({"type": "object", "properties": {
            "metadata": {"type": "object", "properties": {"name": name, "generateName": {"minLength": 0}}},
            "kind": {"type": "string", "enum": [kinds]},
            "apiVersion": {"type": "string", "pattern": names},
        }});
        let published = match embedded {
            true => field(&with(object.clone(), json!({EMBEDDED: true}))).0,
            false => lossless(&object),
        };
        let (published, author) = (&published["properties"], &object["properties"]);
        assert_eq!(published["metadata"]["anyOf"], json!([{"properties": author["metadata"]["properties"]}]));
        assert_eq!(published["metadata"]["allOf"].as_array().map(Vec::len), Some(1));
        assert_eq!((&published["kind"], &published["apiVersion"]), (&author["kind"], &author["apiVersion"]));
    }

    #[test]
    fn old_clients_can_read_version_2(spec in schemas()) {
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        assert_readable(lossy(&schema).as_object().expect("an object"));
    }

    #[test]
    fn version_2_is_the_documented_transformation(spec in schemas()) {
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        assert_eq!(lossy(&schema), as_object(documented(&schema), false));
    }
}
