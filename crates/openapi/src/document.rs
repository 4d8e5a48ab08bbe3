//! Whole documents.

use std::sync::Arc;

use concord_codec::{JSON_AND_YAML, Offer};
use concord_meta::GroupVersion;
use concord_registry::{Form, Resource};
use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    components::{Components, Dialect, Sources},
    member::Members,
    names,
    operation::{Answer, Operation, PathItem},
    paths, protobuf,
};

/// The forms of discovery.
const DISCOVERED: &Offer = JSON_AND_YAML;

/// An OpenAPI document. The members stand in the order of their names, as in everything that is written here:
/// equal documents have equal bytes.
#[derive(Serialize)]
pub(crate) struct Document {
    components: Parts,
    info: Value,
    openapi: &'static str,
    paths: Members,
}

/// What paths refer to.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Parts {
    #[serde(skip_serializing_if = "Members::is_empty")]
    schemas: Members,
    #[serde(skip_serializing_if = "Option::is_none")]
    security_schemes: Option<Value>,
}

impl Document {
    /// The document as a message. Messages that follow one another are one message, with the members of all of them.
    pub(crate) fn protobuf(&self) -> Vec<u8> {
        let Parts { schemas, security_schemes } = &self.components;
        let mut rest = json!({"components": {}, "info": self.info, "openapi": self.openapi, "paths": {}});
        if let Some(schemes) = security_schemes {
            rest["components"]["securitySchemes"] = schemes.clone();
        }
        let mut out = protobuf::encode(&rest, Dialect::V3);
        for (name, schema) in schemas {
            let part = json!({"components": {"schemas": {name: schema.value()}}});
            out.extend(protobuf::encode(&part, Dialect::V3));
        }
        for (path, item) in &self.paths {
            out.extend(protobuf::encode(&json!({"paths": {path: item.value()}}), Dialect::V3));
        }
        out
    }
}

/// What a document can be about.
pub(crate) enum Subject {
    /// The resources of a version.
    Version(GroupVersion, Vec<Arc<Resource>>),
    /// The versions of a group.
    Group(String),
    /// The groups, other than the core group.
    Groups,
    /// Something that is no API of objects.
    Service(&'static Service),
}

/// A path of the server that has a document of its own and is no API of objects.
#[derive(Debug)]
pub struct Service {
    /// Without slashes around it.
    pub path: &'static str,
    /// What its operations are grouped by.
    pub tag: &'static str,
    /// The name of the operation that reads it.
    pub operation: &'static str,
    /// What it tells.
    pub description: &'static str,
    /// The form it has.
    pub media_type: &'static str,
    /// The name of its type, if that is one that all APIs share; it is a text otherwise.
    pub definition: Option<&'static str>,
}

/// What a server that issues tokens says about them.
pub static OPENID: [Service; 2] = [
    Service {
        path: ".well-known/openid-configuration",
        tag: "WellKnown",
        operation: "getServiceAccountIssuerOpenIDConfiguration",
        description: "Tells who issues the tokens of service accounts, and where its keys are.",
        media_type: "application/json",
        definition: None,
    },
    Service {
        path: "openid/v1/jwks",
        tag: "openid",
        operation: "getServiceAccountIssuerOpenIDKeyset",
        description: "Tells the keys that verify the tokens of service accounts.",
        media_type: "application/jwk-set+json",
        definition: None,
    },
];

/// The version of the server, which every server tells.
pub(crate) static VERSION: Service = Service {
    path: "version",
    tag: "version",
    operation: "getCodeVersion",
    description: "Tells the version of the server.",
    media_type: "application/json",
    definition: Some("io.k8s.apimachinery.pkg.version.Info"),
};

impl Subject {
    /// Where the document is found, which is where what it is about is found.
    pub(crate) fn key(&self) -> String {
        match self {
            Self::Version(version, _) => names::root(version).trim_start_matches('/').to_owned(),
            Self::Group(name) if name.is_empty() => "api".to_owned(),
            Self::Group(name) => format!("apis/{name}"),
            Self::Groups => "apis".to_owned(),
            Self::Service(service) => service.path.to_owned(),
        }
    }

    /// The version it is about, if it is about one.
    pub(crate) fn version(&self) -> Option<&GroupVersion> {
        if let Self::Version(version, _) = self { Some(version) } else { None }
    }

    /// Whether a document about the other would be the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Version(version, resources), Self::Version(other, others)) => {
                let same = |(one, other): (&Arc<Resource>, &Arc<Resource>)| Arc::ptr_eq(one, other);
                version == other && resources.len() == others.len() && resources.iter().zip(others).all(same)
            }
            _ => self.key() == other.key(),
        }
    }

    /// Whether it is about custom resources.
    pub(crate) fn is_custom(&self) -> bool {
        let Self::Version(_, resources) = self else { return false };
        resources.iter().any(|resource| matches!(resource.form(), Some(Form::Custom(_))))
    }

    /// The document. `release` is the version of the API as a whole, such as `1.36`.
    pub(crate) fn document(&self, release: &str, sources: &Sources<'_>) -> Document {
        let versions = self.version().cloned().into_iter().collect();
        let mut components = Components::new(sources, Dialect::V3, versions);
        let (tag, items) = self.items(&mut components);
        let schemas = components.finish();
        let (security_schemes, info) = if self.is_custom() {
            (None, json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}))
        } else {
            let bearer = json!({
                "description": "Bearer Token authentication",
                "in": "header",
                "name": "authorization",
                "type": "apiKey",
            });
            (Some(json!({"BearerToken": bearer})), json!({"title": "Kubernetes", "version": release}))
        };
        let components = Parts { schemas, security_schemes };
        let paths = items.into_iter().map(|item| item.document(&tag)).collect();
        Document { components, info, openapi: "3.0.0", paths }
    }

    /// The tag of all operations, and the paths. The types they are about are added to `components`.
    pub(crate) fn items(&self, components: &mut Components<'_>) -> (String, Vec<PathItem>) {
        let mut items: Vec<PathItem> = Vec::new();
        if let Self::Version(_, resources) = self {
            items.extend(resources.iter().flat_map(|resource| paths::of(resource, components)));
        }
        if !self.is_custom() {
            items.push(self.discovery(components));
        }
        (self.tag(), items)
    }

    /// The tag of all operations.
    fn tag(&self) -> String {
        match self {
            Self::Version(version, _) => names::tag(version),
            Self::Group(name) => names::group_tag(name),
            Self::Groups => "apis".to_owned(),
            Self::Service(service) => service.tag.to_owned(),
        }
    }

    /// The path that tells what there is.
    fn discovery(&self, components: &mut Components<'_>) -> PathItem {
        let (id, schema) = match self {
            Self::Version(version, _) => {
                (format!("get{}APIResources", names::infix(version)), components.meta("APIResourceList"))
            }
            Self::Group(name) if name.is_empty() => {
                ("getCoreAPIVersions".to_owned(), components.meta("APIVersions"))
            }
            Self::Group(name) => (format!("get{}APIGroup", names::group(name)), components.meta("APIGroup")),
            Self::Groups => ("getAPIVersions".to_owned(), components.meta("APIGroupList")),
            Self::Service(service) => {
                let schema = service.definition.map(|definition| components.shared(definition));
                (service.operation.to_owned(), schema.unwrap_or_else(|| json!({"type": "string"})))
            }
        };
        let (description, media_types) = match self {
            Self::Service(service) => (service.description, vec![service.media_type.to_owned()]),
            _ => ("Tells what is served.", DISCOVERED.iter().map(ToString::to_string).collect()),
        };
        // What is no kind at all is not said to be sent in any form.
        let is_text = matches!(self, Self::Service(service) if service.definition.is_none());
        let takes = if is_text { Vec::new() } else { media_types.clone() };
        let operation = Operation {
            method: "get",
            id,
            description: description.to_owned(),
            action: None,
            parameters: Vec::new(),
            body: None,
            takes,
            answer: Answer { codes: &[StatusCode::OK], media_types, schema },
        };
        PathItem { path: format!("/{}/", self.key()), operations: vec![operation] }
    }
}
