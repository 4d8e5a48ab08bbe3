//! The library that is loaded before libc and stands in for the calls that reach the disk or ask for the time of day.
//!
//! It is a crate of its own, compiled by this package's build script. Each call it replaces looks up
//! whether the file is under the watched directory, lets the plan decide about a fault, calls the
//! real function and appends to the trace. It never panics, never allocates after start, takes no
//! lock, and calls nothing that it replaces: the real functions come from the dynamic linker.
#![allow(
    unsafe_code,
    reason = "replacing libc calls and asking the linker for the real ones is unsafe by nature"
)]
#![allow(
    clippy::duplicate_mod,
    reason = "the layout belongs to two crates; only clippy sees this one as a part of the other"
)]

#[allow(dead_code, reason = "the other half uses the rest")]
#[path = "../layout.rs"]
mod layout;

mod calls;
mod path;
mod plan;
mod sys;
mod trace;

/// Run by the dynamic linker before `main`, so that no call has to initialise anything.
// SAFETY: the section holds functions of this type, and ours relies on libc only, which is set up first.
#[unsafe(link_section = ".init_array")]
#[used]
static START: extern "C" fn() = start;

extern "C" fn start() {
    path::start();
    plan::start();
    trace::start();
}
