//! Who owns which field, by the schema of the kind.

use concord_merge::apply::{ConvertError, FieldManager, Versions};
use concord_meta::GroupVersion;
use serde_json::Value;

use crate::{Part, Resource, Storage, form::FormType, remote::Conversions};

/// A kind in all its versions.
#[derive(Clone, Copy)]
pub(super) struct KindVersions<'a> {
    resource: &'a Resource,
    storage: &'a Storage,
    conversions: &'a Conversions,
}

impl Versions for KindVersions<'_> {
    type Type = FormType;

    fn type_of(&self, api_version: &str) -> Option<FormType> {
        self.storage.form(api_version).map(|form| form.merge_type())
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let version: GroupVersion = api_version.parse().map_err(|_| ConvertError::MissingVersion)?;
        if self.storage.form(api_version).is_none() {
            return Err(ConvertError::MissingVersion);
        }
        if self.storage.converter.remote().is_some() {
            let made = self.conversions.find(object, &version);
            let made = made.unwrap_or_else(|| Err("it is being converted".to_owned()));
            return made.map_err(ConvertError::Failed);
        }
        let Value::Object(mut object) = object.clone() else {
            return Err(ConvertError::Failed("not an object".to_owned()));
        };
        self.storage
            .converter
            .convert(&mut object, &version)
            .map_err(|error| ConvertError::Failed(error.0))?;
        Ok(Value::Object(object))
    }

    fn empty(&self) -> Value {
        let version = self.resource.version.to_string();
        match self.storage.form(&version) {
            Some(form) => form.empty(&self.resource.names.kind, &version),
            None => Value::Null,
        }
    }
}

/// The record of owners for one door of a resource.
pub(super) fn field_manager<'a>(
    resource: &'a Resource,
    storage: &'a Storage,
    part: Part<'_>,
    conversions: &'a Conversions,
) -> FieldManager<KindVersions<'a>> {
    FieldManager {
        kind: resource.kind(),
        subresource: part.subresource().to_owned(),
        versions: KindVersions { resource, storage, conversions },
        reset_fields: storage.strategy.reset_fields(part),
    }
}
