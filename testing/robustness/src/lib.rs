//! Random concurrent histories against real stores under faults, and the checker that judges them.
//!
//! Several clients put, compare-and-set, delete and read a few keys while something breaks the store or
//! the way to it ([`traffic`]). Every call is recorded with when it began and ended ([`history`]). Then
//! [`check()`] decides whether the records can be explained by one sequence of operations that respects
//! real time: linearizability. The log tells that sequence, since every write has a revision and every
//! read says at which revision it was true, so the check is a replay and needs no search.
//!
//! It never decides anything by the clock but the order of calls, and it never looks into an engine.
//!
//! A failure prints its seed; `CONCORD_SEED=<seed>` runs that one again.

mod check;
pub mod history;
pub mod traffic;

pub use check::check;

/// The seed of this run: `CONCORD_SEED` if set, else a new one. Printed, so that it can be replayed.
///
/// # Panics
///
/// When `CONCORD_SEED` is not a number.
#[allow(clippy::print_stdout, reason = "test output")]
pub fn seed() -> u64 {
    let seed = match std::env::var("CONCORD_SEED") {
        Ok(text) => text.parse().expect("CONCORD_SEED is a number"),
        Err(_) => rand::random(),
    };
    println!("CONCORD_SEED={seed}");
    seed
}
