use std::sync::{
    OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use crate::Entry;

/// Entries that were unpacked for the readers of one snapshot of the past, which can lend them for as
/// long as it is held. That keeps reads of the past as plain as those of the present, which lend what
/// the snapshot has anyway.
#[derive(Debug, Default)]
pub(crate) struct Unpacked {
    len: AtomicUsize,
    /// The nth has room for 2 to the nth, so that what is lent never moves. All of them have more than
    /// fits into memory.
    shelves: [OnceLock<Shelf>; 32],
}

type Shelf = Box<[OnceLock<Entry>]>;

impl Unpacked {
    /// Keeps an entry, and lends it.
    pub(crate) fn lend(&self, entry: Entry) -> &Entry {
        let number = self.len.fetch_add(1, Ordering::Relaxed) + 1;
        let shelf = number.ilog2();
        let room = 1_usize << shelf;
        let places =
            self.shelves[shelf as usize].get_or_init(|| (0..room).map(|_| OnceLock::new()).collect());
        places[number - room].get_or_init(|| entry)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use concord_store::KeyValue;

    use super::*;

    #[test]
    fn what_is_lent_stays_where_it_is_whoever_else_comes() {
        let unpacked = Unpacked::default();
        let lend = |revision| {
            let entry =
                KeyValue { key: "k".into(), value: "v".into(), create_revision: 1, mod_revision: revision };
            unpacked.lend(Arc::new(entry))
        };
        let lent = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|nth| scope.spawn(move || (nth * 100..nth * 100 + 100).map(lend).collect()))
                .collect();
            threads
                .into_iter()
                .flat_map(|thread| -> Vec<&Entry> { thread.join().expect("no panic") })
                .collect::<Vec<_>>()
        });
        assert!(lent.iter().zip(0..).all(|(entry, revision)| entry.mod_revision == revision));
        assert_eq!(lent.len(), 400);
    }
}
