//! A generic API server: TLS, connections, the handler chain, authentication, health, metrics, and an orderly
//! end.
//!
//! This is the library that a server is built with. It serves what its parts give it, above all the APIs, a
//! [`Handler`]; it knows no concrete resource and no storage engine. What a part has to say about its state
//! reaches the server as a [`HealthCheck`] or through [`Metrics`]; what a request is about, who makes it and
//! how long it may take reaches the handler through [`RequestContext`]. It never reads flags, files or the
//! environment, never installs a signal handler and never ends the process: that is the program's business.
//!
//! A server is a sequence of types, each made by consuming the one before, so that nothing half-configured
//! can run: [`Config`] → [`CompletedConfig`] → [`Server`].
//!
//! Start with [`Config`], then `chain.rs` for what happens to a request, then [`Server::run`].

mod answer;
mod audit;
mod authentication;
mod authorization;
mod body;
mod chain;
mod config;
mod connection;
mod context;
mod cork;
mod filters;
mod flow_control;
mod health;
mod http;
mod metrics;
mod random;
mod request_info;
mod routes;
mod runtime;
mod sending;
mod server;
#[cfg(feature = "test-client")]
pub mod test_client;
mod tls;
mod version;
mod waits;
mod witness;

pub use answer::{Accept, respond_status};
pub use audit::{AuditHandle, AuditSink, Auditing, note_for_audit};
pub use authentication::{
    Authenticated, Authentication, Authenticator, ClientAuthorities, ClientAuthoritiesError, FrontProxied,
    RequestHeader, RequestHeaderError, RequestHeaderNames, TokenAuthenticator, TokenFile, TokenFileError,
    Unauthenticated,
};
pub use authorization::{
    AlwaysAllow, AlwaysDeny, Attributes, Authorizer, Basics, Counted, Decision, NonResourceRule,
    PrivilegedGroups, ResourceRule, SubjectRules, Union,
};
pub use body::{MAX_BODY_BYTES, read_body};
pub use concord_meta::UserInfo;
pub use config::{Browsers, CompletedConfig, Config, ConnectionLimits, Error, RequestLimits, Shutdown};
pub use context::{ConnectionHandle, Deadline, RequestContext, ShutdownToken, WarningsHandle};
pub use filters::{AllowedOrigins, StorageVersions, not_registered};
pub use flow_control::{Admission, FlowControl, Seat};
pub use health::{Coalesced, HealthCheck, HealthChecks, Unhealthy, check_fn};
pub use http::{Body, BoxError, Handler, Request, Response, full, text, with_body};
pub use metrics::{
    AdmissionMetrics, AdmissionStep, AggregationMetrics, CelMetrics, ClientMetrics, Conditions,
    DecisionMetrics, Deprecated, FlowMetrics, LevelSeats, Metrics, MigrationMetrics, PeerMetrics,
    PluginMetrics, QueueMetrics, Served, StorageLatency, Terminated, TokenUses, WatchEvents,
};
pub use request_info::{RequestInfo, RequestInfoError};
pub use routes::not_found;
pub use runtime::{Background, runtime};
pub use sending::InLargeSteps;
pub use server::{Drained, Server};
pub use tls::{Identity, NamedIdentity, TlsOptions, TlsVersion};
pub use version::Version;
pub use waits::note_wait;
