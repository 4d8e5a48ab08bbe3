//! What becomes of a peer's answer.

use bytes::Bytes;
use concord_meta::Status;
use concord_server::{Accept, Response, full, respond_status};
use http::{StatusCode, header};
use hyper::body::Body as _;

use crate::{body, proxy::retriable};

/// How much of an answer that says "not found" is read to find out what was not found.
const MOST: u64 = 16 * 1024;

const FAILED: &str = "Error while proxying request to destination apiserver";

/// The answer if no peer could be reached. It says nothing about where peers are.
pub(crate) fn failed() -> Status {
    retriable(FAILED)
}

/// The answer if a peer was lost that may have done what it was asked for. Clients repeat by themselves whatever they are told
/// to try again, and what has a generated name would be made twice.
pub(crate) fn broken() -> Status {
    Status::service_unavailable(FAILED)
}

/// The answer to a user who cannot be named to another server (D8a), and would be somebody else there.
pub(crate) fn unnameable() -> Status {
    Status::internal_error("the user's name, groups or extras cannot be told to another apiserver")
}

/// Passes a peer's answer on as it is, but for three that would tell the client something wrong: that nobody knows a user
/// whom this server knows, that a resource does not exist which that peer does not serve any more, and where else to go.
pub(crate) async fn relayed(id: &str, response: Response, accept: &Accept) -> Response {
    match response.status() {
        StatusCode::UNAUTHORIZED => {
            tracing::error!(
                id,
                "A peer does not believe this server: --requestheader-client-ca-file and --requestheader-allowed-names of the peer have to fit --proxy-client-cert-file here."
            );
            respond_status(&failed(), accept)
        }
        StatusCode::NOT_FOUND => not_found(id, response, accept).await,
        status if status.is_redirection() && response.headers().contains_key(header::LOCATION) => {
            tracing::warn!(id, %status, "A peer answered with a redirect.");
            let text = "the backend attempted to redirect this request, which is not permitted";
            respond_status(&Status::failure(502, concord_meta::Reason::INTERNAL_ERROR, text), accept)
        }
        _ => response,
    }
}

/// "Not found" about an object is the truth; about the resource itself it only means that this peer is the wrong one.
async fn not_found(id: &str, response: Response, accept: &Accept) -> Response {
    let is_short = response.body().size_hint().upper().is_some_and(|length| length <= MOST);
    if !is_short {
        return response;
    }
    let (parts, body) = response.into_parts();
    let limit = usize::try_from(MOST).unwrap_or(usize::MAX);
    match body::read(body, limit).await {
        Ok(body) if is_about_the_path(&body) => {
            tracing::info!(id, "A peer does not serve any more what it said it would.");
            respond_status(&failed(), accept)
        }
        Ok(body) => Response::from_parts(parts, full(body)),
        Err(_) => respond_status(&failed(), accept),
    }
}

/// The two answers of routers: that of paths nobody knows, and that of groups without the resource.
fn is_about_the_path(body: &Bytes) -> bool {
    let unknown = Status::unknown_resource().message;
    let text = String::from_utf8_lossy(body);
    text.trim_end() == "404 page not found" || text.contains(&unknown)
}
