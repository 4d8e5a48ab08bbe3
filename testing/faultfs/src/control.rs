use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::layout::{ENV_CONTROL, ENV_DIR, ENV_TRACE, WORDS, Word};

/// What goes wrong. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    /// Added to every sync.
    pub sync_delay: Duration,
    /// Syncs that fail; a failed one reaches the disk no more than if it had not been called.
    pub syncs: Option<Fault>,
    /// Writes and truncations that fail, without effect.
    pub writes: Option<Fault>,
    /// Cuts one write in so many to half its length, at random.
    pub short_writes_one_in: Option<u64>,
    /// Seconds that the wall clock is ahead of what it should be; negative if it is behind. How long things take, which
    /// is what the monotonic clock says, is not touched.
    pub clock_offset_seconds: i64,
    /// Makes the random choices repeatable, as far as the program under test is.
    pub seed: u64,
}

/// An error and when it strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// What the call reports.
    pub errno: Errno,
    /// Which calls do.
    pub when: When,
}

/// What a failing call reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errno {
    /// EIO: the device failed.
    Io,
    /// ENOSPC: the disk is full.
    NoSpace,
    /// EROFS: the file system was made read-only, as the system does after errors.
    ReadOnly,
}

/// Which calls fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// All.
    Always,
    /// One in so many, at random.
    OneIn(u64),
    /// Only one: the n-th from now, counted from 1.
    Nth(u64),
}

/// What the preloaded library has seen and done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Writes and truncations of watched files.
    pub writes: u64,
    /// Syncs of watched files.
    pub syncs: u64,
    /// Writes that failed or were cut short.
    pub write_faults: u64,
    /// Syncs that failed.
    pub sync_faults: u64,
}

/// The remote control of the faults in child processes.
#[derive(Debug)]
pub struct FaultFs {
    watched: PathBuf,
    control_path: PathBuf,
    control: File,
    trace: Option<PathBuf>,
}

impl FaultFs {
    /// Watches the files under `dir`, which must exist, through a control file made at `control`. The
    /// file is better not in `dir`, or it would be a part of what is tested.
    ///
    /// # Errors
    ///
    /// The directory does not exist, or the control file cannot be made.
    pub fn new(dir: &Path, control: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(control)?;
        file.set_len((WORDS * size_of::<u64>()) as u64)?;
        Ok(Self {
            watched: dir.canonicalize()?,
            control_path: control.canonicalize()?,
            control: file,
            trace: None,
        })
    }

    /// Also records what reaches the disk in the file `trace`, see [`crate::trace`].
    #[must_use]
    pub fn with_trace(mut self, trace: &Path) -> Self {
        self.trace = Some(trace.to_path_buf());
        self
    }

    /// Makes the child that `command` will start subject to the faults.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::Unsupported`] where there is no preloaded library.
    pub fn attach(&self, command: &mut Command) -> io::Result<()> {
        let library = crate::library().ok_or(io::ErrorKind::Unsupported)?;
        command.env("LD_PRELOAD", library).env(ENV_DIR, &self.watched).env(ENV_CONTROL, &self.control_path);
        if let Some(trace) = &self.trace {
            command.env(ENV_TRACE, trace);
        }
        Ok(())
    }

    /// From now on, also in children that run already, this goes wrong and nothing else.
    ///
    /// # Errors
    ///
    /// The control file cannot be written.
    pub fn set(&self, faults: &Faults) -> io::Result<()> {
        let seen = self.counters()?;
        let short = faults.short_writes_one_in.unwrap_or(0);
        self.put(Word::Seed, faults.seed)?;
        self.put(Word::ClockOffsetSeconds, faults.clock_offset_seconds.cast_unsigned())?;
        self.put(Word::SyncDelayMicros, u64::try_from(faults.sync_delay.as_micros()).unwrap_or(u64::MAX))?;
        self.put(Word::ShortOneIn, short)?;
        self.arm(faults.syncs, seen.syncs, [Word::SyncErrno, Word::SyncOneIn, Word::SyncNth])?;
        self.arm(faults.writes, seen.writes, [Word::WriteErrno, Word::WriteOneIn, Word::WriteNth])
    }

    /// What has happened so far, in all children together.
    ///
    /// # Errors
    ///
    /// The control file cannot be read.
    pub fn counters(&self) -> io::Result<Counters> {
        Ok(Counters {
            writes: self.get(Word::Writes)?,
            syncs: self.get(Word::Syncs)?,
            write_faults: self.get(Word::WriteFaults)?,
            sync_faults: self.get(Word::SyncFaults)?,
        })
    }

    fn arm(&self, fault: Option<Fault>, seen: u64, [errno, one_in, nth]: [Word; 3]) -> io::Result<()> {
        let (number, in_count, nth_count) = match fault {
            None => (0, 0, 0),
            Some(Fault { errno, when: When::Always }) => (errno.number(), 1, 0),
            Some(Fault { errno, when: When::OneIn(n) }) => (errno.number(), n, 0),
            Some(Fault { errno, when: When::Nth(n) }) => (errno.number(), 0, seen + n),
        };
        // Disarmed first and armed last: no call fails with the errno of another plan.
        self.put(one_in, 0)?;
        self.put(nth, 0)?;
        self.put(errno, number)?;
        self.put(nth, nth_count)?;
        self.put(one_in, in_count)
    }

    fn put(&self, word: Word, value: u64) -> io::Result<()> {
        self.control.write_all_at(&value.to_ne_bytes(), offset(word))
    }

    fn get(&self, word: Word) -> io::Result<u64> {
        let mut bytes = [0; size_of::<u64>()];
        self.control.read_exact_at(&mut bytes, offset(word))?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

impl Fault {
    /// Every call fails with this.
    pub fn always(errno: Errno) -> Self {
        Self { errno, when: When::Always }
    }
}

impl Errno {
    /// The number, which is the same on every Linux.
    fn number(self) -> u64 {
        match self {
            Self::Io => 5,
            Self::NoSpace => 28,
            Self::ReadOnly => 30,
        }
    }
}

fn offset(word: Word) -> u64 {
    (word as usize * size_of::<u64>()) as u64
}
