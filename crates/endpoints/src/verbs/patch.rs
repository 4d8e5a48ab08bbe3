//! patch, of all kinds.

use concord_codec::{ListOrder, PatchType, negotiate_patch};
use concord_meta::{Status, options::PatchOptions};
use concord_registry::{Context, Part, PatchRequest, SubresourceKind};
use concord_server::{Body, RequestContext as _, Response};
use http::{StatusCode, header};

use super::{behaviour, in_time, keep, unsupported};
use crate::{
    call::{Call, validation},
    form::{check_patch_type, refused},
};

pub(super) async fn patch(
    call: &Call<'_>,
    body: &mut Body,
    warnings: &mut Vec<String>,
) -> Result<Response, Status> {
    let patch_type = patch_type(call)?;
    let bytes = call.read(body).await?;
    if let Some(audit) = call.parts.audit() {
        audit.request_patch(&bytes);
    }
    let options = PatchOptions::from_query(call.query(), patch_type == PatchType::Apply)?;
    let context = call.context(&options.common);
    let patch = PatchRequest {
        name: call.object_name(),
        part: call.route.subresource.map_or(Part::Main, |subresource| Part::Sub(&subresource.name)),
        patch_type,
        body: &bytes,
        force: options.force,
        validation: validation(options.common.field_validation),
    };
    let outcome = Box::pin(in_time(call.deadline(), patched(call, &context, patch))).await;
    keep(call, warnings, &context, outcome)
}

fn patch_type(call: &Call<'_>) -> Result<PatchType, Status> {
    let content_type = call.header(header::CONTENT_TYPE);
    let known = call.resource().patch_types();
    if call.resource().order == ListOrder::Typed {
        let names: Vec<&str> = known.iter().map(|known| known.as_str()).collect();
        check_patch_type(content_type, &names)?;
    }
    negotiate_patch(content_type, known).map_err(refused)
}

async fn patched(call: &Call<'_>, context: &Context, patch: PatchRequest<'_>) -> Result<Response, Status> {
    match behaviour(call) {
        None | Some(SubresourceKind::Part) => {
            let written = call.registry.patch(context, call.resource(), patch).await?;
            let code = if written.created { StatusCode::CREATED } else { StatusCode::OK };
            call.answer_item(code, written.item).await
        }
        Some(SubresourceKind::Scale(scaling)) => {
            let scale = call.registry.patch_scale(context, call.resource(), scaling, patch).await?;
            call.answer_object(StatusCode::OK, scale)
        }
        Some(SubresourceKind::Virtual(_) | SubresourceKind::Unreachable(_)) => Err(unsupported(call)),
    }
}
