//! How other servers are reached.

use std::net::SocketAddr;

use async_trait::async_trait;
use concord_server::{Request, Response, UserInfo};

/// The header by which a server says that it sends a request on. It is believed only of servers that were authenticated as
/// proxies, and set on every request that is sent to a peer.
pub const PROXIED: http::HeaderName = http::HeaderName::from_static("x-kubernetes-peer-proxied");

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// Nothing of it was sent: it can be sent to another server.
    #[error("{reason}")]
    NotSent {
        /// The request, as it was.
        request: Box<Request>,
        /// What went wrong, for the log.
        reason: String,
    },
    /// Something of it was sent: whether it was carried out nobody knows.
    #[error("{0}")]
    Broken(String),
    /// Who asks cannot be told to another server, whichever it is.
    #[error("{0}")]
    Unnameable(String),
}

/// Sends requests to other servers, as a proxy that says whose they are.
#[async_trait]
pub trait Transport: Send + Sync + 'static {
    /// Sends a request of `user` to the server at `to` and answers as soon as the head of the answer is there.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    ///
    /// # Cancel safety
    ///
    /// The request ends with the future; what was sent of it was sent.
    async fn send(&self, to: SocketAddr, user: &UserInfo, request: Request) -> Result<Response, SendError>;

    /// Lets go of the connections to a server that does not answer: what is sent from now on goes over new ones.
    fn forget(&self, to: SocketAddr);

    /// Waits until a connection to a server ends, and says where that server is, or was: it may have crashed.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    async fn closed(&self) -> SocketAddr {
        std::future::pending().await
    }
}
