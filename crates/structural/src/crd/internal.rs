//! Values as upstream prints its internal types: all fields of Go's structs, by their Go names, in their order.

use concord_meta::go;
use serde_json::Value;

use super::spec::Version;
use crate::{Object, props::Props};

/// The type of a field of a Go struct.
#[derive(Clone, Copy)]
enum Type {
    /// A string, empty when it is absent.
    Text,
    /// A boolean, false when it is absent.
    Flag,
    /// An integer, 0 when it is absent.
    Number,
    /// Anything, null when it is absent.
    Any,
    /// A pointer to a struct.
    Struct(&'static [Field]),
    /// A list or a map of structs.
    Structs(&'static [Field]),
    /// `items`.
    SchemaOrList,
    /// `additionalProperties`.
    SchemaOrBool,
    /// Dependencies.
    SchemasOrTexts,
}

/// The Go name and the JSON name of a field, and its type.
type Field = (&'static str, &'static str, Type);

const RULE: &[Field] = &[
    ("Rule", "rule", Type::Text),
    ("Message", "message", Type::Text),
    ("MessageExpression", "messageExpression", Type::Text),
    ("Reason", "reason", Type::Any),
    ("FieldPath", "fieldPath", Type::Text),
    ("OptionalOldSelf", "optionalOldSelf", Type::Any),
];

const DOCS: &[Field] = &[("Description", "description", Type::Text), ("URL", "url", Type::Text)];

/// A static, because it contains itself.
static SCHEMA: [Field; 44] = [
    ("ID", "id", Type::Text),
    ("Schema", "$schema", Type::Text),
    ("Ref", "$ref", Type::Any),
    ("Description", "description", Type::Text),
    ("Type", "type", Type::Text),
    ("Nullable", "nullable", Type::Flag),
    ("Format", "format", Type::Text),
    ("Title", "title", Type::Text),
    ("Default", "default", Type::Any),
    ("Maximum", "maximum", Type::Any),
    ("ExclusiveMaximum", "exclusiveMaximum", Type::Flag),
    ("Minimum", "minimum", Type::Any),
    ("ExclusiveMinimum", "exclusiveMinimum", Type::Flag),
    ("MaxLength", "maxLength", Type::Any),
    ("MinLength", "minLength", Type::Any),
    ("Pattern", "pattern", Type::Text),
    ("MaxItems", "maxItems", Type::Any),
    ("MinItems", "minItems", Type::Any),
    ("UniqueItems", "uniqueItems", Type::Flag),
    ("MultipleOf", "multipleOf", Type::Any),
    ("Enum", "enum", Type::Any),
    ("MaxProperties", "maxProperties", Type::Any),
    ("MinProperties", "minProperties", Type::Any),
    ("Required", "required", Type::Any),
    ("Items", "items", Type::SchemaOrList),
    ("AllOf", "allOf", Type::Structs(&SCHEMA)),
    ("OneOf", "oneOf", Type::Structs(&SCHEMA)),
    ("AnyOf", "anyOf", Type::Structs(&SCHEMA)),
    ("Not", "not", Type::Struct(&SCHEMA)),
    ("Properties", "properties", Type::Structs(&SCHEMA)),
    ("AdditionalProperties", "additionalProperties", Type::SchemaOrBool),
    ("PatternProperties", "patternProperties", Type::Structs(&SCHEMA)),
    ("Dependencies", "dependencies", Type::SchemasOrTexts),
    ("AdditionalItems", "additionalItems", Type::SchemaOrBool),
    ("Definitions", "definitions", Type::Structs(&SCHEMA)),
    ("ExternalDocs", "externalDocs", Type::Struct(DOCS)),
    ("Example", "example", Type::Any),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Type::Any),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Type::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Type::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Type::Any),
    ("XListType", "x-kubernetes-list-type", Type::Any),
    ("XMapType", "x-kubernetes-map-type", Type::Any),
    ("XValidations", "x-kubernetes-validations", Type::Structs(RULE)),
];

const SCALE: &[Field] = &[
    ("SpecReplicasPath", "specReplicasPath", Type::Text),
    ("StatusReplicasPath", "statusReplicasPath", Type::Text),
    ("LabelSelectorPath", "labelSelectorPath", Type::Any),
];

const SUBRESOURCES: &[Field] =
    &[("Status", "status", Type::Struct(&[])), ("Scale", "scale", Type::Struct(SCALE))];

const COLUMN: &[Field] = &[
    ("Name", "name", Type::Text),
    ("Type", "type", Type::Text),
    ("Format", "format", Type::Text),
    ("Description", "description", Type::Text),
    ("Priority", "priority", Type::Number),
    ("JSONPath", "jsonPath", Type::Text),
];

static VALIDATION: [Field; 1] = [("OpenAPIV3Schema", "openAPIV3Schema", Type::Struct(&SCHEMA))];

static VERSION: [Field; 9] = [
    ("Name", "name", Type::Text),
    ("Served", "served", Type::Flag),
    ("Storage", "storage", Type::Flag),
    ("Deprecated", "deprecated", Type::Flag),
    ("DeprecationWarning", "deprecationWarning", Type::Any),
    ("Schema", "schema", Type::Struct(&VALIDATION)),
    ("Subresources", "subresources", Type::Struct(SUBRESOURCES)),
    ("AdditionalPrinterColumns", "additionalPrinterColumns", Type::Structs(COLUMN)),
    ("SelectableFields", "selectableFields", Type::Structs(&[("JSONPath", "jsonPath", Type::Text)])),
];

/// The versions of a spec, without what all of them have in common.
pub(super) fn versions(versions: &[Version<'_>]) -> String {
    let shown: Vec<_> = versions.iter().map(version).collect();
    format!("[{}]", shown.join(","))
}

fn version(version: &Version<'_>) -> String {
    let own = |name: &str| match name {
        "schema" => version.parts.schema.is_some(),
        "subresources" => version.parts.subresources.is_some(),
        "additionalPrinterColumns" => version.parts.columns.is_some(),
        "selectableFields" => version.parts.selectable.is_some(),
        _ => true,
    };
    structure(&VERSION, |name| version.props.0.get(name).filter(|_| own(name)))
}

/// A schema.
pub(super) fn schema(schema: Props<'_>) -> String {
    object(&SCHEMA, schema.0)
}

/// The `items` of a schema.
pub(super) fn items(schema: Props<'_>) -> String {
    value(Type::SchemaOrList, schema.0.get("items"))
}

/// A rule.
pub(super) fn rule(rule: Props<'_>) -> String {
    object(RULE, rule.0)
}

/// The Go names of the fields that a schema has.
pub(super) fn fields_of_schema(schema: Props<'_>) -> impl Iterator<Item = &'static str> {
    let present = move |(_, name, kind): &&Field| match (kind, schema.0.get(*name)) {
        (_, None | Some(Value::Null)) => false,
        (Type::Text, Some(value)) => value.as_str() != Some(""),
        (Type::Flag, Some(value)) => *value == Value::Bool(true),
        _ => true,
    };
    SCHEMA.iter().filter(present).map(|(go_name, ..)| *go_name)
}

fn object(fields: &[Field], object: &Object) -> String {
    structure(fields, |name| object.get(name))
}

fn structure<'a>(fields: &[Field], get: impl Fn(&str) -> Option<&'a Value>) -> String {
    let member = |(go_name, name, kind): &Field| format!("\"{go_name}\":{}", value(*kind, get(name)));
    let members: Vec<_> = fields.iter().map(member).collect();
    format!("{{{}}}", members.join(","))
}

fn value(kind: Type, value: Option<&Value>) -> String {
    let value = value.filter(|value| !value.is_null());
    match (kind, value) {
        (Type::Text, None) => "\"\"".to_owned(),
        (Type::Flag, None) => "false".to_owned(),
        (Type::Number, None) => "0".to_owned(),
        (_, None) => "null".to_owned(),
        (Type::Struct(fields), Some(Value::Object(members))) => object(fields, members),
        (Type::Structs(fields), Some(Value::Array(items))) => {
            list(items, |item| self::value(Type::Struct(fields), Some(item)))
        }
        (Type::Structs(fields), Some(Value::Object(members))) => map(members, Type::Struct(fields)),
        (Type::SchemaOrList, Some(Value::Array(items))) => {
            format!(
                "{{\"Schema\":null,\"JSONSchemas\":{}}}",
                list(items, |item| self::value(Type::Struct(&SCHEMA), Some(item)))
            )
        }
        (Type::SchemaOrList, Some(value)) => {
            format!("{{\"Schema\":{},\"JSONSchemas\":null}}", self::value(Type::Struct(&SCHEMA), Some(value)))
        }
        (Type::SchemaOrBool, Some(Value::Bool(allows))) => format!("{{\"Allows\":{allows},\"Schema\":null}}"),
        (Type::SchemaOrBool, Some(value)) => {
            format!("{{\"Allows\":true,\"Schema\":{}}}", self::value(Type::Struct(&SCHEMA), Some(value)))
        }
        (Type::SchemasOrTexts, Some(Value::Object(members))) => map(members, Type::SchemasOrTexts),
        (Type::SchemasOrTexts, Some(value @ Value::Array(_))) => {
            format!("{{\"Schema\":null,\"Property\":{}}}", go::json(value))
        }
        (_, Some(value)) => go::json(value),
    }
}

fn list(items: &[Value], show: impl Fn(&Value) -> String) -> String {
    let items: Vec<_> = items.iter().map(show).collect();
    format!("[{}]", items.join(","))
}

fn map(members: &Object, kind: Type) -> String {
    let members = members.iter().map(|(name, value)| {
        format!("{}:{}", go::json(&Value::from(name.as_str())), self::value(kind, Some(value)))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}
