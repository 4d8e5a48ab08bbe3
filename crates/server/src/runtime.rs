//! Threads that can walk what clients send.

use std::io;

use tokio::runtime::{Builder, Runtime};

/// The stack of a thread. What is decoded may be 500 levels deep, and every pass over it recurses: a level takes up to a few
/// KiB for one, more without optimisation. It is room to grow into, and not memory that is taken.
const STACK: usize = 32 << 20;

/// A runtime for a server: one thread for each CPU, with stacks that nothing a client sends overflows.
///
/// # Errors
///
/// If threads cannot be started.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().thread_stack_size(STACK).enable_all().build()
}
