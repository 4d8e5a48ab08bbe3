//! What can be asked of a path.

use std::collections::BTreeMap;

use concord_meta::GroupVersionKind;
use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::{
    member::Member,
    parameters::{Parameter, shared_name},
    swagger,
};

/// A method of a path.
pub(crate) struct Operation {
    /// In lower case.
    pub(crate) method: &'static str,
    pub(crate) id: String,
    pub(crate) description: String,
    /// What it does to which kind; discovery does nothing to any.
    pub(crate) action: Option<(&'static str, GroupVersionKind)>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<Body>,
    /// What version 2 says it takes, although it has no body.
    pub(crate) takes: Vec<String>,
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
    /// What a document of version 3 says of the path.
    pub(crate) fn document(mut self, tag: &str) -> (String, Member) {
        let shared = self.take_shared();
        let mut item = Map::new();
        for operation in self.operations {
            item.insert(operation.method.to_owned(), operation.document(tag));
        }
        if !shared.is_empty() {
            item.insert("parameters".to_owned(), shared.into_iter().map(Parameter::document).collect());
        }
        (self.path, Member::written(&item.into()))
    }

    /// What a document of version 2 says of the path. Parameters that it refers to are added to `parameters`.
    pub(crate) fn swagger(mut self, tag: &str, parameters: &mut Map<String, Value>) -> (String, Member) {
        let shared = self.take_shared();
        let mut item = Map::new();
        for operation in self.operations {
            item.insert(operation.method.to_owned(), operation.swagger(tag, parameters));
        }
        if !shared.is_empty() {
            let shared = shared.into_iter().map(|parameter| refer(parameter, parameters)).collect();
            item.insert("parameters".to_owned(), shared);
        }
        (self.path, Member::written(&item.into()))
    }

    /// What all operations can be given, which stands with the path.
    fn take_shared(&mut self) -> Vec<Parameter> {
        let mut shared = self.operations.first().map_or_else(Vec::new, |first| first.parameters.clone());
        shared.retain(|parameter| self.operations.iter().all(|other| other.parameters.contains(parameter)));
        shared.sort();
        for operation in &mut self.operations {
            operation.parameters.retain(|parameter| !shared.contains(parameter));
            operation.parameters.sort();
        }
        shared
    }
}

impl Operation {
    fn document(self, tag: &str) -> Value {
        let mut document = self.common(tag, &self.answer.document());
        if !self.parameters.is_empty() {
            document["parameters"] = self.parameters.iter().map(|parameter| parameter.document()).collect();
        }
        if let Some(body) = self.body {
            document["requestBody"] = body.document();
        }
        document
    }

    fn swagger(self, tag: &str, shared: &mut Map<String, Value>) -> Value {
        let mut document = self.common(tag, &self.answer.swagger());
        let mut parameters: Vec<Value> = self.body.iter().map(|body| body.swagger(shared)).collect();
        parameters.extend(self.parameters.iter().map(|parameter| refer(*parameter, shared)));
        if !parameters.is_empty() {
            document["parameters"] = parameters.into();
        }
        let takes = self.body.map_or(self.takes, |body| body.media_types);
        if !takes.is_empty() {
            document["consumes"] = takes.into();
        }
        document["produces"] = self.answer.media_types.into();
        document["schemes"] = json!(["https"]);
        document
    }

    fn common(&self, tag: &str, responses: &BTreeMap<String, Value>) -> Value {
        let mut document = json!({
            "description": self.description,
            "operationId": self.id,
            "responses": responses,
            "tags": [tag],
        });
        if let Some((action, kind)) = &self.action {
            document["x-kubernetes-action"] = (*action).into();
            document["x-kubernetes-group-version-kind"] = group_version_kind(kind);
        }
        document
    }
}

/// A parameter where it is used in a document of version 2.
fn refer(parameter: Parameter, shared: &mut Map<String, Value>) -> Value {
    let used = parameter.swagger();
    if used.get("$ref").is_some() {
        shared.insert(parameter.swagger_name(), parameter.swagger_definition());
    }
    used
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

impl Body {
    /// A body of a type that all APIs share stands once in a document of version 2.
    fn swagger(&self, shared: &mut Map<String, Value>) -> Value {
        let mut parameter = json!({"name": "body", "in": "body", "schema": swagger::reference(&self.schema)});
        if self.required {
            parameter["required"] = true.into();
        }
        let of_meta = |reference: &str| reference.contains("/io.k8s.apimachinery");
        if !self.schema["$ref"].as_str().is_some_and(of_meta) {
            return parameter;
        }
        let name = shared_name("body", &parameter);
        let reference = json!({"$ref": format!("#/parameters/{name}")});
        shared.insert(name, parameter);
        reference
    }
}

impl Answer {
    /// Every request can be refused for want of credentials.
    fn document(&self) -> BTreeMap<String, Value> {
        self.responses("content", &content(&self.media_types, &self.schema))
    }

    fn swagger(&self) -> BTreeMap<String, Value> {
        self.responses("schema", &swagger::reference(&self.schema))
    }

    fn responses(&self, member: &str, of: &Value) -> BTreeMap<String, Value> {
        let described = |code: StatusCode| json!({"description": code.canonical_reason()});
        let mut responses = BTreeMap::new();
        for code in self.codes {
            let mut response = described(*code);
            response[member] = of.clone();
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
