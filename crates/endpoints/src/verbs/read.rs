//! get and list.

use std::borrow::Cow;

use concord_meta::{
    ResourceVersion, Status,
    fields::KnownFields,
    options::{ListOptions, ReadAt},
    parse_resource_version,
};
use concord_registry::{Backing, ListRequest, Listing, Object, SubresourceKind, metadata};
use concord_server::Response;
use http::StatusCode;
use serde_json::Value;

use super::{behaviour, unsupported};
use crate::{call::Call, watch};

pub(super) async fn get(call: &Call<'_>) -> Result<Response, Status> {
    check_export(call)?;
    let read_at = read_at(call)?;
    match (behaviour(call), &call.resource().backing) {
        (None, Backing::Virtual(of)) => {
            let object = of.get(call.resource(), call.object_name().name).await?;
            call.answer_object(StatusCode::OK, object)
        }
        (None | Some(SubresourceKind::Part), _) => {
            let item = call.registry.get(call.storage()?, call.object_name(), read_at).await?;
            call.answer_item(StatusCode::OK, item).await
        }
        (Some(SubresourceKind::Scale(scaling)), _) => {
            let scale =
                call.registry.get_scale(call.resource(), scaling, call.object_name(), read_at).await?;
            call.answer_object(StatusCode::OK, scale)
        }
        (Some(SubresourceKind::Virtual(_) | SubresourceKind::Unreachable(_)), _) => Err(unsupported(call)),
    }
}

/// A parameter that is gone, of which upstream still tells.
fn check_export(call: &Call<'_>) -> Result<(), Status> {
    match call.parameter("export") {
        Some(value) if value != "0" && !value.eq_ignore_ascii_case("false") => {
            Err(Status::bad_request("the export parameter, deprecated since v1.14, is no longer supported"))
        }
        _ => Ok(()),
    }
}

/// The state that a get wants to see.
fn read_at(call: &Call<'_>) -> Result<ReadAt, Status> {
    let Some(text) = call.parameter("resourceVersion") else { return Ok(ReadAt::MostRecent) };
    match parse_resource_version(text) {
        Ok(ResourceVersion::Unset) => Ok(ReadAt::MostRecent),
        Ok(ResourceVersion::Any) => Ok(ReadAt::Any),
        Ok(ResourceVersion::At(revision)) => Ok(ReadAt::NotOlderThan(revision)),
        Err(error) => Err(Status::untyped(error.to_string())),
    }
}

pub(super) async fn list(call: &Call<'_>) -> Result<Response, Status> {
    let options = ListOptions::from_query(call.query())?;
    if options.watch {
        return watch::watch(call, false).await;
    }
    if let Backing::Virtual(of) = &call.resource().backing {
        let known = options.field_selector.check(KnownFields::Metadata);
        known.map_err(|error| Status::bad_request(error.0))?;
        let mut objects = of.list(call.resource()).await?;
        objects.retain(|object| is_selected(object, &options));
        return call.answer_list(Listing::of_objects(objects), None);
    }
    let namespace = Some(call.namespace()).filter(|namespace| !namespace.is_empty());
    let placed = call.registry.place(call.storage()?, ListRequest { namespace, options: &options }).await?;
    let settled_at = placed.settled_at();
    if let Some(response) = call.answer_shared_list(settled_at) {
        return Ok(response);
    }
    let listing = placed.read().await?;
    call.answer_list(call.resource().translate_list(listing).await?, settled_at)
}

/// Objects that are not stored are selected by what all objects have.
fn is_selected(object: &Object, options: &ListOptions) -> bool {
    let metadata = metadata(object);
    let labels = metadata.get("labels").and_then(Value::as_object);
    let field = |field: &str| match field {
        "metadata.name" => Cow::Borrowed(metadata.name()),
        "metadata.namespace" => Cow::Borrowed(metadata.namespace()),
        _ => Cow::Borrowed(""),
    };
    options.label_selector.matches(&labels) && options.field_selector.matches(field)
}
