use std::sync::Arc;

use async_trait::async_trait;
use http::{header::AUTHORIZATION, request::Parts};

use super::{Authenticated, Authenticator, TokenAuthenticator, authenticate_token};
use crate::RequestContext as _;

const EXTRA_SPACE: &str =
    "the provided Authorization header contains extra space before the bearer token, and is ignored";

/// `Authorization: Bearer TOKEN`.
pub(super) struct Bearer(pub(super) Arc<[Arc<dyn TokenAuthenticator>]>);

#[async_trait]
impl Authenticator for Bearer {
    async fn authenticate(&self, request: &mut Parts) -> Authenticated {
        let header = request.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let mut words = header.unwrap_or_default().trim().splitn(3, ' ');
        let (scheme, token) = (words.next().unwrap_or_default(), words.next());
        let Some(token) = token.filter(|_| scheme.eq_ignore_ascii_case("bearer")) else { return Ok(None) };
        if token.is_empty() {
            if words.next().is_some() {
                request.warnings().add(EXTRA_SPACE);
            }
            return Ok(None);
        }
        authenticate_token(&self.0, token).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TokenFile, http::testing::request};

    async fn user(header: &str) -> Result<Option<String>, String> {
        let tokens = TokenFile::parse("secret,alice,1\n", "tokens.csv").expect("valid");
        let mut parts = request("GET", "/").into_parts().0;
        if !header.is_empty() {
            parts.headers.insert(AUTHORIZATION, header.parse().expect("a header value"));
        }
        let authenticated = Bearer(Arc::new([Arc::new(tokens) as _])).authenticate(&mut parts).await;
        authenticated.map(|user| user.map(|user| user.name.clone())).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn tokens_are_found_in_the_header() {
        let alice = Ok(Some("alice".to_owned()));
        for (header, expected) in [
            ("", Ok(None)),
            ("Bearer secret", alice.clone()),
            ("bEARER secret", alice.clone()),
            ("  Bearer secret  ", alice.clone()),
            ("Bearer secret more", alice),
            ("Bearer wrong", Err("invalid bearer token".to_owned())),
            ("Bearer", Ok(None)),
            ("Bearer  secret", Ok(None)),
            ("Basic secret", Ok(None)),
            ("secret", Ok(None)),
        ] {
            assert_eq!(user(header).await, expected, "{header:?}");
        }
    }
}
