//! Objects that the server makes along with others.

use bytes::Bytes;
use concord_meta::Status;
use serde_json::Value;

use super::{
    create::{stored, to_storage, validate},
    decode::finish,
    managed::field_manager,
    system,
};
use crate::{Context, Item, Object, ObjectName, Part, Resource, metadata, remote::Conversions};

impl Resource {
    /// The key and the bytes of a new object, as a create of it would store them. For an object of the server's own that
    /// comes into being in the transaction of another one, see [`crate::Guard`]: admission is not asked, and that the key
    /// is free has to be a condition of the transaction.
    ///
    /// # Errors
    ///
    /// Those of a create that concern the object alone.
    pub fn encode_new(
        &self,
        context: &Context,
        namespace: &str,
        mut object: Object,
    ) -> Result<(Bytes, Bytes), Status> {
        let storage = stored(self)?;
        if let Some(form) = self.form() {
            finish(&mut object, &form, &self.kind())?;
        }
        self.apply_defaults(&mut object).map_err(Status::internal_error)?;
        system::begin_create(&mut object, context.dry_run)?;
        system::place(&mut object, self, namespace)?;
        let conversions = Conversions::default();
        let manager = field_manager(self, storage, Part::Main, &conversions);
        let object = manager.update(None, Value::Object(object), &context.manager, context.now);
        let Value::Object(mut object) = object else { return Err(Status::internal_error("not an object")) };
        to_storage(storage, &mut object)?;
        system::identify(&mut object, context.now);
        storage.strategy.prepare_for_create(context, &mut object);
        let errors = validate(context, storage, None, &object);
        let name = metadata(&object).name();
        if !errors.is_empty() {
            return Err(Status::invalid(&storage.group_kind(), name, &errors));
        }
        let key = storage.key(ObjectName { namespace, name });
        Ok((key, storage.encode(&mut object)?))
    }
    /// The bytes of an object of the server's own that it has changed, as an update of it would store them. Admission is
    /// not asked, neither is the strategy: the server knows what it does. That the object is still what it was has to be a
    /// condition of the transaction.
    ///
    /// # Errors
    ///
    /// 500 when what is stored is no object of this kind.
    pub fn encode_changed(
        &self,
        context: &Context,
        part: Part<'_>,
        stored: &Item,
        object: Object,
    ) -> Result<Bytes, Status> {
        let storage = self::stored(self)?;
        let live = Value::Object(self.object(stored)?);
        let conversions = Conversions::default();
        let manager = field_manager(self, storage, part, &conversions);
        let changed = manager.update(Some(&live), Value::Object(object), &context.manager, context.now);
        let Value::Object(mut changed) = changed else { return Err(Status::internal_error("not an object")) };
        to_storage(storage, &mut changed)?;
        storage.encode(&mut changed)
    }
}
