use std::{collections::HashMap, fmt, str::FromStr, sync::Arc};

use concord_meta::{Status, go::quote};

use crate::ServiceReference;

/// Finds where a Service is reached.
pub trait Resolver: Send + Sync + 'static {
    /// An address for a port of a Service; asked for each new connection.
    ///
    /// # Errors
    ///
    /// [`ResolveError`], which is what the caller of the webhook gets to read.
    fn resolve(&self, service: &ServiceReference) -> Result<Address, ResolveError>;
}

/// A host, by name or by number, and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    /// A name, or an IP address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// A Service cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// It is not there, or has nothing behind it.
    #[error("{}", .0.message)]
    Status(Box<Status>),
    /// It has no address of its own.
    #[error("cannot route to service with ClusterIP \"None\"")]
    Headless,
    /// It is of a type that has no address.
    #[error("unsupported service type {}", quote(.0))]
    UnsupportedType(String),
    /// What is stored is not known at the moment.
    #[error("{0}")]
    Unavailable(String),
}

impl From<Status> for ResolveError {
    fn from(status: Status) -> Self {
        Self::Status(Box::new(status))
    }
}

/// Addresses for some Services, and another resolver for all others.
///
/// For a server outside the cluster, which reaches no cluster address, and for tests.
pub struct Overrides {
    addresses: HashMap<(String, String), Address>,
    others: Arc<dyn Resolver>,
}

impl Overrides {
    /// Sends what is for `namespace/name` to an address, on whatever port of the Service it is.
    pub fn new(addresses: HashMap<(String, String), Address>, others: Arc<dyn Resolver>) -> Self {
        Self { addresses, others }
    }
}

impl Resolver for Overrides {
    fn resolve(&self, service: &ServiceReference) -> Result<Address, ResolveError> {
        match self.addresses.get(&(service.namespace.clone(), service.name.clone())) {
            Some(address) => Ok(address.clone()),
            None => self.others.resolve(service),
        }
    }
}

/// Not a host and a port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a host and a port")]
pub struct InvalidAddress(String);

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let invalid = || InvalidAddress(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(invalid)?;
        let host = match host.strip_prefix('[') {
            Some(host) => host.strip_suffix(']').ok_or_else(invalid)?,
            None if host.contains(':') => return Err(invalid()),
            None => host,
        };
        let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(invalid)?;
        if host.is_empty() {
            return Err(invalid());
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hosts_and_ports() {
        for text in ["127.0.0.1:80", "[::1]:443", "example.org:65535"] {
            assert_eq!(text.parse::<Address>().expect(text).to_string(), text);
        }
        for text in ["", "a", ":1", "a:", "a:0", "a:65536", "::1:1", "[::1:1", "[]:1"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
