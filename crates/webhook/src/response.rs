//! What an answer means, as client-go takes it.

use std::pin::pin;

use bytes::{Bytes, BytesMut};
use concord_codec::{Options, decode};
use concord_meta::{CauseType, Outcome, Reason, Status, StatusCause, StatusDetails, go::quote};
use http::{HeaderMap, Response, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::{CallError, error::reason};

/// How much of a text that is no Status is told.
const MAX_TEXT: usize = 2048;

/// Reads an answer to its end, and takes everything but a success for an error.
pub(crate) async fn read(response: Response<Incoming>, url: &str, limit: usize) -> Result<Bytes, CallError> {
    let (parts, body) = response.into_parts();
    let body = collect(body, url, limit).await?;
    let code = parts.status.as_u16();
    if !(200..=206).contains(&code) {
        return Err(CallError::Status(Box::new(failure(code, &parts.headers, &body))));
    }
    if body.is_empty() {
        return Err(CallError::Empty { code, content_type: content_type(&parts.headers).to_owned() });
    }
    Ok(body)
}

async fn collect(body: Incoming, url: &str, limit: usize) -> Result<Bytes, CallError> {
    let mut body = pin!(body);
    let mut collected = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| CallError::Body(unexpected(reason(&error))))?;
        let Ok(data) = frame.into_data() else { continue };
        if collected.len() + data.len() > limit {
            return Err(CallError::TooLarge { url: url.to_owned(), limit });
        }
        collected.extend_from_slice(&data);
    }
    Ok(collected.freeze())
}

/// Within a body, an end is not expected.
fn unexpected(reason: String) -> String {
    if reason == "EOF" { "unexpected EOF".to_owned() } else { reason }
}

fn content_type(headers: &HeaderMap) -> &str {
    headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The Status in the body, or else what the code says.
fn failure(code: u16, headers: &HeaderMap, body: &[u8]) -> Status {
    let told = decode(body, &Options::default()).ok().and_then(|decoded| {
        let is_status = decoded.object.get("kind").is_none_or(|kind| kind == "Status");
        is_status.then_some(decoded.object)
    });
    let told = told.and_then(|object| serde_json::from_value::<Status>(object.into()).ok());
    match told {
        Some(status) if status.outcome == Outcome::Failure => status,
        _ => generic(code, headers, body),
    }
}

fn generic(code: u16, headers: &HeaderMap, body: &[u8]) -> Status {
    let kind = content_type(headers);
    let said = match kind.is_empty() || kind.starts_with("text/") {
        true => String::from_utf8_lossy(&body[..body.len().min(MAX_TEXT)]).trim().to_owned(),
        false => "unknown".to_owned(),
    };
    let (reason, message) = by_code(code, &said);
    let retry_after = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let cause = StatusCause {
        reason: CauseType::UNEXPECTED_SERVER_RESPONSE,
        message: said,
        ..StatusCause::default()
    };
    let mut status = Status::failure(code, reason, message);
    status.details = Some(Box::new(StatusDetails {
        causes: vec![cause],
        retry_after_seconds: retry_after.unwrap_or_default(),
        ..StatusDetails::default()
    }));
    status
}

/// What client-go says about an answer that says nothing itself.
fn by_code(code: u16, said: &str) -> (Reason, String) {
    let (reason, message) = match code {
        400 => (Reason::BAD_REQUEST, "the server rejected our request for an unknown reason"),
        401 => (Reason::UNAUTHORIZED, "the server has asked for the client to provide credentials"),
        403 => (Reason::FORBIDDEN, said),
        404 => (Reason::NOT_FOUND, "the server could not find the requested resource"),
        405 => {
            (Reason::METHOD_NOT_ALLOWED, "the server does not allow this method on the requested resource")
        }
        406 if said.is_empty() || said == "unknown" => (
            Reason::NOT_ACCEPTABLE,
            "the server was unable to respond with a content type that the client supports",
        ),
        406 => (Reason::NOT_ACCEPTABLE, said),
        409 => (Reason::ALREADY_EXISTS, "the server reported a conflict"),
        415 => (Reason::UNSUPPORTED_MEDIA_TYPE, said),
        422 => (Reason::INVALID, "the server rejected our request due to an error in our request"),
        429 => (
            Reason::TOO_MANY_REQUESTS,
            "the server has received too many requests and has asked us to try again later",
        ),
        503 => (Reason::SERVICE_UNAVAILABLE, "the server is currently unable to handle the request"),
        504 => (
            Reason::TIMEOUT,
            "the server was unable to return a response in the time allotted, but may still be processing the request",
        ),
        500.. => {
            let message =
                format!("an error on the server ({}) has prevented the request from succeeding", quote(said));
            return (Reason::INTERNAL_ERROR, message);
        }
        _ => {
            let message = format!(
                "the server responded with the status code {code} but did not return more information"
            );
            return (Reason::UNKNOWN, message);
        }
    };
    (reason, message.to_owned())
}
