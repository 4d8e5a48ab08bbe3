//! Connections to what cannot be reached.

use concord_meta::{Status, options::ReadAt};
use concord_registry::SubresourceKind;
use concord_server::Response;

use super::{behaviour, unsupported};
use crate::call::Call;

/// Upstream looks for the object first, and then for the machine it runs on, of which there is none here.
pub(super) async fn connect(call: &Call<'_>) -> Result<Response, Status> {
    let Some(SubresourceKind::Unreachable(why)) = behaviour(call) else { return Err(unsupported(call)) };
    if call.parameter("dryRun").is_some() {
        return Err(Status::bad_request("dryRun is not supported"));
    }
    call.registry.get(call.storage()?, call.object_name(), ReadAt::MostRecent).await?;
    Err(Status::bad_request(*why))
}
