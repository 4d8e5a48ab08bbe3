use std::borrow::Cow;

use bytes::Bytes;
use concord_meta::{
    GroupKind, Status, field, go,
    names::NameRule,
    objectmeta::{self, Scope},
};
use concord_replica::Entry;
use serde_json::Value;

use super::{
    UpdateRequest, Written,
    attempt::{Attempts, Decision, Live, demanded},
    change::Change,
    create::{stored, to_storage},
    size::Size,
    system,
};
use crate::{
    Attributes, Context, Guard, Item, Object, ObjectName, Operation, Part, Registry, Resource, Scaling,
    Storage, failure, metadata, metadata_mut, object::members, remote::Conversions,
};

/// An object that is about to be changed, and how.
pub(super) struct Edit<'a> {
    pub(super) context: &'a Context,
    pub(super) resource: &'a Resource,
    pub(super) storage: &'a Storage,
    pub(super) name: ObjectName<'a>,
    pub(super) part: Part<'a>,
    pub(super) change: Change<'a>,
    /// Where the replicas are, if the object is changed by its Scale. Admission is shown that one then.
    pub(super) scaling: Option<&'a Scaling>,
    pub(super) conversions: Conversions,
    pub(super) size: Size,
}

/// What a state calls for.
enum Plan {
    Create(Bytes),
    Put(Bytes),
    Unchanged,
    /// The last finalizer of an object that is being deleted is gone, and with it the object. This is what it was.
    Delete(Bytes),
}

impl Registry {
    /// Replaces an object.
    ///
    /// # Errors
    ///
    /// Every refusal of an update, as a Status.
    pub async fn update(
        &self,
        context: &Context,
        resource: &Resource,
        request: UpdateRequest<'_>,
    ) -> Result<Written, Status> {
        let UpdateRequest { name, part, mut object } = request;
        let storage = stored(resource)?;
        check_name(&object, name)?;
        system::place(&mut object, resource, name.namespace)?;
        system::dedup_owners(&mut object, context, false);
        let change = Change::Replace(Value::Object(object));
        let (scaling, conversions, size) = (None, Conversions::default(), Size::default());
        self.edit(&Edit { context, resource, storage, name, part, change, scaling, conversions, size }).await
    }

    /// Changes an object, again and again until nobody else changed it in between.
    pub(super) async fn edit(&self, edit: &Edit<'_>) -> Result<Written, Status> {
        let Edit { context, storage, name, .. } = *edit;
        let attempts = Attempts::new(self, storage, storage.key(name), context.dry_run);
        let mut attempts = attempts.together(context.together);
        loop {
            let live = attempts.live().await?;
            let (plan, guard) = match self.plan(edit, &live).await {
                Ok(planned) => planned,
                Err(status) => {
                    attempts.refused(status)?;
                    continue;
                }
            };
            if let Some(written) = self.carry_out(edit, &mut attempts, &live, plan, guard).await? {
                return Ok(written);
            }
        }
    }

    async fn carry_out(
        &self,
        edit: &Edit<'_>,
        attempts: &mut Attempts<'_>,
        live: &Live,
        plan: Plan,
        guard: Guard,
    ) -> Result<Option<Written>, Status> {
        let entry = live.entry.as_ref();
        let before = entry.map(|entry| entry.mod_revision);
        let (value, decision) = match plan {
            Plan::Unchanged if attempts.must_look_again() => return Ok(None),
            Plan::Unchanged => {
                return Ok(entry.map(|entry| Written { item: Item::from(entry), created: false }));
            }
            Plan::Create(value) | Plan::Put(value) => (value.clone(), Decision::Put(value)),
            Plan::Delete(value) => (value, Decision::Delete),
        };
        let deleting = matches!(decision, Decision::Delete);
        let revision = match edit.context.dry_run {
            true => before,
            false => match attempts.commit(entry, decision, guard).await? {
                None => return Ok(None),
                // What goes away is shown as it was.
                Some(_) if deleting => before,
                committed => committed,
            },
        };
        Ok(Some(Written {
            item: Item { key: attempts.key().clone(), value, revision },
            created: entry.is_none(),
        }))
    }

    async fn plan(&self, edit: &Edit<'_>, live: &Live) -> Result<(Plan, Guard), Status> {
        match &live.entry {
            Some(entry) => self.plan_update(edit, live, entry).await,
            None => self.plan_create(edit, live).await,
        }
    }

    async fn plan_create(&self, edit: &Edit<'_>, live: &Live) -> Result<(Plan, Guard), Status> {
        let may = edit.part == Part::Main
            && (edit.storage.strategy.allow_create_on_update() || edit.change.creates());
        if !may {
            return Err(Status::not_found(&edit.storage.resource, edit.name.name));
        }
        let attributes = edit.attributes(Operation::Create, None);
        self.guard(&attributes, None, &live.snapshot)?;
        let mut object = edit.change.carry_out(edit, None).await?;
        edit.check(&object)?;
        system::place(&mut object, edit.resource, edit.name.namespace)?;
        for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"] {
            metadata_mut(&mut object).remove(field);
        }
        self.admit(&attributes, &mut object).await?;
        let mut object = self.complete_create(&attributes, edit.storage, object).await?;
        edit.size.check()?;
        let guard = self.guard(&attributes, Some(&object), &live.snapshot)?;
        Ok((Plan::Create(edit.resource.encode_stored(edit.storage, &mut object).await?), guard))
    }

    async fn plan_update(
        &self,
        edit: &Edit<'_>,
        live: &Live,
        entry: &Entry,
    ) -> Result<(Plan, Guard), Status> {
        let item = edit.resource.translate(Item::from(entry)).await?;
        let served = Value::Object(edit.resource.object(&item)?);
        edit.check_uid(&served)?;
        let mut new = edit.change.carry_out(edit, Some(&served)).await?;
        let attributes = edit.attributes(Operation::Update, served.as_object());
        let scale = match edit.scaling {
            None => {
                self.admit(&attributes, &mut new).await?;
                None
            }
            Some(scaling) => Some(self.admit_scale(&attributes, scaling, &mut new).await?),
        };
        system::dedup_owners(&mut new, edit.context, true);
        edit.check(&new)?;
        edit.check_resource_version(&mut new, entry.mod_revision)?;
        let old = match served.as_object() {
            Some(served) if edit.resource.version == edit.storage.version => Cow::Borrowed(served),
            _ => Cow::Owned(edit.storage.object(&item)?),
        };
        to_storage(edit.storage, &mut new)?;
        edit.before_update(&mut new, &old)?;
        match &scale {
            None => self.validate_admission(&attributes, Some(&new)).await?,
            Some(scale) => self.validate_scale(&attributes, scale).await?,
        }
        edit.size.check()?;
        let gone = is_to_go(edit.storage, &new, &old);
        let guard = match gone {
            true => {
                let mut guard = demanded(&attributes, &live.snapshot)?;
                guard.extend(self.removal(&attributes, &live.snapshot)?);
                guard
            }
            false => self.guard(&attributes, Some(&new), &live.snapshot)?,
        };
        let value = edit.resource.encode_stored(edit.storage, &mut new).await?;
        let plan = match gone {
            true => Plan::Delete(value),
            false if value == entry.value && !self.is_stale(edit.context, entry).await? => Plan::Unchanged,
            false => Plan::Put(value),
        };
        Ok((plan, guard))
    }

    /// Whether the store would keep the same object in another form now. Then it is written although nothing changes.
    async fn is_stale(&self, context: &Context, entry: &Entry) -> Result<bool, Status> {
        let known = context.kept.as_ref().and_then(|kept| kept.is_stale(entry.mod_revision));
        if known == Some(true) {
            return Ok(true);
        }
        let stale = self.store.is_stale(&entry.key, entry.mod_revision).await;
        stale.map_err(|error| failure::store_failed(&error))
    }
}

impl<'a> Edit<'a> {
    fn attributes<'s>(&'s self, operation: Operation, old: Option<&'s Object>) -> Attributes<'s> {
        Attributes {
            context: self.context,
            resource: self.resource,
            subresource: self.part.subresource(),
            namespace: self.name.namespace,
            name: self.name.name,
            named: true,
            operation,
            old,
        }
    }

    fn check(&self, object: &Object) -> Result<(), Status> {
        check_name(object, self.name)
    }

    /// The uid in the body of an update says which object it is meant for.
    fn check_uid(&self, live: &Value) -> Result<(), Status> {
        let Change::Replace(new) = &self.change else { return Ok(()) };
        let uid = |object: &'_ Value| object.as_object().map(|object| metadata(object).uid().to_owned());
        let (required, actual) = (uid(new).unwrap_or_default(), uid(live).unwrap_or_default());
        if required.is_empty() || required == actual {
            return Ok(());
        }
        let key = self.storage.key(self.name);
        let key = String::from_utf8_lossy(&key);
        Err(Status::update_uid_mismatch(&self.storage.resource, self.name.name, &key, &required, &actual))
    }

    /// Refuses a change that was made from another state than the stored one.
    fn check_resource_version(&self, new: &mut Object, live: u64) -> Result<(), Status> {
        let storage = self.storage;
        let said = match metadata(new).resource_version() {
            "" => 0,
            text => go::parse_uint(text).map_err(Status::untyped)?,
        };
        if said == 0 && !storage.strategy.allow_unconditional_update() {
            // Upstream names the resource where the kind belongs.
            let kind = GroupKind::new(storage.resource.group.clone(), storage.resource.resource.clone());
            return Err(Status::invalid(&kind, self.name.name, &[objectmeta::resource_version_required()]));
        }
        if said != 0 && said != live {
            return Err(Status::modified(&storage.resource, self.name.name));
        }
        metadata_mut(new).insert("resourceVersion".to_owned(), live.to_string().into());
        Ok(())
    }

    /// What every update goes through. Both objects are in the storage version.
    fn before_update(&self, new: &mut Object, old: &Object) -> Result<(), Status> {
        let (context, storage) = (self.context, self.storage);
        system::place(new, self.resource, self.name.namespace)?;
        system::restore_generation(new, old);
        storage.strategy.prepare_for_update(context, self.part, new, old);
        system::restore(new, old);
        let scope = if storage.namespaced { Scope::Namespaced } else { Scope::Cluster };
        let path = field::Path::new("metadata");
        let mut errors = objectmeta::validate_create(members(new), scope, NameRule::PathSegment, &path);
        errors.extend(objectmeta::validate_update(members(new), members(old), &path));
        errors.extend(storage.strategy.validate_update(context, self.part, new, old));
        errors.extend(storage.strategy.validate_through(&self.resource.version, new, Some(old)));
        if !errors.is_empty() {
            return Err(Status::invalid(&storage.group_kind(), self.name.name, &errors));
        }
        for warning in storage.strategy.warnings(context, self.part, new, Some(old)) {
            context.warn(&warning);
        }
        Ok(())
    }
}

/// Whether an update removed the last thing that kept a deleted object.
fn is_to_go(storage: &Storage, new: &Object, old: &Object) -> bool {
    let was = metadata(old);
    was.is_terminating()
        && was.deletion_grace_period().unwrap_or_default() == 0
        && metadata(new).finalizers().is_empty()
        && !storage.strategy.is_held(new)
}

/// Refuses an object that is not the one the request is about.
fn check_name(object: &Object, name: ObjectName<'_>) -> Result<(), Status> {
    let said = metadata(object);
    let refuse = |why: String| Err(Status::bad_request(why));
    if said.name().is_empty() {
        return refuse(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            name.name
        ));
    }
    if said.name() != name.name {
        return refuse(format!(
            "the name of the object ({}) does not match the name on the URL ({})",
            said.name(),
            name.name
        ));
    }
    if !name.namespace.is_empty() && !said.namespace().is_empty() && said.namespace() != name.namespace {
        return refuse(
            "the namespace of the provided object does not match the namespace sent on the request"
                .to_owned(),
        );
    }
    Ok(())
}
