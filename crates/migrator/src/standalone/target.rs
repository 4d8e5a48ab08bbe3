//! What is to be migrated, as the server serves it.

use concord_meta::GroupResource;
use serde_json::Value;

use super::{Ask, Server, Stop, good};

/// A resource, and where it is.
pub(crate) struct Target {
    /// All of its objects.
    pub(crate) path: String,
    /// Another one when the server stores its objects otherwise; empty if it does not say.
    pub(crate) hash: String,
    root: String,
    plural: String,
}

/// What was found.
pub(crate) enum Found {
    /// This.
    Fit(Target),
    /// Something that cannot be migrated, and why.
    Unfit(String),
    /// Nothing.
    Nothing,
}

impl Target {
    /// The resource in its preferred version.
    pub(crate) async fn find(server: &impl Server, name: &GroupResource) -> Result<Found, Stop> {
        let version = match name.group.as_str() {
            "" => "v1".to_owned(),
            group => match good(server.ask(Ask::Get, &format!("/apis/{group}")).await) {
                Ok(found) => found["preferredVersion"]["version"].as_str().unwrap_or_default().to_owned(),
                Err(Stop::Gone) => return Ok(Found::Nothing),
                Err(stop) => return Err(stop),
            },
        };
        let (root, title) = match name.group.as_str() {
            "" => (format!("/api/{version}"), version.clone()),
            group => (format!("/apis/{group}/{version}"), format!("{group}/{version}")),
        };
        let served = match good(server.ask(Ask::Get, &root).await) {
            Err(Stop::Gone) => return Ok(Found::Nothing),
            served => served?,
        };
        let mut resources = served["resources"].as_array().into_iter().flatten();
        let Some(found) = resources.find(|resource| resource["name"] == *name.resource) else {
            return Ok(Found::Nothing);
        };
        let verbs: Vec<&str> =
            found["verbs"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if ["update", "patch", "list"].iter().any(|verb| !verbs.contains(verb)) {
            return Ok(Found::Unfit(format!(
                "resource \"{title}, Resource={}\" does not support discovery operations: [update patch list]",
                name.resource
            )));
        }
        Ok(Found::Fit(Self {
            path: format!("{root}/{}", name.resource),
            hash: found["storageVersionHash"].as_str().unwrap_or_default().to_owned(),
            root,
            plural: name.resource.clone(),
        }))
    }

    /// The newest revision of the resource.
    pub(crate) async fn revision(&self, server: &impl Server) -> Result<String, Stop> {
        let listed = good(server.ask(Ask::GetMetadata, &format!("{}?limit=1", self.path)).await)?;
        Ok(listed["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned())
    }

    /// Where one object is.
    pub(crate) fn object(&self, namespace: &str, name: &str) -> String {
        match namespace {
            "" => format!("{}/{name}", self.path),
            namespace => format!("{}/namespaces/{namespace}/{}/{name}", self.root, self.plural),
        }
    }
}
