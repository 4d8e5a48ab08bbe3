use std::borrow::Cow;

use serde_json::Value;

use crate::typed::{Duplicates, Type, ValidationErrors, validate};

/// What apply must know of a kind: its schema in every version, and how to get from one version to another.
pub trait Versions {
    /// A place in the schema.
    type Type: Type;

    /// The type of the whole object in a version; `None` if that version is not known, or no longer.
    fn type_of(&self, api_version: &str) -> Option<Self::Type>;

    /// The object in another version.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError>;

    /// The object before it is created, in the version of the request.
    ///
    /// For custom resources that is apiVersion and kind alone. A built-in kind has here what upstream's zero
    /// value encodes to: fields that are always written are present, as `{}` or null. Who creates the object
    /// does not own such a field itself, only what it holds: `f:spec` has no `.` then.
    fn empty(&self) -> Value;
}

/// Why an object could not be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The version is not known. Managers of such a version are forgotten.
    #[error("no such version")]
    MissingVersion,
    /// Anything else, such as a failing webhook.
    #[error("{0}")]
    Failed(String),
}

/// An object with its type. Most are somebody else's, and large: they are borrowed as long as nothing changes.
pub(super) struct Typed<'a, T> {
    pub(super) object: Cow<'a, Value>,
    pub(super) ty: T,
}

impl<T> Typed<'_, T> {
    pub(super) fn into_owned(self) -> Typed<'static, T> {
        Typed { object: Cow::Owned(self.object.into_owned()), ty: self.ty }
    }
}

pub(super) fn typed<'a, V: Versions>(
    versions: &V,
    object: Cow<'a, Value>,
    api_version: &str,
    duplicates: Duplicates,
) -> Result<Typed<'a, V::Type>, TypeError> {
    let ty = versions.type_of(api_version).ok_or(ConvertError::MissingVersion)?;
    validate(&object, &ty, duplicates)?;
    Ok(Typed { object, ty })
}

#[derive(Debug, thiserror::Error)]
pub(super) enum TypeError {
    #[error(transparent)]
    Convert(#[from] ConvertError),
    #[error(transparent)]
    Invalid(#[from] ValidationErrors),
}

impl TypeError {
    pub(super) fn is_missing_version(&self) -> bool {
        matches!(self, Self::Convert(ConvertError::MissingVersion))
    }
}

/// The object in a version; unchanged if it has that version already.
pub(super) fn convert<'a, V: Versions>(
    versions: &V,
    from: &'a Typed<'_, V::Type>,
    api_version: &str,
) -> Result<Typed<'a, V::Type>, TypeError> {
    if from.object.get("apiVersion").and_then(Value::as_str) == Some(api_version) {
        return Ok(Typed { object: Cow::Borrowed(&from.object), ty: from.ty.clone() });
    }
    let object = versions.convert(&from.object, api_version)?;
    typed(versions, Cow::Owned(object), api_version, Duplicates::Allowed)
}
