use std::sync::Arc;

use async_trait::async_trait;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use http::{
    HeaderMap, HeaderValue,
    header::{CONNECTION, SEC_WEBSOCKET_PROTOCOL, UPGRADE},
    request::Parts,
};

use super::{Authenticated, Authenticator, TokenAuthenticator, Unauthenticated, authenticate_token};

/// What a browser that cannot set headers offers its token as.
const TOKEN_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// A token among the protocols that a WebSocket handshake offers. It is taken out of them: it is not for
/// the handler to answer with.
pub(super) struct WebSocketBearer(pub(super) Arc<[Arc<dyn TokenAuthenticator>]>);

/// Whether the client wants to speak WebSocket.
fn is_web_socket(headers: &HeaderMap) -> bool {
    let text =
        |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    let upgrade = text(CONNECTION).split(',').any(|word| word.trim().eq_ignore_ascii_case("upgrade"));
    upgrade && text(UPGRADE).eq_ignore_ascii_case("websocket")
}

/// The token, if there is one, and the other protocols.
fn split(headers: &HeaderMap) -> Result<(Option<String>, Vec<&str>), Unauthenticated> {
    let wrong = |text: &str| Unauthenticated(text.to_owned());
    let (mut token, mut others) = (None, Vec::new());
    let offered = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    for protocol in offered.flat_map(|value| value.split(',')).map(str::trim) {
        let Some(encoded) = protocol.strip_prefix(TOKEN_PROTOCOL) else {
            others.push(protocol);
            continue;
        };
        if token.is_some() {
            return Err(wrong("multiple base64.bearer.authorization tokens specified"));
        }
        let decoded = BASE64_URL_SAFE_NO_PAD.decode(encoded);
        let decoded = decoded.map_err(|_| wrong("invalid base64.bearer.authorization token encoding"))?;
        let decoded = String::from_utf8(decoded);
        token = Some(decoded.map_err(|_| wrong("invalid base64.bearer.authorization token"))?);
    }
    Ok((token.filter(|token| !token.is_empty()), others))
}

#[async_trait]
impl Authenticator for WebSocketBearer {
    async fn authenticate(&self, request: &mut Parts) -> Authenticated {
        if !is_web_socket(&request.headers) {
            return Ok(None);
        }
        let (Some(token), others) = split(&request.headers)? else { return Ok(None) };
        if others.is_empty() {
            return Err(Unauthenticated("missing additional subprotocol".to_owned()));
        }
        // Parts of a valid header value, joined by a comma, are one again.
        let others = HeaderValue::try_from(others.join(",")).ok();
        let user = authenticate_token(&self.0, &token).await?;
        if let Some(others) = others {
            request.headers.insert(SEC_WEBSOCKET_PROTOCOL, others);
        }
        Ok(user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TokenFile, http::testing::request};

    async fn user(
        protocols: &[&'static str],
        upgrade: bool,
    ) -> (Result<Option<String>, String>, Vec<String>) {
        let tokens = TokenFile::parse("secret,alice,1\n", "tokens.csv").expect("valid");
        let mut parts = request("GET", "/").into_parts().0;
        if upgrade {
            parts.headers.insert(CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
            parts.headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        }
        for protocol in protocols {
            parts.headers.append(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
        }
        let user = WebSocketBearer(Arc::new([Arc::new(tokens) as _])).authenticate(&mut parts).await;
        let left = parts.headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
        let left = left.map(|value| value.to_str().expect("text").to_owned()).collect();
        (user.map(|user| user.map(|user| user.name.clone())).map_err(|error| error.to_string()), left)
    }

    #[tokio::test]
    async fn tokens_are_found_among_the_protocols_and_taken_out() {
        // c2VjcmV0 is "secret", d3Jvbmc is "wrong", gA is no text.
        const TOKEN: &str = "base64url.bearer.authorization.k8s.io.c2VjcmV0";
        let wrong = "base64url.bearer.authorization.k8s.io.d3Jvbmc, a";
        let no_base64 = "base64url.bearer.authorization.k8s.io.=, a";
        let no_text = "base64url.bearer.authorization.k8s.io.gA, a";
        let error = |text: &str| Err(text.to_owned());
        for (protocols, expected) in [
            (&[][..], Ok(None)),
            (&["a,b"], Ok(None)),
            (&["a", TOKEN, "b"], Ok(Some("alice".to_owned()))),
            (&[TOKEN], error("missing additional subprotocol")),
            (&["a", TOKEN, TOKEN], error("multiple base64.bearer.authorization tokens specified")),
            (&[wrong], error("invalid bearer token")),
            (&[no_base64], error("invalid base64.bearer.authorization token encoding")),
            (&[no_text], error("invalid base64.bearer.authorization token")),
        ] {
            let (user, left) = user(protocols, true).await;
            assert_eq!(user, expected, "{protocols:?}");
            if let Ok(Some(_)) = user {
                assert_eq!(left, ["a,b"]);
            }
        }
        assert_eq!(user(&["a", TOKEN], false).await.0, Ok(None), "only a WebSocket may say it this way");
    }
}
