//! create, of objects and of what is never stored.

use std::sync::Arc;

use concord_meta::{Status, options::CreateOptions};
use concord_registry::{
    Backing, Context, Invocation, Object, ObjectName, Operation, SubresourceKind, Virtual, metadata,
};
use concord_server::{Body, Response};
use http::StatusCode;

use super::{behaviour, in_time, keep, naming::place, sent, unsupported};
use crate::call::Call;

pub(super) async fn create(
    call: &Call<'_>,
    body: &mut Body,
    warnings: &mut Vec<String>,
) -> Result<Response, Status> {
    // Before the body is read: nobody wants to send one in vain.
    sent(call, &[], &CreateOptions::default())?;
    let bytes = call.read(body).await?;
    let options = CreateOptions::for_create(call.query())?;
    let context = call.context(&options);
    let outcome = Box::pin(in_time(call.deadline(), created(call, &context, &bytes, &options))).await;
    keep(call, warnings, &context, outcome)
}

async fn created(
    call: &Call<'_>,
    context: &Context,
    bytes: &[u8],
    options: &CreateOptions,
) -> Result<Response, Status> {
    let resource = call.resource();
    let sent = sent(call, bytes, options)?;
    match (behaviour(call), &resource.backing) {
        (None, Backing::Stored(_)) => {
            let object = resource.decode(sent, context)?;
            call.audit_sent(&object);
            let item = call.registry.create(context, resource, call.namespace(), object).await?;
            call.answer_item(StatusCode::CREATED, item).await
        }
        (None, Backing::Virtual(of)) => {
            let object = resource.decode(sent, context)?;
            make(call, context, of, object).await
        }
        (Some(SubresourceKind::Virtual(of)), _) => {
            let object = resource.decode_as(&of.schema().into(), &call.kind(), sent, context)?;
            make(call, context, of, object).await
        }
        _ => Err(unsupported(call)),
    }
}

async fn make(
    call: &Call<'_>,
    context: &Context,
    of: &Arc<dyn Virtual>,
    mut object: Object,
) -> Result<Response, Status> {
    call.audit_sent(&object);
    place(&mut object, call.namespace())?;
    let used = (&**call.resource(), call.info.subresource.as_str());
    // What has no name in its path is known by its own.
    let own = metadata(&object).name().to_owned();
    let name = Some(call.object_name()).filter(|name| !name.name.is_empty());
    let name = name.unwrap_or(ObjectName { namespace: call.namespace(), name: &own });
    call.registry.admit_use(context, used, name, Operation::Create, &mut object).await?;
    let invocation =
        Invocation { registry: call.registry, context, resource: call.resource(), name: call.object_name() };
    let made = of.create(invocation, object).await?;
    call.answer_object(StatusCode::CREATED, made)
}
