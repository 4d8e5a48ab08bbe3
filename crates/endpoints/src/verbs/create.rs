//! create, of objects and of what is never stored.

use std::sync::Arc;

use concord_meta::{Status, options::CreateOptions};
use concord_registry::{
    Backing, Context, Invocation, Object, SubresourceKind, Virtual, decode_as, metadata, metadata_mut,
};
use concord_server::{Body, Response};
use http::StatusCode;

use super::{behaviour, in_time, keep, sent, unsupported};
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
    keep(warnings, &context, outcome)
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
            let item = call.registry.create(context, resource, call.namespace(), object).await?;
            call.answer_item(StatusCode::CREATED, &item)
        }
        (None, Backing::Virtual(of)) => {
            let object = resource.decode(sent, context)?;
            make(call, context, of, object).await
        }
        (Some(SubresourceKind::Virtual(of)), _) => {
            let object = decode_as(&of.schema(), &call.kind(), sent, context)?;
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
    place(&mut object, call.namespace())?;
    let invocation =
        Invocation { registry: call.registry, context, resource: call.resource(), name: call.object_name() };
    let made = of.create(invocation, object).await?;
    call.answer_object(StatusCode::CREATED, made)
}

/// Puts what is never stored into the namespace of the request all the same.
fn place(object: &mut Object, namespace: &str) -> Result<(), Status> {
    let said = metadata(object).namespace();
    match (said, namespace) {
        (said, namespace) if said == namespace => {}
        (_, "") => drop(metadata_mut(object).remove("namespace")),
        ("", namespace) => drop(metadata_mut(object).insert("namespace".to_owned(), namespace.into())),
        _ => {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_in_the_namespace_of_the_request() {
        let placed = |said: &str, namespace: &str| {
            let object = json!({"metadata": {"namespace": said}});
            let mut object = object.as_object().expect("an object").clone();
            place(&mut object, namespace).map(|()| metadata(&object).namespace().to_owned())
        };
        assert_eq!(placed("", "a"), Ok("a".to_owned()));
        assert_eq!(placed("a", "a"), Ok("a".to_owned()));
        assert_eq!(placed("a", ""), Ok(String::new()));
        assert_eq!(placed("b", "a").map_err(|status| status.code), Err(400));
    }
}
