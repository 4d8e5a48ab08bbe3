use serde_json::{Value, json};

use super::{encode, messages, read::decode, table::Member, table::Type};
use crate::components::Dialect;

#[test]
fn every_message_that_is_named_is_there() {
    for dialect in [Dialect::V2, Dialect::V3] {
        let messages = messages(dialect);
        for name in messages.names() {
            for member in messages.members(name) {
                if let Member::Named { ty: Type::Message(of), .. }
                | Member::Others { ty: Type::Message(of), .. }
                | Member::Choice { ty: Type::Message(of), .. } = member
                {
                    assert!(!messages.members(of).is_empty(), "{name} has a {of}");
                }
            }
        }
    }
}

#[test]
fn fields_stand_where_foreign_decoders_look_for_them() {
    let document = json!({"openapi": "3.0.0", "paths": {"/a": {"get": {"operationId": "x"}}}});
    let path_item = [b"\x22\x03\x2a\x01x".as_slice()].concat();
    let named = [b"\x0a\x02/a\x12\x05".as_slice(), &path_item].concat();
    let paths = [b"\x0a\x0b".as_slice(), &named].concat();
    let expected = [b"\x0a\x053.0.0\x22\x0d".as_slice(), &paths].concat();
    assert_eq!(encode(&document, Dialect::V3), expected);
}

fn schema() -> Value {
    json!({
        "type": "object",
        "description": "words: with # marks",
        "required": ["a", "b"],
        "properties": {
            "$ref": {"type": "string"},
            "x-own": {"type": "boolean", "default": false},
            "a": {"type": "integer", "format": "int64", "minimum": 0, "maximum": -3, "default": 9_007_199_254_740_993_i64},
            "b": {"type": "number", "multipleOf": 0.5, "minimum": 0, "default": 0, "exclusiveMinimum": true},
            "c": {"type": "object", "additionalProperties": {"type": "string"}, "default": {"k": ["v", 1, null]}},
            "d": {"type": "array", "items": {"type": "string"}, "default": ["x"], "minItems": 0, "maxItems": 3},
            "e": {"type": "string", "default": "", "enum": ["", "true", "1", "a: b"], "minLength": 0, "pattern": "^\\d+$"},
            "f": {"type": "object", "additionalProperties": false, "minProperties": 0, "default": {}},
            "g": {"nullable": true, "default": null, "type": "string"},
            "h": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "i": {"not": {"pattern": "x"}, "oneOf": [{"required": ["a"]}], "example": {"a": 1}, "title": "T"},
            "j": {"externalDocs": {"url": "https://example.com", "description": "d"}, "type": "string"},
        },
        "x-kubernetes-validations": [{"rule": "self.a <= self.b", "message": "no: \"never\""}],
        "x-kubernetes-group-version-kind": [{"group": "", "kind": "A", "version": "v1"}],
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

#[test]
fn nothing_is_lost_in_version_3() {
    let document = json!({
        "openapi": "3.0.0",
        "info": {"title": "T", "version": "1"},
        "paths": {"/a": {
            "parameters": [{"name": "name", "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}}],
            "get": {
                "operationId": "x", "tags": ["t"], "description": "d", "x-kubernetes-action": "get",
                "requestBody": {"content": {"*/*": {"schema": {"$ref": "#/components/schemas/A"}}}, "required": true},
                "responses": {
                    "200": {"description": "OK", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}},
                    "default": {"description": "other"},
                },
            },
        }},
        "components": {
            "schemas": {"A": schema()},
            "securitySchemes": {"B": {"type": "apiKey", "in": "header", "name": "authorization"}},
        },
    });
    assert_eq!(decode(&encode(&document, Dialect::V3), Dialect::V3), document);
}

#[test]
fn nothing_is_lost_in_version_2() {
    let mut schema = schema();
    for name in ["h", "i", "g"] {
        schema["properties"].as_object_mut().expect("properties").remove(name);
    }
    let document = json!({
        "swagger": "2.0",
        "info": {"title": "T", "version": "1"},
        "paths": {"/a": {"get": {
            "consumes": ["*/*"], "produces": ["application/json"], "schemes": ["https"],
            "operationId": "x",
            "parameters": [
                {"$ref": "#/parameters/p"},
                {"name": "body", "in": "body", "required": true, "schema": {"$ref": "#/definitions/A"}},
                {"name": "q", "in": "query", "type": "string", "uniqueItems": true},
                {"name": "name", "in": "path", "required": true, "type": "string", "uniqueItems": true},
            ],
            "responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/A"}}},
        }}},
        "definitions": {"A": schema},
        "parameters": {"p": {"name": "p", "in": "query", "type": "integer", "uniqueItems": true}},
        "security": [{"B": []}],
        "securityDefinitions": {"B": {"type": "apiKey", "in": "header", "name": "authorization"}},
    });
    assert_eq!(decode(&encode(&document, Dialect::V2), Dialect::V2), document);
}
