//! The filters of the handler chain, one module each. What order they stand in, and why, is said in
//! `chain.rs`.

mod audit_id;
mod authentication;
mod authorization;
mod cache_control;
mod cors;
mod deadline;
mod goaway;
mod gzip;
mod hsts;
mod http_log;
mod impersonation;
mod max_in_flight;
mod metrics;
mod panic_recovery;
mod received;
mod request_info;
mod retry_after;
mod storage_version;
mod timeout;
mod warnings;
mod watch_termination;

pub(crate) use audit_id::AuditId;
pub(crate) use authentication::Authentication;
pub(crate) use authorization::Authorization;
pub(crate) use cache_control::CacheControl;
pub use cors::AllowedOrigins;
pub(crate) use cors::Cors;
pub(crate) use deadline::RequestDeadline;
pub(crate) use goaway::Goaway;
pub(crate) use gzip::Gzip;
pub(crate) use hsts::Hsts;
pub(crate) use http_log::HttpLog;
pub(crate) use impersonation::Impersonation;
pub(crate) use max_in_flight::MaxInFlight;
pub(crate) use metrics::RequestMetrics;
pub(crate) use panic_recovery::PanicRecovery;
pub(crate) use received::ReceivedTimestamp;
pub(crate) use request_info::RequestInfoFilter;
pub(crate) use retry_after::RetryAfter;
pub(crate) use storage_version::StorageVersionPrecondition;
pub use storage_version::{StorageVersions, not_registered};
pub(crate) use timeout::Timeout;
pub(crate) use warnings::WarningRecorder;
pub(crate) use watch_termination::WatchTermination;
