//! What a disk may hold after the power failed.
//!
//! The model keeps a promise only where the program asked for it by a sync that succeeded. Of what was
//! written later, each write may be there, be missing, or be there in parts of 512 bytes, in any
//! combination. A name that was made, removed or replaced is safe after a sync of its directory;
//! before that, some first part of these changes is there. That is weaker than what ext4 or xfs do,
//! so whoever survives it survives them.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    path::{Path, PathBuf},
};

use crate::trace::{Event, Record};

/// Disks write sectors of this many bytes whole or not at all.
const SECTOR: u64 = 512;

/// A disk to which a trace is applied record by record, from an empty directory on.
#[derive(Debug, Default)]
pub struct Disk {
    files: Vec<Contents>,
    /// The names as the running program sees them.
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    pending_names: Vec<NameChange>,
    /// For each sync under way, how many changes had been made to its file or to all names before.
    syncs: HashMap<u64, usize>,
}

#[derive(Debug, Default)]
struct Contents {
    durable: Vec<u8>,
    pending: Vec<Edit>,
    /// How many edits have become durable: syncs count edits from the beginning of the file's life.
    settled: usize,
}

#[derive(Debug)]
enum Edit {
    Write { offset: u64, data: Vec<u8> },
    Truncate { len: u64 },
}

#[derive(Debug)]
struct NameChange {
    path: PathBuf,
    file: Option<usize>,
}

/// The files found when the machine comes up again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image(pub BTreeMap<PathBuf, Vec<u8>>);

impl Disk {
    /// Applies what happened next.
    pub fn apply(&mut self, record: &Record) {
        let path = &record.path;
        match &record.event {
            Event::Create if !self.names.contains_key(path) => {
                self.files.push(Contents::default());
                self.set_name(path, Some(self.files.len() - 1));
            }
            Event::Write { offset, data } => {
                self.edit(path, || Edit::Write { offset: *offset, data: data.clone() });
            }
            Event::Truncate { len } => self.edit(path, || Edit::Truncate { len: *len }),
            Event::SyncStart { number } => self.sync_start(path, *number),
            Event::SyncEnd { number } => self.sync_end(path, *number),
            Event::Unlink => self.set_name(path, None),
            Event::Rename { to } => {
                let file = self.names.get(path).copied();
                self.set_name(path, None);
                self.set_name(to, file);
            }
            Event::SyncFail { number } => {
                self.syncs.remove(number);
            }
            Event::Create | Event::Mark(_) => {}
        }
    }

    /// One of the states in which the disk may be if the power fails now. `choose(n)` is a number
    /// below `n`, picked by the test's generator.
    pub fn crash(&self, mut choose: impl FnMut(u64) -> u64) -> Image {
        // Pure luck makes the extremes rare, and they find the most: nothing or all that was pending.
        let luck = match choose(4) {
            0 => Luck::None,
            1 => Luck::All,
            _ => Luck::Some,
        };
        let mut names = self.durable_names.clone();
        let kept = match luck {
            Luck::None => 0,
            Luck::All => self.pending_names.len(),
            Luck::Some => choose(self.pending_names.len() as u64 + 1) as usize,
        };
        for change in &self.pending_names[..kept] {
            change.apply(&mut names);
        }
        let read = |(path, file): (PathBuf, usize)| (path, self.files[file].after_crash(luck, &mut choose));
        Image(names.into_iter().map(read).collect())
    }

    fn edit(&mut self, path: &Path, edit: impl FnOnce() -> Edit) {
        if let Some(file) = self.names.get(path) {
            self.files[*file].pending.push(edit());
        }
    }

    fn set_name(&mut self, path: &Path, file: Option<usize>) {
        let change = NameChange { path: path.to_path_buf(), file };
        change.apply(&mut self.names);
        self.pending_names.push(change);
    }

    /// A path that is no file is a directory: the programs under test sync nothing else.
    fn sync_start(&mut self, path: &Path, number: u64) {
        let covered = match self.names.get(path) {
            Some(file) => self.files[*file].settled + self.files[*file].pending.len(),
            None => self.pending_names.len(),
        };
        self.syncs.insert(number, covered);
    }

    fn sync_end(&mut self, path: &Path, number: u64) {
        let Some(covered) = self.syncs.remove(&number) else { return };
        if let Some(file) = self.names.get(path) {
            self.files[*file].settle(covered);
            return;
        }
        // Another sync may have settled some already: then there are fewer left than were counted.
        let covered = covered.min(self.pending_names.len());
        let (inside, outside): (Vec<_>, Vec<_>) =
            self.pending_names.drain(..covered).partition(|change| change.path.parent() == Some(path));
        for change in inside {
            change.apply(&mut self.durable_names);
        }
        self.pending_names.splice(..0, outside);
    }
}

impl Image {
    /// Writes the files into `to`, each at its path below `from`; others are left out.
    ///
    /// # Errors
    ///
    /// A file or directory cannot be written.
    pub fn write(&self, from: &Path, to: &Path) -> io::Result<()> {
        for (path, bytes) in &self.0 {
            let Ok(relative) = path.strip_prefix(from) else { continue };
            let target = to.join(relative);
            if let Some(dir) = target.parent() {
                fs::create_dir_all(dir)?;
            }
            fs::write(target, bytes)?;
        }
        Ok(())
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self.file {
            Some(file) => names.insert(self.path.clone(), file),
            None => names.remove(&self.path),
        };
    }
}

/// How much of what was not synced survives.
#[derive(Debug, Clone, Copy)]
enum Luck {
    None,
    Some,
    All,
}

impl Contents {
    fn settle(&mut self, covered: usize) {
        let count = covered.saturating_sub(self.settled);
        for edit in self.pending.drain(..count) {
            edit.apply(&mut self.durable);
        }
        self.settled += count;
    }

    fn after_crash(&self, luck: Luck, choose: &mut impl FnMut(u64) -> u64) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        for edit in &self.pending {
            match luck {
                Luck::None => {}
                Luck::All => edit.apply(&mut bytes),
                Luck::Some => match choose(4) {
                    0 => {}
                    1 => edit.apply_torn(&mut bytes, choose),
                    _ => edit.apply(&mut bytes),
                },
            }
        }
        bytes
    }
}

impl Edit {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Truncate { len } => bytes.resize(*len as usize, 0),
            Self::Write { offset, data } => put(bytes, *offset, data),
        }
    }

    /// Applies some sectors of a write; a change of the length has no parts.
    fn apply_torn(&self, bytes: &mut Vec<u8>, choose: &mut impl FnMut(u64) -> u64) {
        let Self::Write { offset, data } = self else { return self.apply(bytes) };
        let mut at = *offset;
        let mut rest = data.as_slice();
        while !rest.is_empty() {
            let len = usize::try_from(SECTOR - at % SECTOR).map_or(rest.len(), |left| left.min(rest.len()));
            let (sector, next) = rest.split_at(len);
            if choose(2) == 0 {
                put(bytes, at, sector);
            }
            at += len as u64;
            rest = next;
        }
    }
}

fn put(bytes: &mut Vec<u8>, offset: u64, data: &[u8]) {
    let start = offset as usize;
    let end = start + data.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[start..end].copy_from_slice(data);
}

#[cfg(test)]
mod tests;
