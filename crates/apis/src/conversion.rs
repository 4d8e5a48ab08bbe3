use std::{collections::BTreeMap, sync::Arc};

use concord_meta::GroupVersion;
use concord_registry::{ConversionError, Converter, Object};
use concord_schema::Schema;

/// How the versions of a built-in kind become one another: their fields as upstream converts them, and then in the form
/// that the new version has, as if a client had sent them.
pub(crate) struct BuiltinConverter {
    /// By `apiVersion`.
    pub(crate) schemas: BTreeMap<String, Arc<Schema>>,
}

impl Converter for BuiltinConverter {
    fn convert(&self, object: &mut Object, to: &GroupVersion) -> Result<(), ConversionError> {
        use concord_conversion::Difference;

        let text =
            |name: &str| object.get(name).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
        let (kind, from, to) = (text("kind"), text("apiVersion"), to.to_string());
        let difference = concord_conversion::difference(&kind, &from, &to);
        concord_conversion::convert(object, &from, &to)
            .map_err(|error| ConversionError(error.to_string()))?;
        if difference == Some(Difference::Fields)
            && let Some(schema) = self.schemas.get(&to)
        {
            schema.normalize(object).map_err(|error| ConversionError(error.to_string()))?;
        }
        Ok(())
    }
}
