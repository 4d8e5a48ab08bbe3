//! Watches over websockets: each event is one message.

use std::time::Duration;

use bytes::Bytes;
use concord_meta::Status;
use concord_server::{ConnectionHandle, Response, full};
use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message, Utf8Bytes,
        handshake::derive_accept_key,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

use super::stream::EventStream;
use crate::call::Call;

/// What a client may send at once. It has nothing to say but pings.
const RECEIVED: usize = 4 * 1024;
/// How long a client may take to read a message before it is given up.
const SEND: Duration = Duration::from_secs(60);
/// How long the way from the answer to the connection may take.
const UPGRADE: Duration = Duration::from_secs(30);
/// The protocol that carries a token and is none.
const BEARER: &str = "base64url.bearer.authorization.k8s.io.";

/// A request to go on as a websocket.
pub(super) struct Handshake {
    upgrade: OnUpgrade,
    accept: HeaderValue,
    protocol: Option<HeaderValue>,
}

impl Handshake {
    /// `None` if the request is an ordinary one.
    ///
    /// # Errors
    ///
    /// 400 for what only looks like the request of a websocket.
    pub(super) fn of(call: &Call<'_>) -> Result<Option<Self>, Status> {
        let headers = &call.parts.headers;
        if !is_websocket(headers) {
            return Ok(None);
        }
        let Some(upgrade) = call.parts.extensions.get::<OnUpgrade>().cloned() else {
            return Err(Status::bad_request("the connection cannot be upgraded to a websocket"));
        };
        let (accept, protocol) = agree(headers)?;
        Ok(Some(Self { upgrade, accept, protocol }))
    }

    /// Agrees, and serves the watch as soon as the connection is free.
    pub(super) fn serve(self, connection: &ConnectionHandle, stream: EventStream) -> Response {
        connection.run_upgraded(run(self.upgrade, stream));
        let mut response = Response::new(full(Bytes::new()));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, self.accept);
        if let Some(protocol) = self.protocol {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        response
    }
}

fn is_websocket(headers: &HeaderMap) -> bool {
    let says = |name: header::HeaderName, word: &str| {
        let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    says(header::CONNECTION, "upgrade") && says(header::UPGRADE, "websocket")
}

/// What the answer to a handshake says: the proof that it was understood, and the protocol.
fn agree(headers: &HeaderMap) -> Result<(HeaderValue, Option<HeaderValue>), Status> {
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if text(header::SEC_WEBSOCKET_VERSION) != Some("13") {
        return Err(Status::bad_request("missing or bad WebSocket Version"));
    }
    let Some(key) = text(header::SEC_WEBSOCKET_KEY) else {
        return Err(Status::bad_request("challenge/response: no Sec-WebSocket-Key"));
    };
    let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes())).map_err(Status::internal_error)?;
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).into_iter();
    let offered = offered.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let mut offered =
        offered.map(str::trim).filter(|protocol| !protocol.is_empty() && !protocol.starts_with(BEARER));
    let protocol = offered.next();
    // There is nothing to choose by.
    if offered.next().is_some() {
        return Err(Status::bad_request("bad subprotocol"));
    }
    let protocol = protocol.map(HeaderValue::from_str).transpose();
    Ok((accept, protocol.map_err(|error| Status::bad_request(error.to_string()))?))
}

async fn run(upgrade: OnUpgrade, stream: EventStream) {
    let connection = match timeout(UPGRADE, upgrade).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return tracing::debug!(%error, "A connection did not become a websocket."),
        Err(_) => return tracing::debug!("A connection took too long to become a websocket."),
    };
    if let Err(error) = serve(connection, stream).await {
        tracing::debug!(%error, "A watch over a websocket ended early.");
    }
}

async fn serve(connection: Upgraded, mut stream: EventStream) -> Result<(), Error> {
    // Nothing is held back to be sent together, and little may pile up.
    let config = WebSocketConfig::default()
        .max_message_size(Some(RECEIVED))
        .max_frame_size(Some(RECEIVED))
        .write_buffer_size(0)
        .max_write_buffer_size(8 * 1024 * 1024);
    let connection = TokioIo::new(connection);
    let mut socket = WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await;
    loop {
        tokio::select! {
            frame = stream.next() => match frame {
                None => break,
                Some(frame) => send(&mut socket, text(frame)).await?,
            },
            received = socket.next() => match received {
                // Whatever it is, it has been answered if it must be: what is left is to send the answer.
                Some(Ok(Message::Close(_))) | None => return Ok(()),
                Some(Ok(_)) => flush(&mut socket).await?,
                Some(Err(error)) => return Err(error),
            },
        }
    }
    let goodbye = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
    send(&mut socket, Message::Close(Some(goodbye))).await
}

/// Frames are JSON that this server has written, so they are text.
fn text(frame: Bytes) -> Message {
    match Utf8Bytes::try_from(frame.clone()) {
        Ok(text) => Message::Text(text),
        Err(_) => Message::Binary(frame),
    }
}

type Socket = WebSocketStream<TokioIo<Upgraded>>;

async fn send(socket: &mut Socket, message: Message) -> Result<(), Error> {
    timeout(SEND, socket.send(message)).await.unwrap_or(Err(Error::ConnectionClosed))
}

async fn flush(socket: &mut Socket) -> Result<(), Error> {
    timeout(SEND, socket.flush()).await.unwrap_or(Err(Error::ConnectionClosed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let parse = |(name, value): &(&'static str, &'static str)| {
            (header::HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        HeaderMap::from_iter(pairs.iter().map(parse))
    }

    #[test]
    fn websockets_are_told_from_other_requests() {
        for (pairs, expected) in [
            (&[("connection", "Upgrade"), ("upgrade", "websocket")][..], true),
            (&[("connection", "keep-alive, upgrade"), ("upgrade", "WebSocket")], true),
            (&[("connection", "Upgrade"), ("upgrade", "SPDY/3.1")], false),
            (&[("upgrade", "websocket")], false),
            (&[], false),
        ] {
            assert_eq!(is_websocket(&headers(pairs)), expected, "{pairs:?}");
        }
    }

    fn answer(pairs: &[(&'static str, &'static str)]) -> Result<Option<String>, u16> {
        let key = [("sec-websocket-version", "13"), ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")];
        let (accept, protocol) = agree(&headers(&[&key, pairs].concat())).map_err(|status| status.code)?;
        assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        Ok(protocol.map(|protocol| protocol.to_str().expect("text").to_owned()))
    }

    #[test]
    fn one_protocol_besides_the_token_is_agreed_to() {
        let bearer = "base64url.bearer.authorization.k8s.io.dG9rZW4, foo";
        assert_eq!(answer(&[]), Ok(None));
        assert_eq!(answer(&[("sec-websocket-protocol", "foo")]), Ok(Some("foo".to_owned())));
        assert_eq!(answer(&[("sec-websocket-protocol", bearer)]), Ok(Some("foo".to_owned())));
        assert_eq!(answer(&[("sec-websocket-protocol", "foo, bar")]), Err(400));
        assert_eq!(agree(&headers(&[])).map_err(|status| status.code), Err(400));
    }
}
