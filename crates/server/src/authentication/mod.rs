//! Who makes a request.
//!
//! An [`Authenticator`] looks at a request and says who makes it, that it cannot say, or that the
//! credentials are wrong. [`Authentication`] puts them in upstream's order: proxies, client certificates, bearer
//! tokens (also those that browsers send with a WebSocket), and anonymous only for those who present nothing.

mod bearer;
mod csv;
mod request_header;
#[cfg(test)]
mod signer;
mod token_file;
mod union;
mod websocket;
mod x509;

use std::sync::Arc;

use async_trait::async_trait;
use http::request::Parts;

use crate::UserInfo;

pub use request_header::{FrontProxied, RequestHeader, RequestHeaderError, RequestHeaderNames};
pub(crate) use request_header::{IdentityHeaders, unescape_extra_key};
pub use token_file::{TokenFile, TokenFileError};
pub use union::Authentication;
pub(crate) use x509::PeerCertificates;
pub use x509::{ClientAuthorities, ClientAuthoritiesError};

/// Credentials were presented and are wrong. The text is for the log: the client learns only that it is not
/// authorized.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unauthenticated(pub String);

/// What an authenticator finds: somebody, nobody it can say anything about, or wrong credentials.
pub type Authenticated = Result<Option<Arc<UserInfo>>, Unauthenticated>;

/// Something that can tell who makes a request.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// Who makes the request. Credentials that were used may be taken out of the headers.
    ///
    /// # Errors
    ///
    /// [`Unauthenticated`] for credentials that are wrong.
    async fn authenticate(&self, request: &mut Parts) -> Authenticated;
}

/// Something that can tell whose a bearer token is.
#[async_trait]
pub trait TokenAuthenticator: Send + Sync + 'static {
    /// Whose token this is; `None` if it is not one of those this authenticator knows.
    ///
    /// # Errors
    ///
    /// [`Unauthenticated`] for a token that should be known here and is not valid.
    async fn authenticate_token(&self, token: &str) -> Authenticated;
}

const INVALID_TOKEN: &str = "invalid bearer token";

/// Asks each in turn; the first that knows the token decides.
async fn authenticate_token(authenticators: &[Arc<dyn TokenAuthenticator>], token: &str) -> Authenticated {
    let mut complaints = Vec::new();
    for authenticator in authenticators {
        match authenticator.authenticate_token(token).await {
            Ok(Some(user)) => return Ok(Some(user)),
            Ok(None) => {}
            Err(Unauthenticated(complaint)) => complaints.push(complaint),
        }
    }
    // A token that nobody knows is wrong, not absent.
    if complaints.is_empty() {
        complaints.push(INVALID_TOKEN.to_owned());
    }
    Err(Unauthenticated(complaints.join(", ")))
}
