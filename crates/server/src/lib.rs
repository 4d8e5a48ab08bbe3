//! A generic API server: TLS, connections, the handler chain, health, and an orderly end.
//!
//! This is the library that a server is built with. It serves what its parts give it, and knows no
//! concrete resource and no storage engine; what a part has to say about its state reaches the server as a
//! [`HealthCheck`]. It never reads flags, files or the environment, never installs a signal handler and
//! never ends the process: that is the program's business.
//!
//! A server is a sequence of types, each made by consuming the one before, so that nothing half-configured
//! can run: [`Config`] → [`CompletedConfig`] → [`Server`].
//!
//! Start with [`Config`], then `chain.rs` for what happens to a request, then [`Server::run`].

mod answer;
mod body;
mod chain;
mod config;
mod connection;
mod context;
mod filters;
mod health;
mod http;
mod request_info;
mod routes;
mod server;
#[cfg(feature = "test-client")]
pub mod test_client;
mod user;
mod version;

pub use answer::{Accept, respond_status};
pub use body::{MAX_BODY_BYTES, read_body};
pub use config::{CompletedConfig, Config, ConnectionLimits, Error, Shutdown};
pub use context::{Deadline, RequestContext, ShutdownToken, WarningsHandle};
pub use health::{Coalesced, HealthCheck, HealthChecks, Unhealthy, check_fn};
pub use http::{Body, BoxError, Handler, Request, Response, full, text, with_body};
pub use request_info::{RequestInfo, RequestInfoError};
pub use server::{Drained, Server};
pub use user::UserInfo;
pub use version::Version;
