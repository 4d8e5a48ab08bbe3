//! What each verb does.

mod connect;
mod create;
mod delete;
mod naming;
mod patch;
mod read;
mod update;

use std::future::Future;

use concord_codec::negotiate_body;
use concord_meta::{Status, options::CreateOptions};
use concord_registry::{Body as Sent, Context, Note, SubresourceKind};
use concord_server::{Body, Deadline, RequestContext as _, Response};
use http::{HeaderValue, header};

use crate::{
    call::{Call, validation},
    form::refused,
    route::Action,
    watch,
};

/// Carries out what a request asks for. Warnings for the client end up in `warnings`, also when it fails.
///
/// # Errors
///
/// Every refusal, as a Status.
pub(crate) async fn carry_out(
    call: &Call<'_>,
    body: &mut Body,
    warnings: &mut Vec<String>,
) -> Result<Response, Status> {
    match call.route.action {
        Action::Get => read::get(call).await,
        Action::List => read::list(call).await,
        Action::WatchPath => watch::watch(call, true).await,
        Action::Create => create::create(call, body, warnings).await,
        Action::Update => update::update(call, body, warnings).await,
        Action::Patch => patch::patch(call, body, warnings).await,
        Action::Delete => delete::delete(call, body, warnings).await,
        Action::DeleteCollection => delete::delete_collection(call, body, warnings).await,
        Action::Connect => connect::connect(call, warnings).await,
    }
}

/// A write, which ends with an error when it takes too long. It may still happen then.
async fn in_time<T>(deadline: Deadline, write: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    tokio::select! {
        outcome = write => outcome,
        () = deadline.passed() => {
            let message = "request did not complete within requested timeout - context deadline exceeded";
            Err(Status::timeout(message, 0))
        }
    }
}

/// Takes along what a write has to say to the client and to who audits, whatever came of it.
fn keep<T>(
    call: &Call<'_>,
    warnings: &mut Vec<String>,
    context: &Context,
    outcome: Result<T, Status>,
) -> Result<T, Status> {
    warnings.extend(context.warning_headers());
    if let Some(audit) = call.parts.audit() {
        for (key, note) in context.annotations() {
            match note {
                Note::Open(value) => audit.annotate(&key, &value),
                Note::Contents(value) => audit.annotate_contents(&key, &value),
            }
        }
    }
    outcome
}

/// A body as the registry reads it.
///
/// # Errors
///
/// 415 when it is in a form that nobody reads.
fn sent<'b>(call: &Call<'_>, bytes: &'b [u8], options: &CreateOptions) -> Result<Sent<'b>, Status> {
    let offer = call.resource().offer();
    let media_type = negotiate_body(call.header(header::CONTENT_TYPE), offer).map_err(refused)?;
    Ok(Sent { bytes, media_type, validation: validation(options.field_validation) })
}

/// The subresource's behaviour; `None` for the resource itself.
fn behaviour<'a>(call: &Call<'a>) -> Option<&'a SubresourceKind> {
    call.route.subresource.map(|subresource| &subresource.behaviour)
}

/// 405: the resource does not have the verb although its path has the method.
fn unsupported(call: &Call<'_>) -> Status {
    Status::method_not_supported(&call.resource().group_resource(), &call.info.verb)
}

/// Puts warnings into the headers of an answer.
pub(crate) fn warn(response: &mut Response, warnings: &[String]) {
    let values = warnings.iter().filter_map(|warning| HeaderValue::from_bytes(warning.as_bytes()).ok());
    for value in values {
        response.headers_mut().append(header::WARNING, value);
    }
}
