//! update.

use concord_meta::{Status, options::CreateOptions};
use concord_registry::{Context, Part, SubresourceKind, UpdateRequest};
use concord_server::{Body, Response};
use http::StatusCode;

use super::{behaviour, in_time, keep, naming::place_named, sent, unsupported};
use crate::call::Call;

pub(super) async fn update(
    call: &Call<'_>,
    body: &mut Body,
    warnings: &mut Vec<String>,
) -> Result<Response, Status> {
    let bytes = call.read(body).await?;
    let options = CreateOptions::for_update(call.query())?;
    let context = call.context(&options);
    let outcome = Box::pin(in_time(call.deadline(), updated(call, &context, &bytes, &options))).await;
    keep(call, warnings, &context, outcome)
}

async fn updated(
    call: &Call<'_>,
    context: &Context,
    bytes: &[u8],
    options: &CreateOptions,
) -> Result<Response, Status> {
    let (resource, name) = (call.resource(), call.object_name());
    let sent = sent(call, bytes, options)?;
    let part = match behaviour(call) {
        None => Part::Main,
        Some(SubresourceKind::Part) => Part::Sub(&call.info.subresource),
        Some(SubresourceKind::Scale(scaling)) => {
            let mut scale =
                resource.decode_as(&scaling.schema.clone().into(), &call.kind(), sent, context)?;
            call.audit_sent(&scale);
            place_named(&mut scale, name)?;
            let scale = call.registry.update_scale(context, resource, scaling, name, scale).await?;
            return call.answer_object(StatusCode::OK, scale);
        }
        Some(SubresourceKind::Virtual(_) | SubresourceKind::Unreachable(_)) => return Err(unsupported(call)),
    };
    let mut object = resource.decode(sent, context)?;
    call.audit_sent(&object);
    place_named(&mut object, name)?;
    let written = call.registry.update(context, resource, UpdateRequest { name, part, object }).await?;
    let code = if written.created { StatusCode::CREATED } else { StatusCode::OK };
    call.answer_item(code, written.item).await
}
