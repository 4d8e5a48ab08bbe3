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
use crate::{Context, Object, ObjectName, Part, Resource, metadata};

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
        self.apply_defaults(&mut object);
        system::begin_create(&mut object, context.dry_run)?;
        system::place(&mut object, self, namespace)?;
        let manager = field_manager(self, storage, Part::Main);
        let object = manager.update(None, Value::Object(object), &context.manager, context.now);
        let Value::Object(mut object) = object else { return Err(Status::internal_error("not an object")) };
        to_storage(storage, &mut object)?;
        system::identify(&mut object, context.now);
        storage.strategy.prepare_for_create(context, &mut object);
        let errors = validate(context, storage, &object);
        let name = metadata(&object).name();
        if !errors.is_empty() {
            return Err(Status::invalid(&storage.group_kind(), name, &errors));
        }
        let key = storage.key(ObjectName { namespace, name });
        Ok((key, storage.encode(&mut object)?))
    }
}
