//! Health: named checks, and the endpoints `/healthz`, `/livez` and `/readyz` that report them.

mod check;
mod endpoints;

pub use check::{Coalesced, HealthCheck, HealthChecks, Unhealthy, check_fn};
pub(crate) use endpoints::HealthEndpoints;
