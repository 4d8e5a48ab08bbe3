use std::sync::Arc;

use concord_codec::{FieldValidation, MediaType, PatchType};
use concord_meta::{Reason, Status};
use concord_registry::{
    Body, Item, Object, ObjectName, Part, PatchRequest, Registry, Resource, Resources, UpdateRequest,
};
use serde_json::Value;

use crate::own::{context, served};

/// An object that is to be there.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) plural: &'static str,
    pub(super) namespace: &'static str,
    pub(super) name: String,
    /// Who owns its fields.
    pub(super) manager: &'static str,
    /// Everything but its kind and its name.
    pub(super) object: Value,
}

/// A wanted object, and what there is instead.
pub(super) struct Found {
    pub(super) resource: Arc<Resource>,
    /// What is wanted, as it would be stored but for what the server fills in.
    pub(super) wanted: Object,
    /// What there is; `None` if it had to be made.
    pub(super) current: Option<Object>,
}

/// Puts objects in place.
pub(super) struct Writer {
    pub(super) registry: Arc<Registry>,
    pub(super) resources: Arc<dyn Resources>,
}

impl Wanted {
    fn object_name(&self) -> ObjectName<'_> {
        ObjectName { namespace: self.namespace, name: &self.name }
    }
}

impl Writer {
    /// Makes the object unless there is one. `None` if the resource is not served.
    pub(super) async fn ensure(&self, wanted: &Wanted) -> Result<Option<Found>, Status> {
        let Some(resource) = served(self.resources.as_ref(), wanted.group, wanted.version, wanted.plural)
        else {
            return Ok(None);
        };
        let object = complete(&resource, wanted)?;
        let current = match self.current(&resource, wanted)? {
            Some(current) => Some(current),
            None => {
                let context = context(wanted.manager);
                let create = self.registry.create(&context, &resource, wanted.namespace, object.clone());
                match Box::pin(create).await {
                    // Another server of the fleet was faster, or the replica is a little behind: both are fine.
                    Err(status) if status.reason != Reason::ALREADY_EXISTS => return Err(status),
                    _ => None,
                }
            }
        };
        Ok(Some(Found { resource, wanted: object, current }))
    }

    /// What there is now, in the version that is wanted.
    pub(super) fn current(&self, resource: &Resource, wanted: &Wanted) -> Result<Option<Object>, Status> {
        let snapshot = self.registry.replica().newest().map_err(Status::internal_error)?;
        let Some(storage) = resource.storage() else { return Ok(None) };
        snapshot
            .get(&storage.key(wanted.object_name()))
            .map(|entry| resource.object(&Item::from(entry)))
            .transpose()
    }

    /// Replaces an object that was read before.
    ///
    /// # Errors
    ///
    /// 409 if somebody else changed it since: it has to be looked at again.
    pub(super) async fn replace(
        &self,
        wanted: &Wanted,
        resource: &Resource,
        object: Object,
    ) -> Result<(), Status> {
        let request = UpdateRequest { name: wanted.object_name(), part: Part::Main, object };
        Box::pin(self.registry.update(&context(wanted.manager), resource, request)).await.map(drop)
    }

    /// Applies a status, with a manager of its own.
    pub(super) async fn apply_status(
        &self,
        resource: &Resource,
        name: &str,
        manager: &str,
        status: &Value,
    ) -> Result<(), Status> {
        let kind = resource.kind();
        let body = concord_codec::encode(&serde_json::json!({
            "kind": kind.kind, "apiVersion": kind.group_version().to_string(), "metadata": {"name": name}, "status": status,
        }));
        let request = PatchRequest {
            name: ObjectName { namespace: "", name },
            part: Part::Sub("status"),
            patch_type: PatchType::Apply,
            body: &body,
            force: true,
            validation: FieldValidation::Ignore,
        };
        Box::pin(self.registry.patch(&context(manager), resource, request)).await.map(drop)
    }

    pub(super) async fn remove(&self, wanted: &Wanted, resource: &Resource) -> Result<(), Status> {
        let options = concord_meta::options::DeleteOptions::default();
        let name = wanted.object_name();
        Box::pin(self.registry.delete(&context(wanted.manager), resource, name, &options)).await.map(drop)
    }
}

/// The object with its kind and name, in the form in which clients' objects are once they are read, with defaults.
fn complete(resource: &Resource, wanted: &Wanted) -> Result<Object, Status> {
    let mut object = wanted.object.clone();
    object["metadata"]["name"] = wanted.name.as_str().into();
    let bytes = concord_codec::encode(&object);
    let body = Body { bytes: &bytes, media_type: MediaType::Json, validation: FieldValidation::Ignore };
    resource.decode(body, &context(wanted.manager))
}
