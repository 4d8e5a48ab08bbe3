//! What can be asked of a path.

use std::collections::BTreeMap;

use concord_meta::GroupVersionKind;
use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::parameters::Parameter;

/// A method of a path.
pub(crate) struct Operation {
    /// In lower case.
    pub(crate) method: &'static str,
    pub(crate) id: String,
    /// What it does to which kind; discovery does nothing to any.
    pub(crate) action: Option<(&'static str, GroupVersionKind)>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<Body>,
    pub(crate) answer: Answer,
}

/// The body that a request has.
pub(crate) struct Body {
    pub(crate) required: bool,
    pub(crate) media_types: Vec<String>,
    pub(crate) schema: Value,
}

/// What is answered when nothing fails.
pub(crate) struct Answer {
    pub(crate) codes: &'static [StatusCode],
    pub(crate) media_types: Vec<String>,
    pub(crate) schema: Value,
}

/// A path and what can be asked of it.
pub(crate) struct PathItem {
    pub(crate) path: String,
    pub(crate) operations: Vec<Operation>,
}

impl PathItem {
    /// What a document says of the path. What all operations can be given stands with the path.
    pub(crate) fn document(self, tag: &str) -> (String, Value) {
        let mut shared = self.operations.first().map_or_else(Vec::new, |first| first.parameters.clone());
        shared.retain(|parameter| self.operations.iter().all(|other| other.parameters.contains(parameter)));
        shared.sort();
        let mut item = Map::new();
        for mut operation in self.operations {
            operation.parameters.retain(|parameter| !shared.contains(parameter));
            item.insert(operation.method.to_owned(), operation.document(tag));
        }
        if !shared.is_empty() {
            item.insert("parameters".to_owned(), parameters(&shared));
        }
        (self.path, item.into())
    }
}

impl Operation {
    fn document(mut self, tag: &str) -> Value {
        let mut document = json!({
            "operationId": self.id,
            "responses": self.answer.document(),
            "tags": [tag],
        });
        if !self.parameters.is_empty() {
            self.parameters.sort();
            document["parameters"] = parameters(&self.parameters);
        }
        if let Some(body) = self.body {
            document["requestBody"] = body.document();
        }
        if let Some((action, kind)) = self.action {
            document["x-kubernetes-action"] = action.into();
            document["x-kubernetes-group-version-kind"] = group_version_kind(&kind);
        }
        document
    }
}

fn parameters(parameters: &[Parameter]) -> Value {
    parameters.iter().map(|parameter| parameter.document()).collect()
}

/// A kind, as the extension tells it.
pub(crate) fn group_version_kind(kind: &GroupVersionKind) -> Value {
    json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
}

impl Body {
    fn document(self) -> Value {
        let mut document = json!({"content": content(&self.media_types, &self.schema)});
        if self.required {
            document["required"] = true.into();
        }
        document
    }
}

impl Answer {
    /// Every request can be refused for want of credentials.
    fn document(&self) -> BTreeMap<String, Value> {
        let described = |code: StatusCode| json!({"description": code.canonical_reason()});
        let mut responses = BTreeMap::new();
        for code in self.codes {
            let mut response = described(*code);
            response["content"] = content(&self.media_types, &self.schema);
            responses.insert(code.as_u16().to_string(), response);
        }
        let refused = StatusCode::UNAUTHORIZED;
        responses.insert(refused.as_u16().to_string(), described(refused));
        responses
    }
}

fn content(media_types: &[String], schema: &Value) -> Value {
    let types = media_types.iter().map(|media_type| (media_type.clone(), json!({"schema": schema})));
    Value::Object(types.collect())
}
