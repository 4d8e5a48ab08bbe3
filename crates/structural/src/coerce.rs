//! Metadata that has the shape of its type, also inside of embedded resources.

use concord_codec::Violation;
use concord_meta::field::{Error, Path};
use concord_schema::Mismatch;
use serde_json::Value;

use crate::{
    Object,
    objectmeta::object_meta,
    schema::{Node, Schema},
};

/// What becomes of metadata that does not fit its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It is an error: what clients send.
    Refused,
    /// It is dropped, member by member: what was stored.
    Dropped,
}

/// An object whose metadata has a wrong shape. The object is then half changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misshapen {
    /// Its own metadata.
    #[error(transparent)]
    Metadata(#[from] Mismatch),
    /// The metadata of a resource in it.
    #[error(transparent)]
    Embedded(#[from] Error),
}

/// What becomes of nulls that are not allowed and have no default.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nulls {
    Pruned,
    Kept,
}

impl Schema {
    /// Gives an object the shape that the schema demands before it is validated, as upstream does whenever it
    /// decodes one: metadata is coerced, unknown fields and nulls are pruned, defaults are set. To do it twice
    /// changes nothing if the defaults themselves fit. Answers the paths of the fields that were dropped.
    ///
    /// # Errors
    ///
    /// When metadata has a wrong shape and is not to be dropped.
    pub fn shape(&self, object: &mut Object, malformed: Malformed) -> Result<Vec<String>, Misshapen> {
        let unknown = self.fit(object, malformed)?;
        self.default(object);
        Ok(unknown)
    }

    /// [`Schema::shape`] for what came out of applied configurations. Nulls that somebody applied stay, and validation
    /// refuses them where they are not allowed: upstream does not decode such an object again.
    ///
    /// # Errors
    ///
    /// As [`Schema::shape`].
    pub fn shape_applied(&self, object: &mut Object, malformed: Malformed) -> Result<Vec<String>, Misshapen> {
        let unknown = self.fit_with(object, malformed, Nulls::Kept)?;
        self.default(object);
        Ok(unknown)
    }

    /// The same without defaults.
    ///
    /// # Errors
    ///
    /// As [`Schema::shape`].
    pub fn fit(&self, object: &mut Object, malformed: Malformed) -> Result<Vec<String>, Misshapen> {
        self.fit_with(object, malformed, Nulls::Pruned)
    }

    fn fit_with(
        &self,
        object: &mut Object,
        malformed: Malformed,
        nulls: Nulls,
    ) -> Result<Vec<String>, Misshapen> {
        let mut unknown = Vec::new();
        if let Some(metadata) = object.get_mut("metadata") {
            unknown = coerce_metadata(metadata, malformed, "metadata")?;
        }
        unknown.extend(self.prune(object));
        if nulls == Nulls::Pruned {
            self.prune_nulls(object);
        }
        unknown.extend(self.coerce(object, malformed)?);
        Ok(unknown)
    }

    /// Gives the metadata of embedded resources the shape of its type, and answers the paths of unknown fields.
    ///
    /// # Errors
    ///
    /// What does not fit, unless that is to be dropped.
    pub fn coerce(&self, object: &mut Object, malformed: Malformed) -> Result<Vec<String>, Error> {
        let mut walk = Walk { malformed, unknown: Vec::new() };
        let root = self.root();
        walk.members(&Path::nil(), object, root, root.is_embedded_resource())?;
        walk.unknown.sort_unstable();
        Ok(walk.unknown)
    }
}

/// Coerces the metadata of embedded resources in a default.
pub(crate) fn coerce_default(path: &Path, value: &mut Value, node: Node<'_>) -> Result<(), Error> {
    let mut walk = Walk { malformed: Malformed::Refused, unknown: Vec::new() };
    walk.value(path, value, node)
}

/// Coerces a default that is a whole resource, or an object around a default of its own metadata.
pub(crate) fn coerce_resource(path: &Path, object: &mut Object, node: Node<'_>) -> Result<(), Error> {
    let mut walk = Walk { malformed: Malformed::Refused, unknown: Vec::new() };
    walk.members(path, object, node, true)
}

/// Gives metadata the shape of its type and answers the paths of unknown fields, below `prefix`.
///
/// # Errors
///
/// What does not fit, in Go's words.
pub(crate) fn coerce_metadata(
    metadata: &mut Value,
    malformed: Malformed,
    prefix: &str,
) -> Result<Vec<String>, Mismatch> {
    let members = match metadata {
        Value::Object(members) => members,
        Value::Null => {
            *metadata = Value::Object(Object::new());
            return Ok(Vec::new());
        }
        other => return Err(not_metadata(other)),
    };
    let before = (malformed == Malformed::Dropped).then(|| members.clone());
    let mut violations = object_meta().normalize_strict(members);
    if let (Err(_), Some(before)) = (&violations, before) {
        *members = without_misfits(before);
        violations = object_meta().normalize_strict(members);
    }
    let unknown = violations?.into_iter().filter_map(|violation| match violation {
        Violation::Unknown(path) => Some(format!("{prefix}.{path}")),
        Violation::Duplicate(_) | Violation::Yaml(_) => None,
    });
    Ok(unknown.collect())
}

/// The members that fit when each stands alone.
fn without_misfits(members: Object) -> Object {
    let fits = |name: &str, value: &Value| {
        let mut alone = Object::from_iter([(name.to_owned(), value.clone())]);
        object_meta().normalize(&mut alone).is_ok()
    };
    members.into_iter().filter(|(name, value)| fits(name, value)).collect()
}

fn not_metadata(value: &Value) -> Mismatch {
    let found = match value {
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        _ => "number",
    };
    Mismatch::Value { found: found.to_owned(), expected: "v1.ObjectMeta".to_owned() }
}

struct Walk {
    malformed: Malformed,
    unknown: Vec<String>,
}

impl Walk {
    fn value(&mut self, path: &Path, value: &mut Value, node: Node<'_>) -> Result<(), Error> {
        if !node.has_embedded_below() {
            return Ok(());
        }
        match value {
            Value::Object(members) => self.members(path, members, node, node.is_embedded_resource()),
            Value::Array(items) => {
                let Some(node) = node.items() else { return Ok(()) };
                let mut items = items.iter_mut().enumerate();
                items.try_for_each(|(index, item)| self.value(&path.index(index), item, node))
            }
            _ => Ok(()),
        }
    }

    fn members(
        &mut self,
        path: &Path,
        members: &mut Object,
        node: Node<'_>,
        is_resource: bool,
    ) -> Result<(), Error> {
        if is_resource {
            self.resource(path, members)?;
        }
        for (name, value) in members.iter_mut() {
            if let Some(property) = node.property(name) {
                self.value(&path.child(name), value, property)?;
            } else if let Some(additional) = node.additional().schema() {
                self.value(&path.key(name), value, additional)?;
            }
        }
        Ok(())
    }

    fn resource(&mut self, path: &Path, members: &mut Object) -> Result<(), Error> {
        for name in ["apiVersion", "kind"] {
            let Some(value) = members.get(name).filter(|value| !value.is_string()) else { continue };
            if self.malformed == Malformed::Refused {
                return Err(Error::invalid(&path.child(name), value, "must be a string"));
            }
            members.remove(name);
        }
        let Some(metadata) = members.get_mut("metadata") else { return Ok(()) };
        let here = path.child("metadata");
        let before = metadata.clone();
        match coerce_metadata(metadata, self.malformed, &here.to_string()) {
            Ok(unknown) => self.unknown.extend(unknown),
            Err(_) if self.malformed == Malformed::Dropped => {}
            Err(error) => return Err(Error::invalid(&here, &before, error.to_string())),
        }
        Ok(())
    }
}
