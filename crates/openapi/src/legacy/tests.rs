//! Each row of the reference's table of conversions.

use super::*;

fn version() -> GroupVersion {
    GroupVersion::new("old.io", "v1")
}

/// The conversion of a document with one operation, which has these members besides.
fn convert_with(operation: &Value, more: Value) -> Value {
    let mut document = json!({
        "swagger": "2.0", "info": {"title": "Old", "version": "1"},
        "paths": {"/apis/old.io/v1/things": {"post": operation}},
    });
    if let (Value::Object(document), Value::Object(more)) = (&mut document, more) {
        document.extend(more);
    }
    convert(document.as_object().expect("an object"), &version())
}

fn operation(operation: &Value, more: Value) -> Value {
    convert_with(operation, more)["paths"]["/apis/old.io/v1/things"]["post"].clone()
}

fn schema(schema: &Value) -> Value {
    super::schema::convert(schema)
}

#[test]
fn only_what_belongs_to_the_version_is_kept() {
    let thing = json!({"schema": {"$ref": "#/definitions/Thing"}});
    let document = json!({
        "paths": {
            "/apis/old.io/v1/things": {"get": {"responses": {"200": thing}}},
            "/apis/old.io/v10/things": {"get": {}},
            "/apis/apps/v1/deployments": {"get": {"responses": {"200": {"schema": {"$ref": "#/definitions/D"}}}}},
            "/version/": {"get": {}},
        },
        "definitions": {
            "Thing": {"properties": {"part": {"$ref": "#/definitions/Part"}, "next": {"$ref": "#/definitions/Thing"}}},
            "Part": {"type": "string"},
            "D": {},
        },
    });
    let converted = convert(document.as_object().expect("an object"), &version());
    let keys = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&converted["paths"]), ["/apis/old.io/v1/things"]);
    assert_eq!(keys(&converted["components"]["schemas"]), ["Part", "Thing"]);
    assert_eq!(converted["info"], json!({"title": "unknown", "version": "unknown", CONVERTED: "2.0"}));
    assert_eq!(converted["openapi"], "3.0.0");
}

#[test]
fn references_are_rewritten_everywhere() {
    let to = |name: &str| json!({"$ref": format!("#/definitions/{name}")});
    let now = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let converted = schema(&json!({
        "properties": {"p": to("P")}, "items": to("I"), "additionalProperties": to("A"), "not": to("N"),
        "allOf": [to("X")], "additionalItems": to("gone"), "definitions": {"D": to("gone")},
        "default": {"$ref": "a value"}, "example": to("a value"),
    }));
    assert_eq!(
        converted,
        json!({
            "properties": {"p": now("P")}, "items": now("I"), "additionalProperties": now("A"), "not": now("N"),
            "allOf": [now("X")], "default": {"$ref": "a value"}, "example": to("a value"),
        })
    );
    let beside = schema(&json!({"$ref": "#/definitions/P", "description": "d"}));
    assert_eq!(beside, json!({"allOf": [now("P")], "description": "d"}));
    assert_eq!(schema(&json!({"$ref": "other.json#/definitions/P"})), json!({}));
}

#[test]
fn what_is_referred_to_is_always_there() {
    let converted =
        convert_with(&json!({"responses": {"200": {"schema": {"$ref": "#/definitions/Gone"}}}}), json!({}));
    assert_eq!(converted["components"]["schemas"], json!({"Gone": {}}));
}

#[test]
fn shared_parameters_and_responses_are_put_where_they_are_used() {
    let converted = operation(
        &json!({
            "parameters": [{"$ref": "#/parameters/pretty-abc"}, {"$ref": "#/parameters/body-abc"}, {"$ref": "#/parameters/no"}],
            "responses": {"404": {"$ref": "#/responses/Gone"}},
        }),
        json!({
            "parameters": {
                "pretty-abc": {"name": "pretty", "in": "query", "type": "string", "uniqueItems": true},
                "body-abc": {"name": "body", "in": "body", "required": true, "description": "b", "schema": {"type": "object"}},
            },
            "responses": {"Gone": {"description": "gone", "schema": {"type": "string"}}},
            "produces": ["application/yaml"],
        }),
    );
    let pretty = json!({"name": "pretty", "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    assert_eq!(converted["parameters"], json!([pretty]));
    let body = json!({"content": {"application/json": {"schema": {"type": "object"}}}, "required": true, "description": "b"});
    assert_eq!(converted["requestBody"], body);
    let gone =
        json!({"description": "gone", "content": {"application/yaml": {"schema": {"type": "string"}}}});
    assert_eq!(converted["responses"]["404"], gone);
}

#[test]
fn bodies_are_known_by_their_place_not_by_their_name() {
    let parameter = json!({"name": "thing", "in": "body", "schema": {"$ref": "#/definitions/T"}});
    let converted = operation(&json!({"consumes": ["a/b", "c/d"], "parameters": [parameter]}), json!({}));
    let of = json!({"schema": {"$ref": "#/components/schemas/T"}});
    assert_eq!(converted["requestBody"], json!({"content": {"a/b": of, "c/d": of}}));
    assert!(converted.get("parameters").is_none());
}

#[test]
fn forms_are_bodies() {
    let parameters = json!([
        {"name": "a", "in": "formData", "type": "integer", "required": true},
        {"name": "f", "in": "formData", "type": "file", "description": "d"},
    ]);
    let converted = operation(&json!({"parameters": parameters}), json!({}));
    let schema = json!({
        "type": "object", "required": ["a"],
        "properties": {"a": {"type": "integer"}, "f": {"type": "string", "format": "binary", "description": "d"}},
    });
    assert_eq!(converted["requestBody"], json!({"content": {"multipart/form-data": {"schema": schema}}}));
}

#[test]
fn parameters_keep_all_that_they_say() {
    let parameters = json!([
        {"name": "l", "in": "query", "type": "array", "items": {"type": "string"}, "collectionFormat": "multi", "x-a": 1},
        {"name": "n", "in": "path", "type": "integer", "minimum": 0, "maximum": 9, "default": 0, "enum": [0, 1]},
        {"name": "c", "in": "query", "type": "array", "items": {"type": "string"}},
    ]);
    let converted = operation(&json!({"parameters": parameters}), json!({}));
    let list = json!({"type": "array", "items": {"type": "string"}});
    assert_eq!(
        converted["parameters"],
        json!([
            {"name": "l", "in": "query", "schema": list, "style": "form", "explode": true, "x-a": 1},
            {"name": "n", "in": "path", "required": true,
             "schema": {"type": "integer", "minimum": 0, "maximum": 9, "default": 0, "enum": [0, 1]}},
            {"name": "c", "in": "query", "schema": list, "style": "form", "explode": false},
        ])
    );
}

#[test]
fn responses_keep_their_headers_and_what_they_are_made_of() {
    let response =
        json!({"schema": {"type": "string"}, "headers": {"X-A": {"type": "integer", "description": "d"}}});
    let converted = operation(&json!({"responses": {"200": response}}), json!({"produces": ["a/b"]}));
    assert_eq!(
        converted["responses"]["200"],
        json!({
            "description": "", "content": {"a/b": {"schema": {"type": "string"}}},
            "headers": {"X-A": {"schema": {"type": "integer"}, "description": "d"}},
        })
    );
    let converted = operation(&json!({"responses": {"200": {"schema": {}}}}), json!({}));
    assert_eq!(converted["responses"]["200"]["content"], json!({"application/json": {"schema": {}}}));
}

#[test]
fn security_is_kept_in_the_words_of_version_3() {
    let converted = convert_with(
        &json!({}),
        json!({
            "security": [{"basic": []}], "tags": [{"name": "t"}], "host": "example.com", "basePath": "/x", "schemes": ["https"],
            "securityDefinitions": {
                "basic": {"type": "basic"},
                "key": {"type": "apiKey", "in": "header", "name": "authorization"},
                "app": {"type": "oauth2", "flow": "application", "tokenUrl": "https://t", "scopes": {"a": "b"}},
                "code": {"type": "oauth2", "flow": "accessCode", "tokenUrl": "https://t", "authorizationUrl": "https://a"},
            },
        }),
    );
    assert_eq!(converted["security"], json!([{"basic": []}]));
    assert!(converted.get("host").is_none() && converted.get("schemes").is_none());
    assert_eq!(
        converted["components"]["securitySchemes"],
        json!({
            "basic": {"type": "http", "scheme": "basic"},
            "key": {"type": "apiKey", "in": "header", "name": "authorization"},
            "app": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://t", "scopes": {"a": "b"}}}},
            "code": {"type": "oauth2", "flows": {"authorizationCode":
                {"tokenUrl": "https://t", "authorizationUrl": "https://a", "scopes": {}}}},
        })
    );
}

#[test]
fn schemas_say_what_version_2_could_not() {
    for (old, new) in [
        (json!({"discriminator": "kind"}), json!({"discriminator": {"propertyName": "kind"}})),
        (json!({"type": "string", "x-nullable": true}), json!({"type": "string", "nullable": true})),
        (
            json!({"type": "string", "format": "int-or-string"}),
            json!({"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"}),
        ),
        (json!({"type": "file"}), json!({})),
        (json!({"type": ["string", "null"]}), json!({"type": "string", "nullable": true})),
        (json!({"type": ["string", "integer"]}), json!({})),
        (json!({"type": "array"}), json!({"type": "array", "items": {}})),
        (
            json!({"x-kubernetes-preserve-unknown-fields": true}),
            json!({"x-kubernetes-preserve-unknown-fields": true}),
        ),
        (json!({"additionalProperties": false}), json!({"additionalProperties": false})),
        (json!(true), json!({})),
    ] {
        assert_eq!(schema(&old), new);
    }
    let quantity = "io.k8s.apimachinery.pkg.api.resource.Quantity";
    let either = json!({"oneOf": [{"type": "string"}, {"type": "number"}], "description": "d"});
    let old = json!({"type": "string", "description": "d"});
    assert_eq!(super::schema::definition(quantity, &old), either);
    assert_eq!(super::schema::definition("Quantity", &old), old);
}

#[test]
fn operations_keep_their_words() {
    let old = json!({
        "tags": ["t"], "operationId": "createThing", "summary": "s", "deprecated": true, "schemes": ["https"],
        "x-kubernetes-action": "post", "responses": {},
    });
    let mut new = old.clone();
    new.as_object_mut().expect("an object").remove("schemes");
    assert_eq!(operation(&old, json!({})), new);
}
