//! A file that is set aside when it is full. Names and rules are those of upstream's library: `audit.log` becomes
//! `audit-2026-11-16T06-43-39.245.log`, and `audit-2026-11-16T06-43-39.245.log.gz` if it is compressed.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use jiff::{SignedDuration, Timestamp, civil::DateTime, tz::TimeZone};

const STAMP: &str = "%Y-%m-%dT%H-%M-%S%.3f";

/// When a file is set aside, and what becomes of those that were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rotation {
    /// How large a file becomes, in bytes; 0 for no limit.
    pub max_size: u64,
    /// How many old files are kept; 0 for all.
    pub max_backups: usize,
    /// How many days they are kept; 0 for ever.
    pub max_age_days: u32,
    /// Whether they are compressed.
    pub compress: bool,
}

pub(super) struct RotatingFile {
    path: PathBuf,
    rotation: Rotation,
    /// `None` after a failure: the next line tries again.
    file: Option<File>,
    size: u64,
}

impl RotatingFile {
    pub(super) fn open(path: PathBuf, rotation: Rotation) -> io::Result<Self> {
        let mut new = Self { path, rotation, file: None, size: 0 };
        new.reopen()?;
        new.clean_up(Timestamp::now());
        Ok(new)
    }

    fn reopen(&mut self) -> io::Result<&mut File> {
        if let Some(directory) = self.path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
        }
        // What is in it may name users: nobody else reads it.
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        self.size = file.metadata()?.len();
        Ok(self.file.insert(file))
    }

    fn is_full(&self, more: u64) -> bool {
        self.rotation.max_size > 0 && self.size > 0 && self.size + more > self.rotation.max_size
    }

    /// Sets the file aside.
    fn rotate(&mut self, now: Timestamp) -> io::Result<()> {
        self.file = None;
        fs::rename(&self.path, self.backup(now))?;
        self.reopen()?;
        self.clean_up(now);
        Ok(())
    }

    /// Stem and extension of all names.
    fn name(&self) -> (String, String) {
        let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let extension = self.path.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
        (text(self.path.file_stem()), extension.unwrap_or_default())
    }

    /// A name for the file, by its time or soon after: two that are set aside in one moment are two files.
    fn backup(&self, now: Timestamp) -> PathBuf {
        let (stem, extension) = self.name();
        let at = |millis: i64| {
            let time = now.saturating_add(SignedDuration::from_millis(millis)).unwrap_or(now);
            self.path.with_file_name(format!("{stem}-{}{extension}", time.strftime(STAMP)))
        };
        let packed = |path: &Path| path.with_added_extension("gz");
        let free = (0..1000).map(at).find(|path| !path.exists() && !packed(path).exists());
        free.unwrap_or_else(|| at(0))
    }

    /// The files that were set aside, youngest first.
    fn backups(&self) -> io::Result<Vec<(Timestamp, PathBuf)>> {
        let (stem, extension) = self.name();
        let directory = match self.path.parent() {
            Some(directory) if !directory.as_os_str().is_empty() => directory,
            _ => Path::new("."),
        };
        let mut found = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let bare = name.strip_suffix(".gz").unwrap_or(&name);
            let stamp = bare.strip_prefix(&stem).and_then(|rest| rest.strip_prefix('-'));
            let stamp = stamp.and_then(|rest| rest.strip_suffix(&extension));
            if let Some(time) = stamp.and_then(time_of) {
                found.push((time, entry.path()));
            }
        }
        found.sort_by(|one, other| other.cmp(one));
        Ok(found)
    }

    /// Removes what is too old or too many and compresses the rest. What cannot be is left for the next time: the log
    /// itself goes on.
    fn clean_up(&self, now: Timestamp) {
        let backups = match self.backups() {
            Ok(backups) => backups,
            Err(error) => return tracing::warn!(%error, "Old audit logs could not be listed."),
        };
        let Rotation { max_backups, max_age_days, compress, .. } = self.rotation;
        let age = SignedDuration::from_hours(24 * i64::from(max_age_days));
        for (index, (time, path)) in backups.iter().enumerate() {
            let too_many = max_backups > 0 && index >= max_backups;
            let too_old = max_age_days > 0 && now.duration_since(*time) > age;
            let done = match too_many || too_old {
                true => fs::remove_file(path),
                false if compress && path.extension().is_none_or(|extension| extension != "gz") => pack(path),
                false => Ok(()),
            };
            if let Err(error) = done {
                tracing::warn!(%error, file = %path.display(), "An old audit log could not be put away.");
            }
        }
    }
}

fn time_of(stamp: &str) -> Option<Timestamp> {
    let time = DateTime::strptime(STAMP, stamp).ok()?;
    time.to_zoned(TimeZone::UTC).ok().map(|time| time.timestamp())
}

/// Compresses a file and removes it.
fn pack(path: &Path) -> io::Result<()> {
    let packed = path.with_added_extension("gz");
    let mut source = File::open(path)?;
    let target = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(packed)?;
    let mut encoder = GzEncoder::new(target, Compression::default());
    io::copy(&mut source, &mut encoder)?;
    encoder.finish()?.sync_all()?;
    fs::remove_file(path)
}

impl Write for RotatingFile {
    /// Writes a whole line: a line is never in two files.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        if self.is_full(length) {
            self.rotate(Timestamp::now())?;
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.reopen()?,
        };
        if let Err(error) = file.write_all(line) {
            self.file = None;
            return Err(error);
        }
        self.size += length;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("a time")
    }

    fn log(directory: &Path, rotation: Rotation) -> RotatingFile {
        RotatingFile::open(directory.join("audit.log"), rotation).expect("opened")
    }

    #[test]
    fn a_full_file_is_set_aside_under_its_time() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut log = log(directory.path(), Rotation { max_size: 10, ..Rotation::default() });
        for line in ["12345\n", "678\n", "much too long for one file\n", "x\n"] {
            log.write_all(line.as_bytes()).expect("written");
        }
        let names = names(directory.path());
        assert_eq!(names.len(), 3, "{names:?}");
        let stamp = names[0].strip_prefix("audit-").and_then(|name| name.strip_suffix(".log"));
        assert!(stamp.and_then(time_of).is_some(), "{names:?}");
        assert_eq!(fs::read_to_string(directory.path().join(&names[0])).expect("a file"), "12345\n678\n");
        assert_eq!(fs::read_to_string(directory.path().join("audit.log")).expect("a file"), "x\n");
    }

    #[test]
    fn old_files_are_removed_by_number_and_by_age() {
        let directory = tempfile::tempdir().expect("a directory");
        let rotation = Rotation { max_size: 1, max_backups: 2, max_age_days: 1, compress: false };
        let mut log = log(directory.path(), rotation);
        for other in ["audit-yesterday.log", "audit-2026-11-16T06-43-39.245.txt", "other.log"] {
            fs::write(directory.path().join(other), "").expect("written");
        }
        for second in 0..4 {
            log.rotate(at(second)).expect("rotated");
        }
        let kept = ["audit-2027-01-15T08-00-02.000.log", "audit-2027-01-15T08-00-03.000.log"];
        let others = ["audit-2026-11-16T06-43-39.245.txt", "audit-yesterday.log", "audit.log", "other.log"];
        let mut expected: Vec<_> = kept.iter().chain(&others).map(|name| (*name).to_owned()).collect();
        expected.sort();
        assert_eq!(names(directory.path()), expected);
        log.clean_up(at(4 + 24 * 60 * 60));
        let mut others: Vec<_> = others.map(str::to_owned).into();
        others.sort();
        assert_eq!(names(directory.path()), others);
    }

    #[test]
    fn old_files_can_be_compressed() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut log = log(directory.path(), Rotation { max_size: 5, compress: true, ..Rotation::default() });
        log.write_all(b"line\n").expect("written");
        log.rotate(at(0)).expect("rotated");
        let packed = directory.path().join("audit-2027-01-15T08-00-00.000.log.gz");
        assert_eq!(names(directory.path()), ["audit-2027-01-15T08-00-00.000.log.gz", "audit.log"]);
        let mut text = String::new();
        let file = File::open(packed).expect("a file");
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("gzip");
        assert_eq!(text, "line\n");
    }

    #[test]
    fn what_was_removed_under_it_is_made_again_after_a_failure() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut log = log(directory.path(), Rotation::default());
        log.file = None;
        fs::remove_file(directory.path().join("audit.log")).expect("removed");
        log.write_all(b"line\n").expect("written");
        assert_eq!(fs::read_to_string(directory.path().join("audit.log")).expect("a file"), "line\n");
    }
}
