//! Moves committed pages from the write-ahead log into the file, beside the writer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use parking_lot::{Condvar, Mutex};

use crate::{file::StoreFile, shared::Shared, writer::is_io};

/// A checkpoint is due after so many bytes were written.
const DUE_BYTES: usize = 4 << 20;
/// Beyond this the writer helps: only when every page was moved does the log start over from its
/// beginning, and under steady load a checkpoint beside the writer never sees that moment.
const HELP_BYTES: usize = 32 << 20;

/// The writer's side.
pub(crate) struct Checkpoints {
    thread: Option<JoinHandle<()>>,
    signal: Arc<Signal>,
    /// Written since the last checkpoint was asked for.
    pending: usize,
    /// Written since the log last started over.
    length: usize,
}

#[derive(Default)]
struct Signal {
    asked: Mutex<Asked>,
    wake: Condvar,
    /// The last checkpoint moved every page there was.
    complete: AtomicBool,
}

#[derive(Default)]
struct Asked {
    due: bool,
    closed: bool,
}

impl Checkpoints {
    pub(crate) fn start(file: StoreFile, shared: Arc<Shared>) -> std::io::Result<Self> {
        let signal = Arc::new(Signal::default());
        let theirs = signal.clone();
        let thread = std::thread::Builder::new()
            .name("store-checkpoint".to_owned())
            .spawn(move || run(&file, &shared, &theirs))?;
        Ok(Self { thread: Some(thread), signal, pending: 0, length: 0 })
    }

    /// Tells that the writer has written.
    pub(crate) fn written(&mut self, bytes: usize, file: &StoreFile, shared: &Shared) {
        self.pending += bytes;
        self.length += bytes;
        if self.signal.complete.swap(false, Ordering::AcqRel) {
            self.length = bytes;
        }
        if self.pending < DUE_BYTES {
            return;
        }
        self.pending = 0;
        if self.length < HELP_BYTES {
            self.signal.ask(|asked| asked.due = true);
        } else {
            checkpoint(file, shared);
            self.length = 0;
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.signal.ask(|asked| asked.closed = true);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("Store checkpointer panicked");
        }
    }
}

impl Signal {
    fn ask(&self, what: impl FnOnce(&mut Asked)) {
        what(&mut self.asked.lock());
        self.wake.notify_one();
    }

    /// Waits until a checkpoint is due; false when there will be none.
    fn wait(&self) -> bool {
        let mut asked = self.asked.lock();
        while !asked.due && !asked.closed {
            self.wake.wait(&mut asked);
        }
        asked.due = false;
        !asked.closed
    }
}

fn run(file: &StoreFile, shared: &Shared, signal: &Signal) {
    while signal.wait() {
        let complete = checkpoint(file, shared);
        signal.complete.store(complete, Ordering::Release);
    }
}

fn checkpoint(file: &StoreFile, shared: &Shared) -> bool {
    match file.checkpoint_passive() {
        Ok(left) => left == 0,
        Err(error) => {
            tracing::warn!(%error, "Store checkpoint failed; it will be tried again");
            if is_io(&error) {
                shared.fail(&format!("a checkpoint failed: {error}"));
            }
            false
        }
    }
}
