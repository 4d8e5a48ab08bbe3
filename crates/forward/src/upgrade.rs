//! Connections that become something else: websockets, and the streams of `kubectl exec`.

use std::{sync::Arc, time::Duration};

use concord_server::{Body, Request, RequestContext as _, Response, ShutdownToken};
use http::{HeaderValue, StatusCode, header::CONNECTION, request::Parts};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::{io, time::timeout};

use crate::{
    Backend, Failure, ForwardError,
    backend::{Head, carried},
    body::AtEnd,
    headers,
};

/// How long the two connections may take to become the other protocol once both sides agreed.
const UPGRADE: Duration = Duration::from_secs(10);

/// Sends a request for an upgrade on, over a connection of its own, and carries what follows in both directions.
pub(crate) async fn carry(
    backend: &Backend,
    original: Parts,
    head: Head,
    body: Body,
) -> Result<Response, Failure> {
    let refused = |error| Failure { error, request: None };
    let Some(client) = original.extensions.get::<OnUpgrade>().cloned() else {
        return Err(refused(ForwardError::NotUpgradable));
    };
    let mut sender = match backend.connector().connect_http1().await {
        Ok(sender) => sender,
        Err(error) => {
            return Err(Failure { error, request: Some(Box::new(Request::from_parts(original, body))) });
        }
    };
    let mut answer = sender
        .send_request(backend.relative(head, body))
        .await
        .map_err(|error| refused(ForwardError::NoAnswer(Arc::new(error))))?;
    match answer.status() {
        StatusCode::SWITCHING_PROTOCOLS => {
            let server = hyper::upgrade::on(&mut answer);
            original.connection().run_upgraded(pump(client, server, original.shutdown()));
            // What it says about the connection is what the client must hear.
            Ok(carried(answer, AtEnd::new(|| {})))
        }
        status if status.as_u16() < 400 => Err(refused(ForwardError::UpgradeResponse(status.as_u16()))),
        _ => {
            let mut answer = carried(answer, AtEnd::new(move || drop(sender)));
            headers::inward(answer.headers_mut());
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            Ok(answer)
        }
    }
}

/// Carries bytes until one of both sides, or this server, ends.
async fn pump(client: OnUpgrade, server: OnUpgrade, shutdown: ShutdownToken) {
    let both = async { tokio::try_join!(client, server) };
    let (client, server) = match timeout(UPGRADE, both).await {
        Ok(Ok(both)) => both,
        Ok(Err(error)) => return tracing::debug!(%error, "A connection was not upgraded."),
        Err(_) => return tracing::debug!("A connection was not upgraded in time."),
    };
    let (mut from_client, mut to_client) = halves(client);
    let (mut from_server, mut to_server) = halves(server);
    let ended = tokio::select! {
        ended = io::copy(&mut from_client, &mut to_server) => ended,
        ended = io::copy(&mut from_server, &mut to_client) => ended,
        () = shutdown.begun() => Ok(0),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "A connection that was carried ended early.");
    }
}

fn halves(connection: Upgraded) -> (impl io::AsyncRead + Unpin, impl io::AsyncWrite + Unpin) {
    io::split(TokioIo::new(connection))
}
