//! Sends requests on to another server, and its answers back: what a proxy in front of aggregated servers and a proxy
//! between peers have in common.
//!
//! Bodies are streamed both ways and never gathered: who does not read holds up its own request only. A request that was
//! given up is given up there as well. Connections are shared (HTTP/2 where the other side speaks it); those that are
//! upgraded to another protocol are carried byte by byte. Who asks is told in the headers that a front proxy uses, on every
//! path, and nothing a client sends can take their place.
//!
//! The crate never decides where a request goes, and never sends one twice that may have had an effect.
//!
//! Start with [`Backend`], then `headers.rs` for what is passed on and what is not.

mod backend;
mod body;
mod connect;
mod error;
mod headers;
mod http2;
mod pool;
mod tunnel;
mod upgrade;

pub use backend::Backend;
pub use connect::{Connector, Dial, Io, TcpDial};
pub use error::{Failure, ForwardError};
pub use headers::{is_upgrade, said};
pub use tunnel::{HostDial, TlsDial, TunnelDial, UnixDial};
