//! Where events go: a file that is rotated, or standard output.

mod rotation;

use std::{
    io::{self, Write},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
};

use parking_lot::Mutex;

use rotation::RotatingFile;
pub use rotation::Rotation;

/// How many bytes may wait for the disk. What comes on top is lost, and counted.
const WAITING: usize = 64 * 1024 * 1024;

/// How the log is to be.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// The file; `None` for standard output.
    pub path: Option<PathBuf>,
    /// When to begin a new file, and how many old ones to keep.
    pub rotation: Rotation,
}

/// Why there can be no log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file cannot be written.
    #[error("cannot write the audit log {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The system has no thread left.
    #[error("cannot start the thread that writes the audit log")]
    Thread(#[source] io::Error),
}

/// What became of the lines.
#[derive(Debug, Default)]
pub struct Counters {
    lost: AtomicU64,
}

impl Counters {
    /// How many lines could not be written.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// Takes lines and writes them from a thread of its own, so that no request waits for a disk.
pub struct Log {
    /// `None` once it is closed.
    lines: Mutex<Option<Sender<Vec<u8>>>>,
    waiting: Arc<AtomicUsize>,
    counters: Arc<Counters>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Log {
    /// Opens the file and starts writing.
    ///
    /// # Errors
    ///
    /// [`LogError`].
    pub fn open(options: LogOptions) -> Result<Self, LogError> {
        let output: Box<dyn Write + Send> = match options.path {
            None => Box::new(io::stdout()),
            Some(path) => {
                let file = RotatingFile::open(path.clone(), options.rotation);
                Box::new(file.map_err(|source| LogError::Open { path, source })?)
            }
        };
        Self::with_output(output)
    }

    fn with_output(output: Box<dyn Write + Send>) -> Result<Self, LogError> {
        let (sender, receiver) = channel();
        let (waiting, counters) = (Arc::new(AtomicUsize::new(0)), Arc::new(Counters::default()));
        let mut writer =
            Writer { output, waiting: waiting.clone(), counters: counters.clone(), failing: false };
        let thread = std::thread::Builder::new().name("audit-log".to_owned());
        let thread = thread.spawn(move || writer.run(&receiver)).map_err(LogError::Thread)?;
        Ok(Self { lines: Mutex::new(Some(sender)), waiting, counters, writer: Mutex::new(Some(thread)) })
    }

    /// Has a line written, soon. A line that does not fit among those that wait is lost, and so is one after
    /// [`Log::close`].
    pub fn write(&self, line: Vec<u8>) {
        let length = line.len();
        let fits = |waiting: usize| waiting.checked_add(length).filter(|total| *total <= WAITING);
        let reserved = self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        let sent = reserved && self.lines.lock().as_ref().is_some_and(|lines| lines.send(line).is_ok());
        if reserved && !sent {
            self.waiting.fetch_sub(length, Ordering::Relaxed);
        }
        if !sent {
            self.counters.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What became of the lines.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Writes what waits, and nothing more. Blocks until that is done.
    pub fn close(&self) {
        drop(self.lines.lock().take());
        let writer = self.writer.lock().take();
        if writer.is_some_and(|writer| writer.join().is_err()) {
            tracing::error!("The thread that writes the audit log panicked.");
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.close();
    }
}

struct Writer {
    output: Box<dyn Write + Send>,
    waiting: Arc<AtomicUsize>,
    counters: Arc<Counters>,
    /// Whether the last line could not be written: that is said once.
    failing: bool,
}

impl Writer {
    fn run(&mut self, lines: &Receiver<Vec<u8>>) {
        while let Ok(line) = lines.recv() {
            let written = self.output.write_all(&line).and_then(|()| self.output.flush());
            self.waiting.fetch_sub(line.len(), Ordering::Relaxed);
            self.remember(written);
        }
    }

    fn remember(&mut self, written: io::Result<()>) {
        match written {
            Ok(()) if self.failing => {
                tracing::info!("The audit log can be written again.");
                self.failing = false;
            }
            Ok(()) => {}
            Err(error) => {
                self.counters.lost.fetch_add(1, Ordering::Relaxed);
                if !self.failing {
                    tracing::error!(
                        %error,
                        "The audit log cannot be written and events are lost: make room for it or make it writable.",
                    );
                }
                self.failing = true;
            }
        }
    }
}

#[cfg(test)]
mod tests;
