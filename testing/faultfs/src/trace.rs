//! Reading what a traced program did to its files.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use crate::layout::{HEADER, Kind};

/// Something that happened to a file, in the order in which the calls returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The file, as an absolute path.
    pub path: PathBuf,
    /// What happened to it.
    pub event: Event,
}

/// What happened to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It was opened and made if it was not there.
    Create,
    /// Bytes were written.
    Write {
        /// Where they begin.
        offset: u64,
        /// The bytes.
        data: Vec<u8>,
    },
    /// Its length was set.
    Truncate {
        /// The new length.
        len: u64,
    },
    /// A sync began.
    SyncStart {
        /// Identifies the sync.
        number: u64,
    },
    /// A sync succeeded: what was recorded before its start is on disk.
    SyncEnd {
        /// Identifies the sync.
        number: u64,
    },
    /// A sync failed: nobody knows what is on disk.
    SyncFail {
        /// Identifies the sync.
        number: u64,
    },
    /// It was removed.
    Unlink,
    /// It got another name.
    Rename {
        /// The new name.
        to: PathBuf,
    },
    /// Bytes were written to a file whose name ends in `.mark`: the program says how far it is.
    Mark(Vec<u8>),
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("the trace cannot be read")]
    Io(#[from] io::Error),
    /// The bytes are no trace.
    #[error("no trace record at byte {0}")]
    Malformed(usize),
}

/// All records of a trace file. A last record that is cut off, because the program was killed while it
/// was written, is left out.
///
/// # Errors
///
/// The file cannot be read or is no trace.
pub fn read(path: &Path) -> Result<Vec<Record>, Error> {
    parse(&fs::read(path)?)
}

fn parse(bytes: &[u8]) -> Result<Vec<Record>, Error> {
    let mut records = Vec::new();
    let mut rest = bytes;
    while let Some((record, next)) = split(rest, bytes.len() - rest.len())? {
        records.push(record);
        rest = next;
    }
    Ok(records)
}

/// The first record and what follows it, `None` if it is not complete.
fn split(bytes: &[u8], at: usize) -> Result<Option<(Record, &[u8])>, Error> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else { return Ok(None) };
    let [kind, l0, l1, position @ .., n0, n1, n2, n3] = *header;
    let position = u64::from_le_bytes(position);
    let Some((path, rest)) = rest.split_at_checked(usize::from(u16::from_le_bytes([l0, l1]))) else {
        return Ok(None);
    };
    let payload_len =
        usize::try_from(u32::from_le_bytes([n0, n1, n2, n3])).map_err(|_| Error::Malformed(at))?;
    let Some((payload, rest)) = rest.split_at_checked(payload_len) else { return Ok(None) };
    let path = PathBuf::from(OsStr::from_bytes(path));
    let event = event(kind, &path, position, payload).ok_or(Error::Malformed(at))?;
    Ok(Some((Record { path, event }, rest)))
}

fn event(kind: u8, path: &Path, position: u64, payload: &[u8]) -> Option<Event> {
    Some(match kind {
        k if k == Kind::Create as u8 => Event::Create,
        k if k == Kind::Write as u8 && path.extension() == Some(OsStr::new("mark")) => {
            Event::Mark(payload.to_vec())
        }
        k if k == Kind::Write as u8 => Event::Write { offset: position, data: payload.to_vec() },
        k if k == Kind::Truncate as u8 => Event::Truncate { len: position },
        k if k == Kind::SyncStart as u8 => Event::SyncStart { number: position },
        k if k == Kind::SyncEnd as u8 => Event::SyncEnd { number: position },
        k if k == Kind::SyncFail as u8 => Event::SyncFail { number: position },
        k if k == Kind::Unlink as u8 => Event::Unlink,
        k if k == Kind::Rename as u8 => Event::Rename { to: PathBuf::from(OsStr::from_bytes(payload)) },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::header;

    fn bytes(kind: Kind, path: &str, position: u64, payload: &[u8]) -> Vec<u8> {
        let mut record = header(kind, path.len() as u16, position, payload.len() as u32).to_vec();
        record.extend_from_slice(path.as_bytes());
        record.extend_from_slice(payload);
        record
    }

    #[test]
    fn records_come_back_as_they_were_written() {
        let all =
            [bytes(Kind::Write, "/d/f", 4096, b"data"), bytes(Kind::Write, "/d/acks.mark", 0, b"7")].concat();
        let records = parse(&all).expect("two records");
        assert_eq!(records[0].path, Path::new("/d/f"));
        assert_eq!(records[0].event, Event::Write { offset: 4096, data: b"data".to_vec() });
        assert_eq!(records[1].event, Event::Mark(b"7".to_vec()));
    }

    #[test]
    fn a_record_cut_off_is_left_out_and_garbage_is_named() {
        let mut all = bytes(Kind::Create, "/d/f", 0, b"");
        let whole = all.len();
        all.extend(bytes(Kind::Write, "/d/f", 0, b"data"));
        for cut in whole..all.len() {
            assert_eq!(parse(&all[..cut]).expect("a prefix").len(), 1, "cut at {cut}");
        }
        all[whole] = 99;
        assert!(matches!(parse(&all), Err(Error::Malformed(at)) if at == whole));
    }
}
