//! Objects to stored bytes, and stored bytes to what clients get.

use bytes::Bytes;
use concord_codec::{Options, Splice, TypeFields, decode, encode_object};
use concord_meta::{GroupVersion, Status};
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

/// The `apiVersion` that stored bytes say they are in; `None` if they are no object.
pub fn stored_version(value: &[u8]) -> Option<&str> {
    // Kinds are short, and come first.
    const MOST: usize = 1024;
    let rest = value.strip_prefix(b"{\"kind\":\"")?;
    let rest = &rest[..rest.len().min(MOST)];
    let quote = |text: &[u8]| text.iter().position(|byte| *byte == b'"');
    let version = rest[quote(rest)?..].strip_prefix(b"\",\"apiVersion\":\"")?;
    std::str::from_utf8(&version[..quote(version)?]).ok()
}

/// Reads stored bytes. What is stored was checked before it was written, so no limit of a request applies but the
/// one on depth, which everything that walks objects relies on; the record of who owns which field is a little deeper than
/// the object it is about.
pub(crate) fn stored_object(value: &[u8]) -> Result<Object, Status> {
    const OWNERS: usize = 16;
    let mut options = Options { validation: concord_codec::FieldValidation::Ignore, ..Options::default() };
    options.limits.max_bytes = usize::MAX;
    options.limits.max_depth += OWNERS;
    let decoded = decode(value, &options);
    decoded.map(|decoded| decoded.object).map_err(|error| match sealed(value) {
        Some(why) => Status::internal_error(why),
        None => Status::internal_error(format!(
            "a stored object cannot be read, it was written by something else: {error}"
        )),
    })
}

/// Why stored bytes are not an object, in upstream's words, if they are encrypted.
fn sealed(value: &[u8]) -> Option<&str> {
    let encrypted =
        || value.starts_with(b"k8s:enc:").then_some("identity transformer tried to read encrypted data");
    concord_store::why_unreadable(value).or_else(encrypted)
}

/// What stores are given. They copy what they keep, so there may be room left over.
pub(crate) fn stored_bytes(object: &Object) -> Bytes {
    let mut out = Vec::with_capacity(2048);
    encode_object(object, &mut out);
    out.into()
}

impl Storage {
    /// The bytes an object is stored as: this is the only place where objects become what others will read. Equal
    /// objects give equal bytes, whatever their resource version.
    ///
    /// # Errors
    ///
    /// 500 when it cannot be converted.
    pub(crate) fn encode(&self, object: &mut Object) -> Result<Bytes, Status> {
        metadata_mut(object).remove("resourceVersion");
        self.strategy.before_encoding(object);
        if self.encoding == self.version {
            return Ok(stored_bytes(object));
        }
        let mut stored = object.clone();
        self.convert(&mut stored, &self.encoding)?;
        // What reads it in that version passes it on as it is.
        if let Some(form) = self.form(&self.encoding.to_string()) {
            form.renew(&mut stored);
        }
        Ok(stored_bytes(&stored))
    }

    /// The object in the version that this storage works in, with its resource version.
    ///
    /// # Errors
    ///
    /// 500 when what is stored is no object of this kind.
    pub fn object(&self, item: &Item) -> Result<Object, Status> {
        self.object_in(item, &self.version)
    }

    /// The object in a version, in the form that it has there today, with its resource version.
    fn object_in(&self, item: &Item, version: &GroupVersion) -> Result<Object, Status> {
        let mut object = stored_object(&item.value)?;
        if let Some(form) =
            object.get("apiVersion").and_then(Value::as_str).and_then(|stored| self.form(stored))
        {
            form.renew(&mut object);
        }
        if self.convert(&mut object, version)?
            && let Some(form) = self.form(&version.to_string())
        {
            form.fit(&mut object);
        }
        if let Some(revision) = item.revision {
            metadata_mut(&mut object).insert("resourceVersion".to_owned(), revision.to_string().into());
        }
        Ok(object)
    }

    /// Whether the object had to be converted.
    fn convert(&self, object: &mut Object, to: &GroupVersion) -> Result<bool, Status> {
        if object.get("apiVersion").and_then(Value::as_str) == Some(&to.to_string()) {
            return Ok(false);
        }
        self.converter.convert(object, to).map_err(|error| Status::internal_error(error.0))?;
        Ok(true)
    }
}

impl Resource {
    /// The object in the version of this resource, with its resource version.
    ///
    /// # Errors
    ///
    /// 500 when what is stored is no object of this kind or cannot be converted.
    pub fn object(&self, item: &Item) -> Result<Object, Status> {
        match self.storage() {
            Some(storage) => storage.object_in(item, &self.version),
            None => stored_object(&item.value),
        }
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
        let is_formed = |revision| self.storage().is_none_or(|storage| storage.formed_since <= revision);
        let splice = revision.zip(Splice::after(self.stored_prefix(), value));
        if let Some((revision, splice)) = &splice
            && (is_formed(*revision) || self.unchanged.has(value, *revision))
        {
            splice.write(value, *revision, fields, out);
            return Ok(());
        }
        let mut object = self.object(&Item { key: Bytes::new(), value: value.clone(), revision: None })?;
        if let Some((revision, splice)) = &splice {
            let mut renewed = Vec::with_capacity(value.len());
            encode_object(&object, &mut renewed);
            if renewed == *value {
                self.unchanged.add(value, *revision);
                splice.write(value, *revision, fields, out);
                return Ok(());
            }
        }
        if let Some(revision) = revision {
            metadata_mut(&mut object).insert("resourceVersion".to_owned(), revision.to_string().into());
        }
        if fields == TypeFields::Omit {
            object.remove("kind");
            object.remove("apiVersion");
        }
        encode_object(&object, out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use concord_meta::GroupResource;
    use serde_json::json;

    use super::*;
    use crate::{Backing, Form, Renaming, ResourceNames, Strategy, Verb};

    struct Plain;

    impl Strategy for Plain {}

    /// A custom resource whose definition became what it is at revision 100.
    fn resource() -> Resource {
        let size = json!({"type": "object", "properties": {"size": {"type": "integer", "default": 1}}});
        let schema = json!({"type": "object", "properties": {"spec": size}});
        let schema = concord_structural::Schema::compile(&schema).expect("a schema");
        let version = GroupVersion::new("example.com", "v1");
        let storage = Storage {
            resource: GroupResource::new("example.com", "foos"),
            kind: "Foo".to_owned(),
            version: version.clone(),
            encoding: version.clone(),
            namespaced: true,
            prefix: Bytes::from_static(b"/registry/example.com/foos/"),
            strategy: Arc::new(Plain),
            converter: Arc::new(Renaming),
            forms: BTreeMap::from([(version.to_string(), Form::Custom(Arc::new(schema)))]),
            formed_since: 100,
            lifetime: None,
        };
        let names = ResourceNames { plural: "foos".to_owned(), kind: "Foo".to_owned(), ..Default::default() };
        Resource::new(version, names, Backing::Stored(Arc::new(storage)), Verb::ALL.to_vec())
    }

    #[test]
    fn the_owners_of_the_deepest_object_that_is_taken_can_be_read_again() {
        let levels = |count: usize| format!("{}1{}", r#"{"f:a":"#.repeat(count), "}".repeat(count));
        let (spec, owned) = (levels(499), levels(501));
        let stored = format!(
            r#"{{"kind":"Foo","apiVersion":"example.com/v1","metadata":{{"managedFields":[{{"fieldsV1":{owned}}}]}},"spec":{spec}}}"#
        );
        let object = stored_object(stored.as_bytes()).expect("it can be read");
        assert!(object.contains_key("spec"));
    }

    #[test]
    fn old_objects_that_would_be_written_as_they_are_get_on_the_bytes_path() {
        let resource = resource();
        let write = |value: &Bytes| {
            let mut out = Vec::new();
            resource.write_stored(value, Some(5), TypeFields::Keep, &mut out).expect("an object");
            String::from_utf8(out).expect("text")
        };
        let stored = |spec: &str| -> Bytes {
            format!(
                r#"{{"kind":"Foo","apiVersion":"example.com/v1","metadata":{{"name":"a"}},"spec":{spec}}}"#
            )
            .into()
        };
        let complete = stored(r#"{"size":2}"#);
        assert!(!resource.unchanged.has(&complete, 5));
        let first = write(&complete);
        assert!(first.contains(r#""resourceVersion":"5""#), "{first}");
        assert!(resource.unchanged.has(&complete, 5));
        assert_eq!(write(&complete), first);

        let incomplete = stored("{}");
        assert!(write(&incomplete).ends_with(r#""spec":{"size":1}}"#));
        assert!(!resource.unchanged.has(&incomplete, 5), "it lacks a default");
    }

    #[test]
    fn stored_objects_say_their_version() {
        for (value, version) in [
            (&br#"{"kind":"Pod","apiVersion":"v1","metadata":{}}"#[..], Some("v1")),
            (br#"{"kind":"Foo","apiVersion":"example.com/v2"}"#, Some("example.com/v2")),
            (br#"{"apiVersion":"v1"}"#, None),
            (br#"{"kind":"Pod"}"#, None),
            (br#"{"kind":"Pod","apiVersion":"v1"#, None),
            (b"", None),
        ] {
            assert_eq!(stored_version(value), version);
        }
        assert_eq!(stored_version(&stored_prefix("Pod", "v1")), Some("v1"));
    }
}
