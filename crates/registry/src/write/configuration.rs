//! Configurations that admission applies to an object: merged as server-side apply merges, but owned by nobody.

use concord_merge::typed::{Duplicates, ValidationErrors, atomics, merge, validate};
use serde_json::Value;

use crate::{Object, Resource};

/// Why a configuration cannot be applied, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// Nothing is known of the fields of this kind.
    #[error("no type is known for the kind")]
    Unknown,
    /// The configuration does not fit the kind.
    #[error("failed to convert patch object to typed object: {0}")]
    Configuration(ValidationErrors),
    /// It has these paths, which can only be replaced as a whole: what it leaves out would be lost.
    #[error("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {0}")]
    Atomic(String),
    /// The object does not fit the kind.
    #[error("failed to convert original object to typed object: {0}")]
    Original(ValidationErrors),
    /// The two cannot be merged.
    #[error("failed to merge patch: {0}")]
    Merge(ValidationErrors),
}

impl Resource {
    /// An object with a configuration applied to it; for a subresource both are of the kind that this one takes. Nothing is
    /// removed, and no record of owners is kept.
    ///
    /// # Errors
    ///
    /// See [`ConfigurationError`].
    pub fn configured(
        &self,
        subresource: &str,
        object: &Value,
        configuration: Object,
    ) -> Result<Value, ConfigurationError> {
        let form = self.form_of(subresource).ok_or(ConfigurationError::Unknown)?;
        let ty = form.merge_type();
        let configuration = Value::Object(configuration);
        validate(&configuration, &ty, Duplicates::Refused).map_err(ConfigurationError::Configuration)?;
        let atomics = atomics(&configuration, &ty);
        if !atomics.is_empty() {
            return Err(ConfigurationError::Atomic(atomics.join(", ")));
        }
        validate(object, &ty, Duplicates::Allowed).map_err(ConfigurationError::Original)?;
        merge(object, &configuration, &ty).map_err(ConfigurationError::Merge)
    }
}
