//! Moves committed pages from the write-ahead log into the file, beside the writer.
//!
//! The log must be short and used again and again: a commit that makes it longer costs nearly twice one
//! that overwrites, since the file system then has to record the new size as well. It starts over from
//! its beginning only when every page was moved, and beside a busy writer that moment never comes. So
//! a thread moves the bulk, and the writer then moves the few pages that were added meanwhile.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use parking_lot::{Condvar, Mutex};

use crate::{file::StoreFile, shared::Shared, writer::is_io};

/// A checkpoint is due after so many bytes were added to the log.
const DUE_BYTES: usize = 2 << 20;
/// What a commit adds to the log at least: the page a row goes to, and often one more.
const COMMIT_BYTES: usize = 8192;

/// The writer's side.
pub(crate) struct Checkpoints {
    thread: Option<JoinHandle<()>>,
    signal: Arc<Signal>,
    /// Added to the log since the last checkpoint was asked for.
    pending: usize,
}

#[derive(Default)]
struct Signal {
    asked: Mutex<Asked>,
    wake: Condvar,
    /// The bulk was moved; the rest is the writer's.
    moved: AtomicBool,
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
        Ok(Self { thread: Some(thread), signal, pending: 0 })
    }

    /// Called by the writer after each commit, with the bytes of its rows.
    pub(crate) fn written(&mut self, bytes: usize, file: &StoreFile, shared: &Shared) {
        if self.signal.moved.swap(false, Ordering::AcqRel) {
            checkpoint(file, shared);
        }
        self.pending += bytes + COMMIT_BYTES;
        if self.pending >= DUE_BYTES {
            self.pending = 0;
            self.signal.ask(|asked| asked.due = true);
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
        checkpoint(file, shared);
        signal.moved.store(true, Ordering::Release);
    }
}

fn checkpoint(file: &StoreFile, shared: &Shared) {
    if let Err(error) = file.checkpoint_passive() {
        tracing::warn!(%error, "Store checkpoint failed; it will be tried again");
        if is_io(&error) {
            shared.fail(&format!("a checkpoint failed: {error}"));
        }
    }
}
