//! Who may say that an object has owners, and that they have to wait for it.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock, Weak},
};

use async_trait::async_trait;
use concord_meta::{GroupVersionKind, Status};
use concord_registry::{Admission, Attributes, Object, Operation, Resource, Resources, metadata};
use concord_server::{Attributes as Question, Authorizer, Decision, RequestInfo};
use serde_json::Value;

use crate::{concerns, forbidden};

/// Lets only those change the owners of an object who may delete it, and only those make an owner wait for it who may set
/// the finalizers of the owner. Not on by default.
pub struct OwnerReferencesPermissionEnforcement {
    authorizer: Arc<dyn Authorizer>,
    resources: OnceLock<Weak<dyn Resources>>,
}

impl OwnerReferencesPermissionEnforcement {
    /// `authorizer` is the one that decides about requests.
    pub fn new(authorizer: Arc<dyn Authorizer>) -> Self {
        Self { authorizer, resources: OnceLock::new() }
    }

    /// Says what is served. Until then no owner can be found.
    pub fn connect(&self, resources: Weak<dyn Resources>) {
        // Whoever is first is right: there is one server.
        self.resources.set(resources).ok();
    }

    async fn ask(&self, attributes: &Attributes<'_>, request: RequestInfo) -> Decision {
        let user = &attributes.context.user;
        self.authorizer.authorize(&Question { user, request: &request }).await
    }

    /// Those who change owners could just as well delete the object.
    async fn check_delete(&self, attributes: &Attributes<'_>) -> Result<(), Status> {
        let request = RequestInfo {
            verb: Cow::Borrowed("delete"),
            subresource: attributes.subresource.to_owned(),
            ..about(attributes.resource, attributes.namespace, attributes.name)
        };
        refused(
            attributes,
            "cannot set an ownerRef on a resource you can't delete",
            &self.ask(attributes, request).await,
        )
    }

    async fn check_finalizers(&self, attributes: &Attributes<'_>, reference: &Object) -> Result<(), Status> {
        let owner = self.owner(reference).map_err(|error| {
            let (api_version, kind) = (text(reference, "apiVersion"), text(reference, "kind"));
            forbidden(
                attributes,
                &format!(
                    "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion \
                     {api_version} Kind {kind}: {error}"
                ),
            )
        })?;
        let namespace = if owner.namespaced { attributes.namespace } else { "" };
        let request = about(&owner, namespace, text(reference, "name"));
        refused(
            attributes,
            "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on",
            &self.ask(attributes, finalizers(request)).await,
        )
    }

    /// The resource that a reference is to.
    fn owner(&self, reference: &Object) -> Result<Arc<Resource>, String> {
        let (api_version, kind) = (text(reference, "apiVersion"), text(reference, "kind"));
        let wanted =
            GroupVersionKind::from_api_version(api_version, kind).map_err(|error| error.to_string())?;
        let served = self.resources.get().and_then(Weak::upgrade);
        let found = served.and_then(|served| served.all().into_iter().find(|found| found.kind() == wanted));
        found.ok_or_else(|| format!("no matches for kind {kind:?} in version {api_version:?}"))
    }
}

#[async_trait]
impl Admission for OwnerReferencesPermissionEnforcement {
    fn name(&self) -> &'static str {
        "OwnerReferencesPermissionEnforcement"
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Object>) -> Result<(), Status> {
        let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
        let Some(object) = object.filter(|_| writes && !concerns(attributes, "", "pods", "status")) else {
            return Ok(());
        };
        let (new, old) = (references(Some(object)), references(attributes.old));
        if new == old {
            return Ok(());
        }
        // Whoever creates an object may say what it belongs to.
        if attributes.operation != Operation::Create {
            self.check_delete(attributes).await?;
        }
        let blocking = newly_blocking(new, old);
        let anything = finalizers(RequestInfo {
            api_group: "*".to_owned(),
            api_version: "*".to_owned(),
            resource: "*".to_owned(),
            name: "*".to_owned(),
            ..RequestInfo::default()
        });
        if blocking.is_empty() || self.ask(attributes, anything).await.is_allowed() {
            return Ok(());
        }
        for reference in blocking {
            self.check_finalizers(attributes, reference).await?;
        }
        Ok(())
    }
}

fn references(object: Option<&Object>) -> &[Value] {
    let found = object.and_then(|object| metadata(object).get("ownerReferences"));
    found.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(reference: &'a Object, name: &str) -> &'a str {
    reference.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The references that make their owners wait and did not before.
fn newly_blocking<'a>(new: &'a [Value], old: &[Value]) -> Vec<&'a Object> {
    let is_blocking = |reference: &Value| reference["blockOwnerDeletion"] == true;
    let was_blocking = |reference: &Value| {
        // The last one of that uid counts.
        let before = old.iter().rev().find(|before| before["uid"] == reference["uid"]);
        before.is_some_and(is_blocking)
    };
    let found = new.iter().filter(|reference| is_blocking(reference) && !was_blocking(reference));
    found.filter_map(Value::as_object).collect()
}

fn about(resource: &Resource, namespace: &str, name: &str) -> RequestInfo {
    RequestInfo {
        is_resource_request: true,
        api_group: resource.version.group.clone(),
        api_version: resource.version.version.clone(),
        resource: resource.names.plural.clone(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        ..RequestInfo::default()
    }
}

fn finalizers(request: RequestInfo) -> RequestInfo {
    RequestInfo {
        is_resource_request: true,
        verb: Cow::Borrowed("update"),
        subresource: "finalizers".to_owned(),
        ..request
    }
}

fn refused(attributes: &Attributes<'_>, why: &str, decision: &Decision) -> Result<(), Status> {
    match decision.is_allowed() {
        true => Ok(()),
        // Upstream ends the sentence with an error that there is none of.
        false => Err(forbidden(attributes, &format!("{why}: {}, <nil>", decision.reason()))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_begins_to_block_is_checked() {
        let reference = |uid: &str, blocks: Value| json!({"uid": uid, "blockOwnerDeletion": blocks});
        for (new, old, expected) in [
            (vec![reference("a", true.into())], vec![], 1),
            (vec![reference("a", false.into()), reference("b", Value::Null)], vec![], 0),
            (vec![reference("a", true.into())], vec![reference("a", true.into())], 0),
            (vec![reference("a", true.into())], vec![reference("a", Value::Null)], 1),
            (vec![reference("a", true.into())], vec![reference("b", true.into())], 1),
        ] {
            assert_eq!(newly_blocking(&new, &old).len(), expected, "{new:?} {old:?}");
        }
    }
}
