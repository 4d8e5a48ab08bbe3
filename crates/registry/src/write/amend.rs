//! What the server changes itself, in the course of a request that is about something else.

use bytes::Bytes;
use concord_meta::Status;
use concord_replica::Entry;
use serde_json::Value;

use super::{
    Written,
    attempt::{Attempts, Decision, Live},
    change::Change,
    create::stored,
    managed::field_manager,
    size::Size,
    update::Edit,
};
use crate::{
    Context, Guard, Item, Object, ObjectName, Part, Registry, Resource, Storage, remote::Conversions,
};

/// Changes an object, or says why it cannot be changed. Called again when the object has changed in the meantime.
type Amendment<'a> = &'a (dyn Fn(&mut Object) -> Result<(), Status> + Send + Sync);

impl Registry {
    /// Changes an object in the version of the storage as no client can: nobody is asked whether it may be so, neither
    /// admission nor the rules of the kind, and nobody comes to own what is written. What is written has to be right.
    ///
    /// # Errors
    ///
    /// 404, and why the object cannot be changed.
    pub async fn amend(
        &self,
        context: &Context,
        resource: &Resource,
        name: ObjectName<'_>,
        amendment: Amendment<'_>,
    ) -> Result<Item, Status> {
        let storage = stored(resource)?;
        let mut attempts = Attempts::new(self, storage, storage.key(name), context.dry_run);
        loop {
            let live = attempts.live().await?;
            let (entry, value) = match amended(resource, storage, name, &live, amendment).await {
                Ok(amended) => amended,
                Err(status) => {
                    attempts.refused(status)?;
                    continue;
                }
            };
            let item = Item { value: value.clone(), ..Item::from(entry) };
            if value == entry.value && attempts.must_look_again() {
                continue;
            }
            if context.dry_run || value == entry.value {
                return Ok(item);
            }
            let decision = Decision::Put(value);
            if let Some(revision) = attempts.commit(Some(entry), decision, Guard::default()).await? {
                return Ok(Item { revision: Some(revision), ..item });
            }
        }
    }

    /// Replaces an object by what a function makes of it, in the version of the resource. As [`Registry::update`] with
    /// what was read just before, but that nobody else's change comes in between.
    ///
    /// # Errors
    ///
    /// As [`Registry::update`], and why the object cannot be changed.
    pub async fn revise(
        &self,
        context: &Context,
        resource: &Resource,
        (name, part): (ObjectName<'_>, Part<'_>),
        amendment: Amendment<'_>,
    ) -> Result<Written, Status> {
        let storage = stored(resource)?;
        let owned = Conversions::default();
        let set = |live: Option<&Value>| {
            let not_found = || Status::not_found(&storage.resource, name.name);
            let live = live.ok_or_else(not_found)?;
            let mut new = live.as_object().cloned().ok_or_else(not_found)?;
            amendment(&mut new)?;
            let manager = field_manager(resource, storage, part, &owned);
            Ok(manager.update(Some(live), Value::Object(new), &context.manager, context.now))
        };
        let (change, scaling) = (Change::Set(&set), None);
        let (conversions, size) = (Conversions::default(), Size::default());
        self.edit(&Edit { context, resource, storage, name, part, change, scaling, conversions, size }).await
    }
}

async fn amended<'l>(
    resource: &Resource,
    storage: &Storage,
    name: ObjectName<'_>,
    live: &'l Live,
    amendment: Amendment<'_>,
) -> Result<(&'l Entry, Bytes), Status> {
    let Some(entry) = &live.entry else { return Err(Status::not_found(&storage.resource, name.name)) };
    let mut object = storage.object(&resource.translate(Item::from(entry)).await?)?;
    amendment(&mut object)?;
    Ok((entry, resource.encode_stored(storage, &mut object).await?))
}
