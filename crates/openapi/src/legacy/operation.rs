//! Operations of version 2 in version 3.

use serde_json::{Map, Value, json};

use super::{schema, unescape};

const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];
/// What an operation says in both versions.
const PLAIN: [&str; 7] =
    ["tags", "summary", "description", "externalDocs", "operationId", "deprecated", "security"];
/// What a parameter says about itself in version 2 and its schema says in version 3.
const OF_SCHEMA: [&str; 17] = [
    "type",
    "format",
    "items",
    "default",
    "enum",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "x-nullable",
];
const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";
const FORM_WITH_FILES: &str = "multipart/form-data";

/// What the operations of a document share.
pub(super) struct Shared<'a> {
    parameters: Option<&'a Map<String, Value>>,
    responses: Option<&'a Map<String, Value>>,
    consumes: Vec<String>,
    produces: Vec<String>,
}

/// What a list of parameters says.
#[derive(Default)]
struct Parameters {
    /// Those of version 3.
    plain: Vec<Value>,
    body: Option<Value>,
    form: Vec<Value>,
}

impl<'a> Shared<'a> {
    pub(super) fn of(document: &'a Map<String, Value>) -> Self {
        let map = |name: &str| document.get(name).and_then(Value::as_object);
        Self {
            parameters: map("parameters"),
            responses: map("responses"),
            consumes: media_types(document.get("consumes")),
            produces: media_types(document.get("produces")),
        }
    }

    pub(super) fn path_item(&self, item: &Value) -> Value {
        let Value::Object(item) = item else { return json!({}) };
        let common = self.parameters(item.get("parameters"));
        let mut converted: Map<String, Value> =
            item.iter().filter(|(name, _)| name.starts_with("x-")).map(owned).collect();
        if !common.plain.is_empty() {
            converted.insert("parameters".to_owned(), common.plain.clone().into());
        }
        for method in METHODS {
            if let Some(Value::Object(operation)) = item.get(method) {
                converted.insert(method.to_owned(), self.operation(operation, &common));
            }
        }
        converted.into()
    }

    fn operation(&self, operation: &Map<String, Value>, common: &Parameters) -> Value {
        let kept = |(name, _): &(&String, &Value)| PLAIN.contains(&name.as_str()) || name.starts_with("x-");
        let mut converted: Map<String, Value> = operation.iter().filter(kept).map(owned).collect();
        let parameters = self.parameters(operation.get("parameters"));
        if !parameters.plain.is_empty() {
            converted.insert("parameters".to_owned(), parameters.plain.clone().into());
        }
        let consumes = either(media_types(operation.get("consumes")), &self.consumes);
        if let Some(body) = parameters.request_body(common, &consumes) {
            converted.insert("requestBody".to_owned(), body);
        }
        let produces = either(media_types(operation.get("produces")), &self.produces);
        let responses = operation.get("responses").and_then(Value::as_object).into_iter().flatten();
        let responses: Map<String, Value> =
            responses.map(|(code, response)| (code.clone(), self.response(response, &produces))).collect();
        converted.insert("responses".to_owned(), responses.into());
        converted.into()
    }

    fn parameters(&self, list: Option<&Value>) -> Parameters {
        let mut parameters = Parameters::default();
        for parameter in list.and_then(Value::as_array).into_iter().flatten() {
            let Some(parameter) = resolve(parameter, "#/parameters/", self.parameters) else { continue };
            match parameter.get("in").and_then(Value::as_str) {
                Some("body") => parameters.body = Some(parameter.clone()),
                Some("formData") => parameters.form.push(parameter.clone()),
                Some(_) => parameters.plain.push(plain(parameter)),
                None => {}
            }
        }
        parameters
    }

    fn response(&self, response: &Value, produces: &[String]) -> Value {
        let empty = json!({});
        let response = resolve(response, "#/responses/", self.responses).unwrap_or(&empty);
        let mut converted: Map<String, Value> = match response {
            Value::Object(members) => {
                members.iter().filter(|(name, _)| name.starts_with("x-")).map(owned).collect()
            }
            _ => Map::new(),
        };
        let description = response.get("description").and_then(Value::as_str).unwrap_or_default();
        converted.insert("description".to_owned(), description.into());
        if let Some(schema) = response.get("schema") {
            converted.insert("content".to_owned(), content(&schema::convert(schema), produces));
        }
        let headers = response.get("headers").and_then(Value::as_object).into_iter().flatten();
        let headers: Map<String, Value> =
            headers.map(|(name, header)| (name.clone(), described(header))).collect();
        if !headers.is_empty() {
            converted.insert("headers".to_owned(), headers.into());
        }
        converted.into()
    }
}

impl Parameters {
    /// The body of an operation with these parameters. Those of its path count if it has none of its own.
    fn request_body(&self, common: &Self, consumes: &[String]) -> Option<Value> {
        if let Some(body) = self.body.as_ref().or(common.body.as_ref()) {
            let schema = schema::convert(body.get("schema").unwrap_or(&Value::Null));
            let mut converted = json!({"content": content(&schema, consumes)});
            for name in ["description", "required"] {
                if let Some(value) = body.get(name) {
                    converted[name] = value.clone();
                }
            }
            return Some(converted);
        }
        let form = if self.form.is_empty() { &common.form } else { &self.form };
        (!form.is_empty()).then(|| form_body(form, consumes))
    }
}

/// Fields of a form, as the members of an object.
fn form_body(fields: &[Value], consumes: &[String]) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    let is_file = |field: &&Value| field["type"] == "file";
    for field in fields {
        let Some(name) = field.get("name").and_then(Value::as_str) else { continue };
        let mut schema = of_schema(field);
        if is_file(&field) {
            schema = json!({"type": "string", "format": "binary"});
        }
        if let (Some(description), Value::Object(members)) = (field.get("description"), &mut schema) {
            members.insert("description".to_owned(), description.clone());
        }
        properties.insert(name.to_owned(), schema);
        if field["required"] == true {
            required.push(name);
        }
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let is_form = |name: &&String| [FORM, FORM_WITH_FILES].contains(&name.as_str());
    let told: Vec<String> = consumes.iter().filter(is_form).cloned().collect();
    let usual = if fields.iter().any(|field| is_file(&field)) { FORM_WITH_FILES } else { FORM };
    let media_types = if told.is_empty() { vec![usual.to_owned()] } else { told };
    json!({"content": content(&schema, &media_types)})
}

fn plain(parameter: &Value) -> Value {
    let mut converted = described(parameter);
    for name in ["name", "in", "required", "allowEmptyValue"] {
        if let Some(value) = parameter.get(name) {
            converted[name] = value.clone();
        }
    }
    if converted["in"] == "path" {
        converted["required"] = true.into();
    }
    let is_query = converted["in"] == "query";
    match parameter.get("collectionFormat").and_then(Value::as_str) {
        Some("multi") => (converted["style"], converted["explode"]) = ("form".into(), true.into()),
        Some("ssv") if is_query => converted["style"] = "spaceDelimited".into(),
        Some("pipes") if is_query => converted["style"] = "pipeDelimited".into(),
        // Lists are separated by commas unless told otherwise.
        _ if is_query && parameter["type"] == "array" => {
            (converted["style"], converted["explode"]) = ("form".into(), false.into());
        }
        _ => {}
    }
    converted
}

/// A parameter or header, as far as both say the same.
fn described(of: &Value) -> Value {
    let mut converted = json!({"schema": of_schema(of)});
    if let Some(description) = of.get("description") {
        converted["description"] = description.clone();
    }
    let kept = |name: &str| name.starts_with("x-") && name != "x-nullable";
    for (name, value) in of.as_object().into_iter().flatten().filter(|(name, _)| kept(name)) {
        converted[name] = value.clone();
    }
    converted
}

fn of_schema(of: &Value) -> Value {
    let members = of.as_object().into_iter().flatten();
    let told: Map<String, Value> =
        members.filter(|(name, _)| OF_SCHEMA.contains(&name.as_str())).map(owned).collect();
    schema::convert(&told.into())
}

fn content(schema: &Value, media_types: &[String]) -> Value {
    let of = |name: &String| (name.clone(), json!({"schema": schema}));
    let content: Map<String, Value> = media_types.iter().map(of).collect();
    content.into()
}

/// What a reference refers to, if it is one.
fn resolve<'v>(value: &'v Value, prefix: &str, shared: Option<&'v Map<String, Value>>) -> Option<&'v Value> {
    match value.get("$ref").and_then(Value::as_str) {
        Some(reference) => shared?.get(&unescape(reference.strip_prefix(prefix)?)),
        None => Some(value),
    }
}

fn media_types(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What an operation says, or what is said for all, or what is usual.
fn either(own: Vec<String>, common: &[String]) -> Vec<String> {
    match (own.is_empty(), common.is_empty()) {
        (false, _) => own,
        (true, false) => common.to_vec(),
        (true, true) => vec![JSON.to_owned()],
    }
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}
