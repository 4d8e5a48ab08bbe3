//! What the two halves agree on: the words of the control file, the kinds of trace records and the
//! names of environment variables. Compiled into this crate and into the preloaded library.

/// Environment variable: the directory whose files are watched. Without it nothing is.
pub(crate) const ENV_DIR: &str = "CONCORD_FAULTFS_DIR";
/// Environment variable: the control file.
pub(crate) const ENV_CONTROL: &str = "CONCORD_FAULTFS_CONTROL";
/// Environment variable: the trace file.
pub(crate) const ENV_TRACE: &str = "CONCORD_FAULTFS_TRACE";

/// The words of the control file, native-endian `u64`s in this order. The first ones are set by the
/// test, the last ones are counted by the preloaded library.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub(crate) enum Word {
    /// Microseconds added to every sync.
    SyncDelayMicros,
    /// The errno of a failing sync.
    SyncErrno,
    /// Fail one sync in so many, at random; 1 is every sync, 0 none.
    SyncOneIn,
    /// Fail exactly the sync with this number, counted by [`Word::Syncs`]; 0 is none.
    SyncNth,
    /// The errno of a failing write.
    WriteErrno,
    /// Fail one write in so many, at random; 1 is every write, 0 none.
    WriteOneIn,
    /// Fail exactly the write with this number, counted by [`Word::Writes`]; 0 is none.
    WriteNth,
    /// Cut one write in so many short, at random.
    ShortOneIn,
    /// The seed of all random choices.
    Seed,
    /// Seconds that the wall clock is ahead; two's complement where it is behind.
    ClockOffsetSeconds,
    /// Writes and truncations seen.
    Writes,
    /// Syncs seen.
    Syncs,
    /// Writes failed or cut short.
    WriteFaults,
    /// Syncs failed.
    SyncFaults,
}

/// How many words there are.
pub(crate) const WORDS: usize = Word::SyncFaults as usize + 1;

/// The words that can be set from the environment alone, without a control file.
pub(crate) const ENV_WORDS: [(&str, Word); 10] = [
    ("CONCORD_FAULTFS_SYNC_DELAY_MICROS", Word::SyncDelayMicros),
    ("CONCORD_FAULTFS_SYNC_ERRNO", Word::SyncErrno),
    ("CONCORD_FAULTFS_SYNC_ONE_IN", Word::SyncOneIn),
    ("CONCORD_FAULTFS_SYNC_NTH", Word::SyncNth),
    ("CONCORD_FAULTFS_WRITE_ERRNO", Word::WriteErrno),
    ("CONCORD_FAULTFS_WRITE_ONE_IN", Word::WriteOneIn),
    ("CONCORD_FAULTFS_WRITE_NTH", Word::WriteNth),
    ("CONCORD_FAULTFS_SHORT_ONE_IN", Word::ShortOneIn),
    ("CONCORD_FAULTFS_SEED", Word::Seed),
    ("CONCORD_FAULTFS_CLOCK_OFFSET_SECONDS", Word::ClockOffsetSeconds),
];

/// What a trace record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A file was opened that may not have existed.
    Create = 1,
    /// Bytes were written.
    Write = 2,
    /// The length was set.
    Truncate = 3,
    /// A sync began; it covers every write recorded before.
    SyncStart = 4,
    /// The sync of that number succeeded.
    SyncEnd = 5,
    /// A name was removed.
    Unlink = 6,
    /// A name was replaced; the payload is the new name.
    Rename = 7,
    /// The sync of that number failed.
    SyncFail = 8,
}

/// A trace record begins with: kind (1 byte), length of the path (2), position (8), length of the
/// payload (4), all little-endian; then come path and payload. The position is the offset of a
/// write, the length set by a truncation, the number of a sync, and 0 otherwise.
pub(crate) const HEADER: usize = 15;

/// Packs a record's header.
pub(crate) const fn header(kind: Kind, path_len: u16, position: u64, payload_len: u32) -> [u8; HEADER] {
    let (l, p, n) = (path_len.to_le_bytes(), position.to_le_bytes(), payload_len.to_le_bytes());
    [kind as u8, l[0], l[1], p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], n[0], n[1], n[2], n[3]]
}
