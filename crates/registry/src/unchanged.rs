use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use concord_store::Revision;

/// How many objects are remembered, of all resources together: 2 MiB, in which a place may be taken over by another.
const PLACES: usize = 1 << 18;

static TABLE: LazyLock<Box<[AtomicU64]>> = LazyLock::new(|| (0..PLACES).map(|_| AtomicU64::new(0)).collect());
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Which objects that are older than the definition of a resource were found to be what it makes of them: they are passed
/// on as they are stored from then on. Without this a definition that changes, or of which nobody knows any more since
/// when it has been what it is, would make all older objects slow to read for ever.
#[derive(Debug)]
pub(crate) struct Unchanged {
    /// No other resource has it, so nothing is ever to be forgotten.
    id: u64,
}

impl Default for Unchanged {
    fn default() -> Self {
        Self { id: NEXT.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Unchanged {
    pub(crate) fn has(&self, value: &Bytes, revision: Revision) -> bool {
        let (place, print) = self.place(value, revision);
        place.load(Ordering::Relaxed) == print
    }

    pub(crate) fn add(&self, value: &Bytes, revision: Revision) {
        let (place, print) = self.place(value, revision);
        place.store(print, Ordering::Relaxed);
    }

    fn place(&self, value: &Bytes, revision: Revision) -> (&'static AtomicU64, u64) {
        /// Objects begin with their metadata: those that were written together differ there.
        const BEGIN: usize = 512;
        let mut hasher = DefaultHasher::new();
        (self.id, revision, value.len()).hash(&mut hasher);
        value[..value.len().min(BEGIN)].hash(&mut hasher);
        // An empty place is nobody's.
        let print = hasher.finish().max(1);
        #[allow(clippy::cast_possible_truncation, reason = "any of its bits will do")]
        let place = print as usize % PLACES;
        (&TABLE[place], print)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_remembered_of_one_resource_and_revision() {
        let (one, other) = (Unchanged::default(), Unchanged::default());
        let (value, another) = (Bytes::from_static(b"{\"a\":1}"), Bytes::from_static(b"{\"a\":2}"));
        one.add(&value, 7);
        assert!(one.has(&value, 7));
        assert!(!one.has(&value, 8) && !one.has(&another, 7) && !other.has(&value, 7));
    }
}
