use std::time::Duration;

use bytes::Bytes;
use concord_store::{Change, KeyValue, Revision};

/// One change as it stands in the file. Rows are numbered in the order they were written, so the
/// table is the log; all rows of a revision are written by one SQLite transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) id: i64,
    pub(crate) revision: Revision,
    pub(crate) key: Bytes,
    /// `None` is a deletion.
    pub(crate) value: Option<Bytes>,
    /// Since when the key exists; the row's own revision for a deletion.
    pub(crate) create_revision: Revision,
    pub(crate) expiry: Option<Expiry>,
}

/// When a key is to be deleted. Both numbers are kept: after a restart the key lives until
/// `at_unix_ms`, but never longer than `ttl` even if the clock was set back meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expiry {
    pub(crate) ttl: Duration,
    pub(crate) at_unix_ms: u64,
}

impl Row {
    /// Covers every column, the row's place included: a row that was moved, cut or altered in the
    /// file does not pass for one that was written.
    pub(crate) fn checksum(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        let (ttl_ms, at_ms) = self.expiry.map_or((0, 0), |e| (millis(e.ttl), e.at_unix_ms));
        let value_len = self.value.as_ref().map_or(u64::MAX, |value| value.len() as u64);
        let numbers = [
            self.id.cast_unsigned(),
            self.revision,
            self.create_revision,
            ttl_ms,
            at_ms,
            self.key.len() as u64,
            value_len,
        ];
        for number in numbers {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(&self.key);
        hasher.update(self.value.as_deref().unwrap_or_default());
        hasher.finalize()
    }

    pub(crate) fn change(&self) -> Change {
        match &self.value {
            Some(value) => Change::Put(KeyValue {
                key: self.key.clone(),
                value: value.clone(),
                create_revision: self.create_revision,
                mod_revision: self.revision,
            }),
            None => Change::Delete { key: self.key.clone() },
        }
    }

    /// Roughly what the row adds to the file.
    pub(crate) fn size(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, Bytes::len) + 48
    }
}

/// Milliseconds, as long as anyone will run this.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
