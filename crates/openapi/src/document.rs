//! Whole documents.

use std::{collections::BTreeMap, sync::Arc};

use concord_codec::{JSON_AND_YAML, MediaType, Offer};
use concord_meta::GroupVersion;
use concord_registry::Resource;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    components::{Components, Kinds},
    names,
    operation::{Answer, Operation, PathItem},
    paths,
};

/// The forms of discovery, and of what is told in one form only.
const DISCOVERED: &Offer = JSON_AND_YAML;
const JSON: &Offer = &[MediaType::Json];

/// An OpenAPI document. The members stand in the order of their names, as in everything that is written here:
/// equal documents have equal bytes.
#[derive(Serialize)]
pub(crate) struct Document {
    components: Value,
    info: Value,
    openapi: &'static str,
    paths: BTreeMap<String, Value>,
}

/// What a document can be about.
pub(crate) enum Subject {
    /// The resources of a version.
    Version(GroupVersion, Vec<Arc<Resource>>),
    /// The versions of a group.
    Group(String),
    /// The groups, other than the core group.
    Groups,
    /// The version of the server.
    ServerVersion,
}

impl Subject {
    /// Where the document is found, which is where what it is about is found.
    pub(crate) fn key(&self) -> String {
        match self {
            Self::Version(version, _) => names::root(version).trim_start_matches('/').to_owned(),
            Self::Group(name) if name.is_empty() => "api".to_owned(),
            Self::Group(name) => format!("apis/{name}"),
            Self::Groups => "apis".to_owned(),
            Self::ServerVersion => "version".to_owned(),
        }
    }

    /// The document. `release` is the version of the API as a whole, such as `1.36`.
    pub(crate) fn document(&self, release: &str, kinds: &Kinds) -> Document {
        let version = if let Self::Version(version, _) = self { Some(version) } else { None };
        let mut components = Components::new(kinds, version);
        let (tag, mut items) = self.discovery(&mut components);
        if let Self::Version(_, resources) = self {
            items.extend(resources.iter().flat_map(|resource| paths::of(resource, &mut components)));
        }
        Document {
            components: json!({
                "schemas": components.finish(),
                "securitySchemes": {
                    "BearerToken": {"type": "apiKey", "in": "header", "name": "authorization"},
                },
            }),
            info: json!({"title": "Kubernetes", "version": release}),
            openapi: "3.0.0",
            paths: items.into_iter().map(|item| item.document(&tag)).collect(),
        }
    }

    /// The tag of all operations, and the path that tells what there is.
    fn discovery(&self, components: &mut Components<'_>) -> (String, Vec<PathItem>) {
        let (tag, id, schema) = match self {
            Self::Version(version, _) => {
                let id = format!("get{}APIResources", names::infix(version));
                (names::tag(version), id, components.meta("APIResourceList"))
            }
            Self::Group(name) if name.is_empty() => {
                ("core".to_owned(), "getCoreAPIVersions".to_owned(), components.meta("APIVersions"))
            }
            Self::Group(name) => {
                let id = format!("get{}APIGroup", names::group(name));
                (names::group_tag(name), id, components.meta("APIGroup"))
            }
            Self::Groups => ("apis".to_owned(), "getAPIVersions".to_owned(), components.meta("APIGroupList")),
            Self::ServerVersion => {
                let schema = components.shared("io.k8s.apimachinery.pkg.version.Info");
                ("version".to_owned(), "getCodeVersion".to_owned(), schema)
            }
        };
        let offer = if let Self::ServerVersion = self { JSON } else { DISCOVERED };
        let media_types = offer.iter().map(ToString::to_string).collect();
        let operation = Operation {
            method: "get",
            id,
            action: None,
            parameters: Vec::new(),
            body: None,
            answer: Answer { codes: &[StatusCode::OK], media_types, schema },
        };
        (tag, vec![PathItem { path: format!("/{}/", self.key()), operations: vec![operation] }])
    }
}
