use bytes::Bytes;

use crate::{Error, KeyRange, KeyValue, Revision};

/// Which page of which range to read, and when in history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// The keys wanted.
    pub range: KeyRange,
    /// The revision to read at; the latest if `None`.
    pub revision: Option<Revision>,
    /// At most so many entries; at least one.
    pub limit: usize,
}

impl Scan {
    /// The first `limit` entries of `range` at the latest revision.
    pub fn new(range: KeyRange, limit: usize) -> Self {
        Self { range, revision: None, limit }
    }

    /// The single key `key` at the latest revision.
    pub fn key(key: impl Into<Bytes>) -> Self {
        Self::new(KeyRange::key(key), 1)
    }

    /// The same page at an older revision.
    #[must_use]
    pub fn at(mut self, revision: Revision) -> Self {
        self.revision = Some(revision);
        self
    }

    /// Checks what no engine can answer.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a limit or a revision of zero, [`Error::TooLarge`] for a start key no
    /// key can reach.
    pub fn validate(&self) -> Result<(), Error> {
        if self.limit == 0 {
            return Err(Error::invalid("the limit of a scan must be at least 1"));
        }
        if self.revision == Some(0) {
            return Err(Error::invalid("0 is not a revision"));
        }
        if self.range.start.is_empty() { Ok(()) } else { crate::check_key(&self.range.start) }
    }
}

/// One page of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanPage {
    /// The revision the page was read at. Asking for the next page [`Scan::at`] this revision makes
    /// the pages parts of one consistent read.
    pub revision: Revision,
    /// The entries, in key order.
    pub entries: Vec<KeyValue>,
    /// Where the next page starts, if there is one. A page may then be shorter than the limit: engines also
    /// bound its bytes.
    pub resume: Option<Bytes>,
}
