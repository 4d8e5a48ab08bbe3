//! The filters of the handler chain, one module each. What order they stand in, and why, is said in
//! `chain.rs`.

mod audit_id;
mod cache_control;
mod panic_recovery;

pub(crate) use audit_id::AuditId;
pub(crate) use cache_control::CacheControl;
pub(crate) use panic_recovery::PanicRecovery;
