use bytes::Bytes;
use concord_meta::{
    GroupVersion, Status, field,
    objectmeta::{self, Scope},
};
use serde_json::Value;

use super::{
    attempt::{Attempts, Decision},
    managed::field_manager,
    size::Size,
    system,
};
use crate::{
    Attributes, Context, Item, Object, ObjectName, Operation, Part, Registry, Resource, Storage,
    encode::stored_object, metadata, object::members, remote::Conversions,
};

/// How often a name is generated, or something else is chosen for the object, before the client is told that none was
/// free.
const GENERATED_NAMES: usize = 8;

impl Registry {
    /// Stores a new object, which has been decoded. The answer is what is stored, or would be.
    ///
    /// # Errors
    ///
    /// Every refusal of a create, as a Status.
    pub async fn create(
        &self,
        context: &Context,
        resource: &Resource,
        namespace: &str,
        mut object: Object,
    ) -> Result<Item, Status> {
        let storage = stored(resource)?;
        system::begin_create(&mut object, context.dry_run)?;
        system::place(&mut object, resource, namespace)?;
        system::dedup_owners(&mut object, context, false);
        let size = Size::default();
        if size.fits(context, &object) {
            let conversions = Conversions::default();
            // A new object has no owners in other versions, so that nothing has to be converted.
            let manager = field_manager(resource, storage, Part::Main, &conversions);
            let owned = manager.update(None, Value::Object(object), &context.manager, context.now);
            let Value::Object(owned) = owned else { return Err(Status::internal_error("not an object")) };
            object = owned;
        }
        let mut attempt = 1;
        loop {
            let mut object = object.clone();
            let generated = system::generate_name(&mut object);
            if storage.strategy.names_itself() {
                system::invent_name(&mut object);
            }
            match self.create_named(context, (resource, storage), namespace, object, &size).await {
                Err(status) if generated && is_already_exists(&status) => {
                    if attempt == GENERATED_NAMES {
                        let name = status.details.map(|details| details.name).unwrap_or_default();
                        return Err(Status::generate_name_conflict(&storage.resource, &name));
                    }
                    attempt += 1;
                }
                Err(status) if attempt < GENERATED_NAMES && is_lost_race(&status) => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    async fn create_named(
        &self,
        context: &Context,
        (resource, storage): (&Resource, &Storage),
        namespace: &str,
        mut object: Object,
        size: &Size,
    ) -> Result<Item, Status> {
        let name = metadata(&object).name().to_owned();
        let attributes = Attributes {
            context,
            resource,
            subresource: "",
            namespace,
            name: &name,
            named: false,
            operation: Operation::Create,
            old: None,
        };
        // What the namespace is comes before what the object is.
        self.check_guard(&attributes).await?;
        self.admit(&attributes, &mut object).await?;
        system::dedup_owners(&mut object, context, true);
        let mut object = self.complete_create(&attributes, storage, object).await?;
        size.check()?;
        self.insert(&attributes, storage, &mut object).await
    }

    /// Makes an admitted object one that can be stored.
    pub(super) async fn complete_create(
        &self,
        attributes: &Attributes<'_>,
        storage: &Storage,
        mut object: Object,
    ) -> Result<Object, Status> {
        let context = attributes.context;
        to_storage(storage, &mut object)?;
        system::identify(&mut object, context.now);
        storage.strategy.prepare_for_create(context, &mut object);
        let errors = validate(context, storage, Some(&attributes.resource.version), &object);
        if !errors.is_empty() {
            return Err(Status::invalid(&storage.group_kind(), metadata(&object).name(), &errors));
        }
        for warning in storage.strategy.warnings(context, Part::Main, &object, None) {
            context.warn(&warning);
        }
        self.validate_admission(attributes, Some(&object)).await?;
        Ok(object)
    }

    async fn insert(
        &self,
        attributes: &Attributes<'_>,
        storage: &Storage,
        object: &mut Object,
    ) -> Result<Item, Status> {
        let Attributes { namespace, name, .. } = *attributes;
        let key = storage.key(ObjectName { namespace, name });
        let mut attempts = Attempts::new(self, storage, key, attributes.context.dry_run);
        let value = attributes.resource.encode_stored(storage, object).await?;
        loop {
            let live = attempts.live().await?;
            let decided = match &live.entry {
                Some(entry) => Err(already_exists(storage, name, &entry.value)),
                None => self.guard(attributes, Some(object), &live.snapshot),
            };
            let guard = match decided {
                Ok(guard) => guard,
                Err(status) => {
                    attempts.refused(status)?;
                    continue;
                }
            };
            if attributes.context.dry_run {
                return Ok(Item { key: Bytes::new(), value, revision: None });
            }
            if let Some(revision) = attempts.commit(None, Decision::Put(value.clone()), guard).await? {
                return Ok(Item { key: attempts.key().clone(), value, revision: Some(revision) });
            }
        }
    }

    pub(super) async fn check_guard(&self, attributes: &Attributes<'_>) -> Result<(), Status> {
        let at_hand = self.write_state(false).await?;
        if self.guard(attributes, None, &at_hand).is_err() {
            let fresh = self.write_state(true).await?;
            self.guard(attributes, None, &fresh)?;
        }
        Ok(())
    }

    pub(super) async fn admit(&self, attributes: &Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        for admission in &self.admission {
            admission.admit(attributes, Some(object)).await?;
        }
        Ok(())
    }

    pub(super) async fn validate_admission(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Object>,
    ) -> Result<(), Status> {
        for admission in &self.admission {
            admission.validate(attributes, object).await?;
        }
        Ok(())
    }
}

/// The storage of a resource whose objects are stored.
pub(super) fn stored(resource: &Resource) -> Result<&Storage, Status> {
    resource.storage().map(AsRef::as_ref).ok_or_else(Status::method_not_allowed)
}

/// Turns an object into the version that the storage works in.
pub(super) fn to_storage(storage: &Storage, object: &mut Object) -> Result<(), Status> {
    let version = storage.version.to_string();
    if object.get("apiVersion").and_then(Value::as_str) == Some(&version) {
        return Ok(());
    }
    storage.converter.convert(object, &storage.version).map_err(|error| Status::internal_error(error.0))
}

/// What is wrong with a new object, which came through a version if not from the server itself.
pub(super) fn validate(
    context: &Context,
    storage: &Storage,
    through: Option<&GroupVersion>,
    object: &Object,
) -> Vec<field::Error> {
    let strategy = &storage.strategy;
    let mut own = strategy.validate_create(context, object);
    own.extend(through.into_iter().flat_map(|version| strategy.validate_through(version, object, None)));
    if strategy.metadata_comes_last() && !own.is_empty() {
        return own;
    }
    let scope = if storage.namespaced { Scope::Namespaced } else { Scope::Cluster };
    let path = field::Path::new("metadata");
    let mut errors = objectmeta::validate_create(members(object), scope, strategy.name_rule(), &path);
    errors.append(&mut own);
    errors
}

fn is_already_exists(status: &Status) -> bool {
    status.reason == concord_meta::Reason::ALREADY_EXISTS
}

/// Whether something that admission chose for the object was taken before the object could be stored. The object is
/// admitted again then, and something else chosen.
fn is_lost_race(status: &Status) -> bool {
    status.reason == concord_meta::Reason::SERVER_TIMEOUT
}

fn already_exists(storage: &Storage, name: &str, value: &Bytes) -> Status {
    let terminating = stored_object(value).is_ok_and(|object| metadata(&object).is_terminating());
    match terminating {
        true => Status::being_deleted(&storage.resource, name),
        false => Status::already_exists(&storage.resource, name),
    }
}
