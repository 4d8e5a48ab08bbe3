//! Auditing: who asked for what and what became of it, as upstream's `audit.k8s.io/v1` has it.
//!
//! A [`Policy`] says, by the first of its rules that matches a request, how much of it is written down: its [`Level`], and
//! at which [`Stage`]s. An [`Event`] is one line about a request at one stage. A [`Log`] takes lines and writes them to a
//! file that it rotates, or to standard output.
//!
//! Whoever has requests decides what an event holds; this crate knows no HTTP. It never makes a request wait for a disk:
//! what the log cannot take in time is counted and left out, and it never writes what an event does not hold, such as
//! tokens, into logs of its own.
//!
//! Start with [`Policy::decide`] and [`Event`], then [`Log`].

mod event;
mod level;
mod log;
mod policy;

pub use event::{Event, Impersonated, ObjectReference, ResponseStatus, TRUNCATED, without_managed_fields};
pub use level::{Level, Stage, Stages};
pub use log::{Counters, Log, LogError, LogOptions, Rotation};
pub use policy::{Attributes, Decision, Policy, PolicyError};
