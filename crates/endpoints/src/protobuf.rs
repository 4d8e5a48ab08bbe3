//! Answers in protobuf.

use concord_meta::{GroupVersion, GroupVersionKind, Status};
use concord_printers::MetaVersion;
use concord_protobuf::ListMeta;
use concord_registry::{Item, Listing, Object, Resource};
use serde_json::Value;

use crate::{list_body::Items, transform::metadata_alone};

/// An object in its envelope: of the resource, or anything else that one of its answers may be.
///
/// # Errors
///
/// 500 when its kind has no form in protobuf.
pub(crate) fn encode(resource: &Resource, object: &Object) -> Result<Vec<u8>, Status> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let codec = resource.codec(&GroupVersionKind::new(group, version, kind))?;
    Ok(codec.encode(api_version, kind, object))
}

/// A Status in its envelope.
///
/// # Errors
///
/// As [`encode`].
pub(crate) fn encode_status(resource: &Resource, status: &Status) -> Result<Vec<u8>, Status> {
    match serde_json::to_value(status).map_err(Status::internal_error)? {
        Value::Object(status) => encode(resource, &status),
        other => Err(Status::internal_error(format!("a Status is no {other}"))),
    }
}

/// A list in its envelope.
///
/// # Errors
///
/// 500 when a stored object cannot be read, or its kind has no form in protobuf.
pub(crate) fn encode_list(resource: &Resource, items: Items, listing: &Listing) -> Result<Vec<u8>, Status> {
    let (version, kind, list_kind) = match items {
        Items::Objects => (resource.version.clone(), &*resource.names.kind, &*resource.names.list_kind),
        Items::Metadata(MetaVersion::V1) => {
            (GroupVersion::new("meta.k8s.io", "v1"), "PartialObjectMetadata", "PartialObjectMetadataList")
        }
        // Lists of this version have their fields at other numbers than all other lists.
        Items::Metadata(MetaVersion::V1Beta1) => {
            return Err(Status::not_acceptable(&["application/json", "application/yaml"]));
        }
    };
    let codec = resource.codec(&version.with_kind(kind))?;
    let meta = ListMeta {
        resource_version: &listing.resource_version(),
        continue_token: &listing.continue_token,
        remaining_item_count: listing.remaining_item_count.map(|count| count.try_into().unwrap_or(i64::MAX)),
    };
    let objects = listing.entries.iter().rev().map(|entry| {
        let object = resource.object(&Item::from(entry))?;
        Ok(match items {
            Items::Objects => object,
            Items::Metadata(version) => metadata_alone(object, version),
        })
    });
    codec.encode_list(&version.to_string(), list_kind, meta, objects)
}
