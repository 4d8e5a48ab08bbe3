//! A model of the storage version protocol, explored exhaustively.
//!
//! The decisions are those of `concord-storageversion` and of the rules of `concord-migrator`: the very functions that the
//! server calls. The model adds a log
//! with revisions, processes that crash and come back, an administrator, a migrator, and transactions that are *decided
//! on one state and land on another*: whatever is late, delayed by a partition or left over from a process that is no
//! more may land at any later moment, or never. After every commit the invariants are checked against the truth, which
//! no process can see.
//!
//! Where [`Scenario::late_views`] is on, each process also *decides on an older state*: what it has seen of the log, which goes
//! forward whenever it looks, and stays behind as long as it does not.
//!
//! It must never decide anything itself that the server decides: then it would show that the model is safe, not that the
//! server is. Only a [`Race`] does, on purpose: each is a way in which kube-apiserver v1.36 decides otherwise, and with
//! each the checker has to find what breaks. That shows that the model can fail.
//!
//! Of the invariants of the specification, these cannot be seen here and have tests elsewhere: that a version which others
//! cannot read is told (14, `cannot_read`), the table of the filter (17) and the truth of the readiness check (18), both in
//! `concord-server` and `concord-fleet`, and that resources which share their objects have one name (20, `records.rs`).
//!
//! Start with [`Scenario`], then [`State`], `steps.rs` for what processes do and `land.rs` for what is checked.

mod land;
mod migration;
mod model;
mod scenario;
mod state;
mod steps;

pub use land::Invariant;
pub use model::{Action, Fleet};
pub use scenario::{Budget, Race, Resource, Scenario};
pub use state::State;
