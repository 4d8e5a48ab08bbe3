//! The parameters that a binding gives a policy.

use std::sync::Arc;

use concord_registry::{Item, Object, ObjectName, Resource, metadata};
use concord_replica::Snapshot;
use concord_store::KeyRange;
use serde_json::Value;

use super::{Binding, Policy};
use crate::{
    read::{selector, text},
    request::Request,
};

impl<C> Policy<C> {
    /// The resource of the parameters, if the policy has any.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(super) fn param_resource(&self, request: &Request<'_>) -> Result<Option<Arc<Resource>>, String> {
        let Some(kind) = &self.param_kind else { return Ok(None) };
        let found = request.shared.resource_of_kind(kind);
        let missing = || format!("failed to find resource referenced by paramKind: '{kind}'");
        found.map(Some).ok_or_else(missing)
    }
}

impl Binding {
    /// Each of the parameters that the policy is to be evaluated with. One that is null stands for none.
    ///
    /// # Errors
    ///
    /// What is wrong with the binding, in upstream's words.
    pub(super) fn params(
        &self,
        request: &Request<'_>,
        resource: Option<&Resource>,
    ) -> Result<Vec<Value>, String> {
        let (Some(resource), Some(wanted)) = (resource, &self.param_ref) else {
            return Ok(vec![Value::Null]);
        };
        let namespace = match (resource.namespaced, text(wanted, "namespace")) {
            (true, "") if request.namespace.is_empty() => {
                return Err(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                        .to_owned(),
                );
            }
            (true, "") => request.namespace,
            (true, namespace) => namespace,
            (false, "") => "",
            (false, _) => {
                return Err(
                    "paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned()
                );
            }
        };
        let snapshot = request.shared.snapshot().map_err(|status| status.message)?;
        let found = match text(wanted, "name") {
            "" => selected(resource, namespace, wanted, &snapshot)?,
            name => named(resource, ObjectName { namespace, name }, &snapshot),
        };
        if found.is_empty() && text(wanted, "parameterNotFoundAction") == "Deny" {
            return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
        }
        Ok(found)
    }
}

fn named(resource: &Resource, name: ObjectName<'_>, snapshot: &Snapshot) -> Vec<Value> {
    let entry = resource.storage().and_then(|storage| snapshot.get(&storage.key(name)));
    let object = entry.and_then(|entry| resource.object(&Item::from(entry)).ok());
    object.into_iter().map(Value::Object).collect()
}

fn selected(
    resource: &Resource,
    namespace: &str,
    wanted: &Object,
    snapshot: &Snapshot,
) -> Result<Vec<Value>, String> {
    let selector = selector(wanted, "selector")?;
    let Some(storage) = resource.storage() else { return Ok(Vec::new()) };
    let entries = snapshot.scan(&KeyRange::prefix(storage.key_prefix(Some(namespace))));
    let objects = entries.filter_map(|entry| resource.object(&Item::from(entry)).ok());
    let fits = |object: &Object| {
        let labels = metadata(object).get("labels").and_then(Value::as_object);
        selector.matches(&labels)
    };
    Ok(objects.filter(fits).map(Value::Object).collect())
}
