//! Tables and metadata alone, instead of objects.

use concord_codec::encode_object;
use concord_meta::{GroupVersionKind, Reason, Status};
use concord_printers::{IncludeObject, ListMeta, MetaVersion, TableOptions, Tables};
use concord_registry::{Listing, Object, Resource};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    form::{Form, Transform},
    set::{Columns, Endpoint},
};

/// The metadata of an object, as an object.
pub(crate) fn metadata_alone(mut object: Object, version: MetaVersion) -> Object {
    let metadata = object.remove("metadata").filter(Value::is_object);
    Object::from_iter([
        ("kind".to_owned(), "PartialObjectMetadata".into()),
        ("apiVersion".to_owned(), version.api_version().into()),
        ("metadata".to_owned(), metadata.unwrap_or_else(|| Value::Object(Object::new()))),
    ])
}

/// The tables of a request.
pub(crate) fn tables<'a>(
    columns: &'a Columns,
    version: MetaVersion,
    include_object: IncludeObject,
) -> Tables<'a> {
    let options = TableOptions { version, include_object, no_headers: false };
    Tables { printer: &**columns, options, now: Timestamp::now() }
}

/// One object as the client wants it.
///
/// # Errors
///
/// 406 when the client wants a list.
pub(crate) fn object(
    endpoint: &Endpoint,
    kind: &GroupVersionKind,
    form: &Form,
    include: IncludeObject,
    object: Object,
) -> Result<Object, Status> {
    match form.transform {
        Transform::Nothing => Ok(object),
        Transform::Table(version) => Ok(tables(&endpoint.columns, version, include).object(object)),
        Transform::Metadata(version) => Ok(metadata_alone(object, version)),
        Transform::MetadataList(_) => {
            let what = go_type(&endpoint.resource, kind);
            Err(not_acceptable(format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list ({what})"
            )))
        }
    }
}

/// 406: metadata of one object was asked for, and there is a list.
pub(crate) fn is_a_list(resource: &Resource) -> Status {
    let kind = resource.version.with_kind(&resource.names.list_kind);
    let what = go_type(resource, &kind);
    not_acceptable(format!(
        "you requested PartialObjectMetadata, but the requested object is a list ({what})"
    ))
}

/// The table of a list, as compact JSON.
///
/// # Errors
///
/// 500 when an object cannot be read.
pub(crate) fn list_table(
    endpoint: &Endpoint,
    tables: &Tables<'_>,
    listing: &Listing,
) -> Result<Vec<u8>, Status> {
    let objects: Result<Vec<Object>, Status> =
        listing.entries.iter().map(|entry| endpoint.resource.object(&entry.into())).collect();
    let metadata = ListMeta {
        resource_version: listing.resource_version(),
        continue_token: listing.continue_token.clone(),
        remaining_item_count: listing.remaining_item_count,
    };
    let mut out = Vec::new();
    encode_object(&tables.list(&metadata, objects?), &mut out);
    out.push(b'\n');
    Ok(out)
}

fn not_acceptable(message: String) -> Status {
    Status::failure(406, Reason::NOT_ACCEPTABLE, message)
}

/// What upstream's message calls the object: the name of its internal type.
fn go_type(resource: &Resource, kind: &GroupVersionKind) -> String {
    match (resource.order, kind.group.as_str()) {
        (concord_codec::ListOrder::Sorted, _) => "*unstructured.Unstructured".to_owned(),
        (_, "") => format!("*core.{}", kind.kind),
        (_, group) => format!("*{}.{}", group.split('.').next().unwrap_or_default(), kind.kind),
    }
}
