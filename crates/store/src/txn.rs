use std::{collections::HashSet, time::Duration};

use bytes::Bytes;

use crate::{Error, Revision, check_key};

/// The keys and values of one transaction may have at most so many bytes together: etcd's default
/// limit of a request, kept by every engine so that what fits in one fits in all.
pub const MAX_REQUEST_BYTES: usize = 1536 * 1024;

/// What must hold for a transaction to be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compare {
    /// The key looked at.
    pub key: Bytes,
    /// What must hold for it.
    pub condition: Condition,
}

/// A condition on one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// The key was last put at this revision.
    ModRevision(Revision),
    /// The key exists since this revision.
    CreateRevision(Revision),
    /// The key does not exist.
    Absent,
}

impl Compare {
    /// `key` was last put at `revision`.
    pub fn mod_revision(key: impl Into<Bytes>, revision: Revision) -> Self {
        Self { key: key.into(), condition: Condition::ModRevision(revision) }
    }

    /// `key` exists since `revision`: nobody deleted it in between.
    pub fn create_revision(key: impl Into<Bytes>, revision: Revision) -> Self {
        Self { key: key.into(), condition: Condition::CreateRevision(revision) }
    }

    /// `key` does not exist.
    pub fn absent(key: impl Into<Bytes>) -> Self {
        Self { key: key.into(), condition: Condition::Absent }
    }
}

/// One write of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Creates the key or replaces its value, and its time to live with it.
    Put {
        /// The key.
        key: Bytes,
        /// Its new value.
        value: Bytes,
        /// When set, the key is deleted some time after this much time has passed, never before. How
        /// much later depends on the engine and is seconds for short times, at most 5 % for long ones.
        ttl: Option<Duration>,
    },
    /// Deletes the key if it exists.
    Delete {
        /// The key.
        key: Bytes,
    },
}

impl Write {
    /// The key written.
    pub fn key(&self) -> &Bytes {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }

    fn value_len(&self) -> usize {
        match self {
            Self::Put { value, .. } => value.len(),
            Self::Delete { .. } => 0,
        }
    }
}

/// A transaction: all comparisons hold and all writes happen, or nothing happens.
///
/// The number of comparisons and writes is bounded by [`MAX_REQUEST_BYTES`]; an etcd is started with a
/// bound of its own on top, 128 unless `--max-txn-ops` says otherwise.
///
/// ```
/// use concord_store::{Compare, Txn};
/// // Replaces a value only if nobody else did so since revision 7.
/// let txn = Txn::new().compare(Compare::mod_revision("k", 7)).put("k", "v").read_on_failure("k");
/// assert!(txn.validate().is_ok());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Txn {
    /// What must hold.
    pub compares: Vec<Compare>,
    /// What then happens, to a different key each.
    pub writes: Vec<Write>,
    /// The keys whose current values [`Error::CompareFailed`] shall bring.
    pub reads_on_failure: Vec<Bytes>,
    /// Whether what it puts with a time to live may be refreshed, see [`crate::Store::refresh`]. Other keys may share one
    /// time to live, where that is cheaper.
    pub refreshable: bool,
    /// Whether it may wait a moment for others of which that is true as well, and take one revision together with them, where
    /// that is cheaper. Each is still decided by its own comparisons, as if they came one after the other.
    pub together: bool,
}

impl Txn {
    /// A transaction without effect.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a comparison.
    #[must_use]
    pub fn compare(mut self, compare: Compare) -> Self {
        self.compares.push(compare);
        self
    }

    /// Adds a put of a key that lives until it is deleted.
    #[must_use]
    pub fn put(mut self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        self.writes.push(Write::Put { key: key.into(), value: value.into(), ttl: None });
        self
    }

    /// Adds a put of a key that expires, see [`Write::Put`].
    #[must_use]
    pub fn put_with_ttl(mut self, key: impl Into<Bytes>, value: impl Into<Bytes>, ttl: Duration) -> Self {
        self.writes.push(Write::Put { key: key.into(), value: value.into(), ttl: Some(ttl) });
        self
    }

    /// Lets what is put with a time to live be refreshed.
    #[must_use]
    pub fn refreshable(mut self) -> Self {
        self.refreshable = true;
        self
    }

    /// Lets it take one revision together with others, see [`Txn::together`].
    #[must_use]
    pub fn together(mut self) -> Self {
        self.together = true;
        self
    }

    /// Adds a delete.
    #[must_use]
    pub fn delete(mut self, key: impl Into<Bytes>) -> Self {
        self.writes.push(Write::Delete { key: key.into() });
        self
    }

    /// Asks for the current value of `key` in case a comparison fails.
    #[must_use]
    pub fn read_on_failure(mut self, key: impl Into<Bytes>) -> Self {
        self.reads_on_failure.push(key.into());
        self
    }

    /// The bytes of all keys and values.
    pub fn size(&self) -> usize {
        let compares: usize = self.compares.iter().map(|c| c.key.len()).sum();
        let writes: usize = self.writes.iter().map(|w| w.key().len() + w.value_len()).sum();
        let reads: usize = self.reads_on_failure.iter().map(Bytes::len).sum();
        compares + writes + reads
    }

    /// Checks what no engine accepts. Engines call this first.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for an empty key, a key written twice, a comparison with revision 0 or a
    /// time to live of zero; [`Error::TooLarge`] for a key or a request beyond the limits.
    pub fn validate(&self) -> Result<(), Error> {
        let size = self.size();
        if size > MAX_REQUEST_BYTES {
            return Err(Error::TooLarge { what: "the request (bytes)", size, limit: MAX_REQUEST_BYTES });
        }
        self.reads_on_failure.iter().try_for_each(|key| check_key(key))?;
        self.compares.iter().try_for_each(Compare::validate)?;
        let mut written = HashSet::with_capacity(self.writes.len());
        for write in &self.writes {
            check_key(write.key())?;
            if !written.insert(write.key()) {
                return Err(Error::invalid("a key is written twice in one transaction"));
            }
            if matches!(write, Write::Put { ttl: Some(Duration::ZERO), .. }) {
                return Err(Error::invalid("a time to live must be longer than zero"));
            }
        }
        Ok(())
    }
}

impl Compare {
    fn validate(&self) -> Result<(), Error> {
        match self.condition {
            Condition::ModRevision(0) | Condition::CreateRevision(0) => {
                Err(Error::invalid("0 is not a revision, compare with absence instead"))
            }
            _ => check_key(&self.key),
        }
    }
}

/// The answer to a transaction that was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The revision of the commit, or the current one if the transaction changed nothing.
    pub revision: Revision,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(txn: &Txn, complaint: &str) {
        let error = txn.validate().expect_err(complaint);
        assert!(error.to_string().contains(complaint), "{error} should mention {complaint:?}");
    }

    #[test]
    fn what_no_engine_accepts_is_named() {
        check(&Txn::new().put("", "v"), "key is empty");
        check(&Txn::new().read_on_failure(""), "key is empty");
        check(&Txn::new().compare(Compare::absent("")), "key is empty");
        check(&Txn::new().put("k", "v").delete("k"), "written twice");
        check(&Txn::new().compare(Compare::mod_revision("k", 0)), "not a revision");
        check(&Txn::new().put_with_ttl("k", "v", Duration::ZERO), "longer than zero");
        check(&Txn::new().put("k", vec![0; 2 << 20]), "too large");
        check(&Txn::new().delete(vec![b'k'; 8192]), "too large");
    }

    #[test]
    fn a_request_may_be_as_large_as_the_limit() {
        let fits = Txn::new().put("k", vec![0; MAX_REQUEST_BYTES - 1]);
        assert!(fits.validate().is_ok());
        check(&fits.read_on_failure("r"), "too large");
    }
}
