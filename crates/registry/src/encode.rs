//! Objects to stored bytes, and stored bytes to what clients get.

use bytes::Bytes;
use concord_codec::{Options, Splice, TypeFields, decode, encode_object};
use concord_meta::Status;
use serde_json::Value;

use crate::{Item, Object, Resource, Storage, metadata_mut};

/// What stored objects of a kind and version begin with, up to the brace that opens their metadata.
pub(crate) fn stored_prefix(kind: &str, api_version: &str) -> Bytes {
    let mut prefix = b"{\"kind\":".to_vec();
    concord_codec::encode_into(&Value::from(kind), &mut prefix);
    prefix.extend_from_slice(b",\"apiVersion\":");
    concord_codec::encode_into(&Value::from(api_version), &mut prefix);
    prefix.extend_from_slice(b",\"metadata\":{");
    prefix.into()
}

/// The bytes an object is stored as. Equal objects give equal bytes, whatever their resource version.
pub(crate) fn stored_bytes(object: &mut Object) -> Bytes {
    metadata_mut(object).remove("resourceVersion");
    let mut out = Vec::with_capacity(512);
    encode_object(object, &mut out);
    // Kept for as long as the object is: without the room that was left over.
    out.into_boxed_slice().into()
}

/// Reads stored bytes. What is stored was checked before it was written, so no limit of a request applies but the
/// one on depth, which everything that walks objects relies on.
pub(crate) fn stored_object(value: &[u8]) -> Result<Object, Status> {
    let mut options = Options { validation: concord_codec::FieldValidation::Ignore, ..Options::default() };
    options.limits.max_bytes = usize::MAX;
    let decoded = decode(value, &options);
    decoded.map(|decoded| decoded.object).map_err(|error| {
        Status::internal_error(format!(
            "a stored object cannot be read, it was written by something else: {error}"
        ))
    })
}

impl Storage {
    /// The object in the storage version, with its resource version.
    ///
    /// # Errors
    ///
    /// 500 when what is stored is no object of this kind.
    pub fn object(&self, item: &Item) -> Result<Object, Status> {
        let mut object = stored_object(&item.value)?;
        let version = self.version.to_string();
        if object.get("apiVersion").and_then(Value::as_str) != Some(&version) {
            self.converter
                .convert(&mut object, &self.version)
                .map_err(|error| Status::internal_error(error.0))?;
        }
        if let Some(revision) = item.revision {
            metadata_mut(&mut object).insert("resourceVersion".to_owned(), revision.to_string().into());
        }
        Ok(object)
    }
}

impl Resource {
    /// The object in the version of this resource, with its resource version.
    ///
    /// # Errors
    ///
    /// 500 when what is stored is no object of this kind or cannot be converted.
    pub fn object(&self, item: &Item) -> Result<Object, Status> {
        let mut object = stored_object(&item.value)?;
        self.convert_to_served(&mut object)?;
        if let Some(revision) = item.revision {
            metadata_mut(&mut object).insert("resourceVersion".to_owned(), revision.to_string().into());
        }
        Ok(object)
    }

    /// Writes the object as JSON in the version of this resource, with its resource version. If that is the version
    /// it is stored in, the bytes are copied and not parsed.
    ///
    /// # Errors
    ///
    /// As [`Resource::object`].
    pub fn write_object(&self, item: &Item, fields: TypeFields, out: &mut Vec<u8>) -> Result<(), Status> {
        self.write_stored(&item.value, item.revision, fields, out)
    }

    pub(crate) fn write_stored(
        &self,
        value: &Bytes,
        revision: Option<u64>,
        fields: TypeFields,
        out: &mut Vec<u8>,
    ) -> Result<(), Status> {
        if let (Some(revision), Some(splice)) = (revision, Splice::after(self.stored_prefix(), value)) {
            splice.write(value, revision, fields, out);
            return Ok(());
        }
        let item = Item { key: Bytes::new(), value: value.clone(), revision };
        let mut object = self.object(&item)?;
        if fields == TypeFields::Omit {
            object.remove("kind");
            object.remove("apiVersion");
        }
        encode_object(&object, out);
        Ok(())
    }

    fn convert_to_served(&self, object: &mut Object) -> Result<(), Status> {
        let version = self.version.to_string();
        if object.get("apiVersion").and_then(Value::as_str) == Some(&version) {
            return Ok(());
        }
        let Some(storage) = self.storage() else { return Ok(()) };
        storage.converter.convert(object, &self.version).map_err(|error| Status::internal_error(error.0))
    }
}
