//! Who owns what in an object that is never stored: upstream records it all the same, and clients see it in the answer.

use std::sync::Arc;

use concord_merge::apply::{ConvertError, FieldManager, ResetFields, Versions};
use concord_meta::GroupVersionKind;
use concord_schema::{Place, Schema};
use serde_json::Value;

use crate::{Context, Object};

/// A kind in the only version it has here.
struct OneVersion<'a> {
    schema: &'a Schema,
    kind: String,
    version: String,
}

impl Versions for OneVersion<'_> {
    type Type = Place;

    fn type_of(&self, api_version: &str) -> Option<Place> {
        (api_version == self.version).then(|| self.schema.place().clone())
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        match api_version == self.version {
            true => Ok(object.clone()),
            false => Err(ConvertError::MissingVersion),
        }
    }

    fn empty(&self) -> Value {
        self.schema.empty(&self.kind, &self.version)
    }
}

/// The object of this kind with the record of who wrote its fields, for kinds that are never stored. `subresource` is what
/// it was sent to, or empty.
#[must_use]
pub fn with_owners(
    schema: &Arc<Schema>,
    kind: GroupVersionKind,
    subresource: &str,
    context: &Context,
    object: Object,
) -> Object {
    let versions = OneVersion { schema, kind: kind.kind.clone(), version: kind.group_version().to_string() };
    let manager = FieldManager {
        kind,
        subresource: subresource.to_owned(),
        versions,
        reset_fields: ResetFields::none(),
    };
    match manager.update(None, Value::Object(object), &context.manager, context.now) {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}
