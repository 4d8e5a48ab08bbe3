//! get and list.

use concord_meta::{
    ResourceVersion, Status,
    options::{ListOptions, ReadAt},
    parse_resource_version,
};
use concord_registry::{ListRequest, SubresourceKind};
use concord_server::Response;
use http::StatusCode;

use super::{behaviour, unsupported};
use crate::{call::Call, watch};

pub(super) async fn get(call: &Call<'_>) -> Result<Response, Status> {
    check_export(call)?;
    let read_at = read_at(call)?;
    match behaviour(call) {
        None | Some(SubresourceKind::Part) => {
            let item = call.registry.get(call.storage()?, call.object_name(), read_at).await?;
            call.answer_item(StatusCode::OK, item).await
        }
        Some(SubresourceKind::Scale(scaling)) => {
            let scale =
                call.registry.get_scale(call.resource(), scaling, call.object_name(), read_at).await?;
            call.answer_object(StatusCode::OK, scale)
        }
        Some(SubresourceKind::Virtual(_) | SubresourceKind::Unreachable(_)) => Err(unsupported(call)),
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
    let namespace = Some(call.namespace()).filter(|namespace| !namespace.is_empty());
    let listing = call.registry.list(call.storage()?, ListRequest { namespace, options: &options }).await?;
    call.answer_list(call.resource().translate_list(listing).await?)
}
