use concord_meta::GroupVersion;
use serde_json::Value;

use crate::{Object, Remote};

/// Why an object cannot be had in another version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConversionError(pub String);

/// How an object of one version becomes one of another.
pub trait Converter: Send + Sync + 'static {
    /// Turns the object into that version, its `apiVersion` included.
    ///
    /// # Errors
    ///
    /// With the reason, which the client sees.
    fn convert(&self, object: &mut Object, to: &GroupVersion) -> Result<(), ConversionError>;

    /// Who has to be asked, if objects cannot be converted here.
    fn remote(&self) -> Option<&Remote> {
        None
    }
}

/// For kinds whose versions differ in nothing but the name of the version.
#[derive(Debug, Clone, Copy)]
pub struct Renaming;

impl Converter for Renaming {
    fn convert(&self, object: &mut Object, to: &GroupVersion) -> Result<(), ConversionError> {
        object.insert("apiVersion".to_owned(), Value::String(to.to_string()));
        Ok(())
    }
}
