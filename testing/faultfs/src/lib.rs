//! Disk faults for tests: slow syncs, failing writes and syncs, full disks, power loss; and wall clocks that jump.
//!
//! The program under test is not changed and not mocked. It runs as a child process with a small
//! library loaded before libc (Linux only), which stands in for the calls that reach the disk or ask for the time of day.
//! [`FaultFs`] prepares such a child and switches faults while it runs; [`Faults`] says what goes
//! wrong. With a trace, [`trace::read`] gives every write and sync in order, and
//! [`power_loss::Disk`] makes of them the files as they may look after the power failed.
//!
//! The library is built by this crate's build script and found by [`library`]: a crate that wants it
//! names `concord-faultfs` among its dev-dependencies and does nothing else.
//!
//! From a shell, without a test: `LD_PRELOAD=…/libconcord_faultfs.so`, `CONCORD_FAULTFS_DIR` set to
//! the directory to watch (absolute, no links in it), and for example
//! `CONCORD_FAULTFS_SYNC_DELAY_MICROS=2000`; all names are in `src/layout.rs`.
//!
//! Limits: writes through `mmap`, `copy_file_range` and io_uring pass unseen, and so do programs that
//! are linked statically. It never touches files outside the watched directory, and this crate is
//! never a dependency of anything but tests and benchmarks.

mod control;
#[allow(dead_code, reason = "the preloaded library uses the rest")]
mod layout;
pub mod power_loss;
#[cfg(clippy)]
mod preload;
pub mod trace;

use std::path::Path;

pub use control::{Counters, Errno, Fault, FaultFs, Faults, When};

/// The preloaded library, or `None` where there is none because the target is not Linux.
pub fn library() -> Option<&'static Path> {
    let path = env!("CONCORD_FAULTFS_LIBRARY");
    (!path.is_empty()).then(|| Path::new(path))
}
