//! Threads that can walk what clients send.

use std::io;

use tokio::runtime::{Builder, Handle, Runtime};

/// The stack of a thread. What is decoded may be 500 levels deep, and every pass over it recurses: a level takes up to a few
/// KiB for one, more without optimisation. It is room to grow into, and not memory that is taken.
const STACK: usize = 32 << 20;

/// How much threads give way that do what can wait: from 0, as all others, to 19. With this they have a tenth of a processor
/// if somebody else wants all of it, so that what they hold they let go of before long.
const GIVES_WAY: i32 = 10;

/// A runtime for a server: one thread for each CPU, with stacks that nothing a client sends overflows.
///
/// # Errors
///
/// If threads cannot be started.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().thread_stack_size(STACK).enable_all().build()
}

/// A runtime for work that can wait, such as going over everything that is stored: one thread, which gives way to all others
/// of the machine. Requests hardly wait for a processor behind it then, also where the store shares them with the server.
#[derive(Debug)]
pub struct Background {
    handle: Handle,
    /// Until it is dropped.
    runtime: Option<Runtime>,
}

impl Background {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("background")
            .thread_stack_size(STACK)
            .on_thread_start(give_way)
            .enable_all()
            .build()?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    /// Where to spawn such work.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Not by waiting for what is under way: whoever drops it may be on a thread that must not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Lets the threads of others go first.
fn give_way() {
    // Where that is not possible, it is a thread like all others.
    rustix::process::setpriority_process(None, GIVES_WAY).ok();
}

#[cfg(test)]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[tokio::test]
    async fn work_in_the_background_gives_way_to_all_other_work() {
        let background = Background::start().expect("a thread");
        let there = background.handle().spawn(async { getpriority_process(None) }).await.expect("no panic");
        let here = getpriority_process(None).expect("a number");
        assert!(there.expect("a number") > here);
        drop(background);
    }
}
