//! What is known of the objects of a kind in one version.

use std::sync::Arc;

use concord_codec::{Fields, Violation};
use concord_merge::typed::{Kinds, Type};
use concord_schema::{Place, Schema};
use concord_structural::{Malformed, MergeType};
use serde_json::{Value, json};

use crate::Object;

/// The fields of a kind in one version, and the form in which its objects are read, stored and merged.
#[derive(Clone)]
pub enum Form {
    /// Of a kind that is built into the server.
    BuiltIn(Arc<Schema>),
    /// Of a kind that was defined at run time.
    Custom(Arc<concord_structural::Schema>),
}

/// Where an object that is put into its form comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Bytes of which unknown fields were dropped, and told, while they were read.
    Read,
    /// Something that was put together and is treated as a body.
    Body,
    /// Something that was put together and is treated as a map.
    Map,
}

impl From<Arc<Schema>> for Form {
    fn from(schema: Arc<Schema>) -> Self {
        Self::BuiltIn(schema)
    }
}

impl Form {
    /// What strict decoding knows; `None` if unknown fields are dropped later.
    pub(crate) fn fields(&self) -> Option<&dyn Fields> {
        match self {
            Self::BuiltIn(schema) => Some(schema.fields()),
            Self::Custom(_) => None,
        }
    }

    /// Gives an object its form: without fields that the kind does not have, which are told, and as it would be encoded.
    ///
    /// # Errors
    ///
    /// Upstream's text about what does not fit.
    pub(crate) fn normalize(&self, object: &mut Object, source: Source) -> Result<Vec<Violation>, String> {
        match self {
            Self::BuiltIn(schema) => match source {
                Source::Read => schema.normalize(object).map(|()| Vec::new()),
                Source::Body => schema.normalize_strict(object),
                Source::Map => schema.normalize_unstructured(object),
            }
            .map_err(|error| error.to_string()),
            Self::Custom(schema) => {
                let unknown = match source {
                    Source::Read | Source::Body => schema.shape(object, Malformed::Refused),
                    Source::Map => schema.shape_applied(object, Malformed::Refused),
                };
                let unknown = unknown.map_err(|error| error.to_string())?;
                Ok(unknown.into_iter().map(Violation::Unknown).collect())
            }
        }
    }

    /// Gives an object that was read from the log the form that it has today: what a custom kind knew when it was
    /// written may have changed since.
    pub(crate) fn renew(&self, object: &mut Object) {
        if let Self::Custom(schema) = self {
            // Nothing is refused when what does not fit is dropped.
            drop(schema.shape(object, Malformed::Dropped));
        }
    }

    /// Drops what a converted object has and its version does not know. Defaults are those of the version in which it is
    /// stored.
    pub(crate) fn fit(&self, object: &mut Object) {
        if let Self::Custom(schema) = self {
            // Nothing is refused when what does not fit is dropped.
            drop(schema.fit(object, Malformed::Dropped));
        }
    }

    /// The object before it is created.
    pub(crate) fn empty(&self, kind: &str, api_version: &str) -> Value {
        match self {
            Self::BuiltIn(schema) => schema.empty(kind, api_version),
            Self::Custom(_) => json!({"apiVersion": api_version, "kind": kind}),
        }
    }

    /// What server-side apply knows.
    pub(crate) fn merge_type(&self) -> FormType {
        match self {
            Self::BuiltIn(schema) => FormType::BuiltIn(schema.place().clone()),
            Self::Custom(schema) => FormType::Custom(MergeType::new(Arc::clone(schema))),
        }
    }
}

/// A place in a form, as server-side apply sees it.
#[derive(Clone)]
pub(crate) enum FormType {
    BuiltIn(Place),
    Custom(MergeType),
}

impl Type for FormType {
    fn kinds(&self) -> Kinds<'_> {
        match self {
            Self::BuiltIn(place) => place.kinds(),
            Self::Custom(node) => node.kinds(),
        }
    }

    fn field(&self, name: &str) -> Option<Self> {
        match self {
            Self::BuiltIn(place) => Type::field(place, name).map(Self::BuiltIn),
            Self::Custom(node) => node.field(name).map(Self::Custom),
        }
    }

    fn values(&self) -> Option<Self> {
        match self {
            Self::BuiltIn(place) => place.values().map(Self::BuiltIn),
            Self::Custom(node) => node.values().map(Self::Custom),
        }
    }

    fn items(&self) -> Option<Self> {
        match self {
            Self::BuiltIn(place) => Type::items(place).map(Self::BuiltIn),
            Self::Custom(node) => node.items().map(Self::Custom),
        }
    }

    fn default_of(&self, field: &str) -> Option<Value> {
        match self {
            Self::BuiltIn(place) => place.default_of(field),
            Self::Custom(node) => node.default_of(field),
        }
    }

    fn is_free_form(&self) -> bool {
        match self {
            Self::BuiltIn(place) => place.is_free_form(),
            Self::Custom(node) => node.is_free_form(),
        }
    }
}
