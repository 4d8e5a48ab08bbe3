//! Connections to where a webhook is.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, lookup_host};
use tower_service::Service;

use crate::{Address, ResolveError, Resolver, ServiceReference};

/// Connects to the one place it was made for, whatever the URI says: that of a Service names no host that could be
/// looked up.
#[derive(Clone)]
pub(crate) enum Dialer {
    /// A host of a URL.
    Host(Address),
    /// A Service, looked up for each connection.
    Service(ServiceReference, Arc<dyn Resolver>),
}

/// Why there is no connection. The texts are Go's.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error(transparent)]
    Resolve(ResolveError),
    #[error("dial tcp: lookup {0}: no such host")]
    Lookup(String),
    #[error("dial tcp {address}: connect: {}", plain(error))]
    Connect { address: String, error: io::Error },
}

/// The text of an error of the system, as Go has it: without the number, in lower case.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

impl Dialer {
    async fn dial(self) -> Result<TcpStream, DialError> {
        let address = match self {
            Self::Host(address) => address,
            Self::Service(service, resolver) => resolver.resolve(&service).map_err(DialError::Resolve)?,
        };
        let unknown = |_| DialError::Lookup(address.host.clone());
        let found = lookup_host((address.host.as_str(), address.port)).await.map_err(unknown)?;
        let mut failure = DialError::Lookup(address.host.clone());
        for socket in found {
            match TcpStream::connect(socket).await {
                Ok(stream) => {
                    // Requests and answers are small and whole; without this they would wait for more.
                    stream.set_nodelay(true).map_err(|error| connect_error(&socket, error))?;
                    return Ok(stream);
                }
                Err(error) => failure = connect_error(&socket, error),
            }
        }
        Err(failure)
    }
}

/// A connection to where a Service is reached, for those who speak another protocol on it than webhooks do.
///
/// # Errors
///
/// The texts are Go's, see [`reason`](crate::reason).
pub async fn dial_service(service: ServiceReference, resolver: Arc<dyn Resolver>) -> io::Result<TcpStream> {
    Dialer::Service(service, resolver).dial().await.map_err(io::Error::other)
}

fn connect_error(socket: &std::net::SocketAddr, error: io::Error) -> DialError {
    DialError::Connect { address: socket.to_string(), error }
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<TcpStream>;
    type Error = DialError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let dialing = self.clone().dial();
        Box::pin(async { dialing.await.map(TokioIo::new) })
    }
}
