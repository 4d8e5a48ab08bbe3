//! What was acknowledged stays, whatever happens to the process, the disk or the power.
//!
//! A child process (this executable again) writes from several tasks at once, with compaction and
//! expiry running, and tells how each write ended. The parent kills it, hurts its disk or cuts its power,
//! opens what is left, and compares. Seeds are printed; `CONCORD_SEED=<seed>` repeats a run as far as
//! timing allows, `CONCORD_CRASH_ROUNDS=2000` makes the crash test longer.
#![cfg(target_os = "linux")]
#![allow(
    clippy::print_stderr,
    reason = "the seed and what was covered belong into the output of a failing test"
)]

mod child;
mod crash;
mod faults;
mod model;
mod power_loss;
mod process;
mod workload;

/// Not a test but the process that the tests start.
#[test]
#[ignore = "started by the other tests"]
fn child() {
    child::main();
}

/// The seed of this run: given, or fresh.
fn seed() -> u64 {
    let given =
        std::env::var("CONCORD_SEED").ok().map(|seed| seed.parse().expect("CONCORD_SEED is a number"));
    let fresh = || std::collections::hash_map::RandomState::new();
    given.unwrap_or_else(|| std::hash::BuildHasher::hash_one(&fresh(), "seed"))
}
