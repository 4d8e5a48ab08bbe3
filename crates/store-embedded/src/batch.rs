//! Decides what a batch of requests does, before anything is written.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use concord_store::{Committed, CompareFailed, Condition, Error, KeyValue, Revision, Txn, Write};

use crate::{
    index::{Index, Live},
    row::{Expiry, Row},
};

/// Evaluates transactions one after another as if each were committed before the next, though they
/// share one sync. Its answers are true only once the batch is durable.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    index: &'a Index,
    /// Keys this batch has written; `None` is deleted.
    written: HashMap<Bytes, Option<Live>>,
    rows: Vec<Row>,
    revision: Revision,
    next_row: i64,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(index: &'a Index, next_row: i64) -> Self {
        Self { index, written: HashMap::new(), rows: Vec::new(), revision: index.revision, next_row }
    }

    pub(crate) fn transact(&mut self, txn: &Txn) -> Result<Committed, Error> {
        if !txn.compares.iter().all(|compare| self.holds(&compare.key, compare.condition)) {
            return Err(self.compare_failed(txn));
        }
        let revision = self.revision + 1;
        for write in &txn.writes {
            match write {
                Write::Put { key, value, ttl } => self.put(revision, key, value, *ttl),
                Write::Delete { key } => self.delete(revision, key),
            }
        }
        Ok(Committed { revision: self.revision })
    }

    /// Deletes a key whose time has come, unless it was written since.
    pub(crate) fn expire(&mut self, key: &Bytes, mod_revision: Revision) {
        if self.live(key).is_some_and(|live| live.mod_revision == mod_revision) {
            self.delete(self.revision + 1, key);
        }
    }

    /// Whether a key has what was put at that revision.
    pub(crate) fn is_at(&self, key: &Bytes, mod_revision: Revision) -> bool {
        self.holds(key, Condition::ModRevision(mod_revision))
    }

    /// What must become durable, in order.
    pub(crate) fn into_rows(self) -> Vec<Row> {
        self.rows
    }

    fn live(&self, key: &Bytes) -> Option<&Live> {
        match self.written.get(key) {
            Some(written) => written.as_ref(),
            None => self.index.live(key),
        }
    }

    fn entry(&self, key: &Bytes) -> Option<KeyValue> {
        self.live(key).map(|live| live.entry(key.clone()))
    }

    fn holds(&self, key: &Bytes, condition: Condition) -> bool {
        match (condition, self.live(key)) {
            (Condition::Absent, live) => live.is_none(),
            (Condition::ModRevision(revision), Some(live)) => live.mod_revision == revision,
            (Condition::CreateRevision(revision), Some(live)) => live.create_revision == revision,
            (_, None) => false,
        }
    }

    fn compare_failed(&self, txn: &Txn) -> Error {
        let current = txn.reads_on_failure.iter().map(|key| self.entry(key)).collect();
        Error::CompareFailed(Box::new(CompareFailed { revision: self.revision, current }))
    }

    fn put(&mut self, revision: Revision, key: &Bytes, value: &Bytes, ttl: Option<Duration>) {
        // What is kept must not pin the buffer a request arrived in.
        let (key, value) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
        let create_revision = self.live(&key).map_or(revision, |live| live.create_revision);
        let expiry = ttl.map(Expiry::after);
        self.write(Row { id: 0, revision, key, value: Some(value), create_revision, expiry });
    }

    fn delete(&mut self, revision: Revision, key: &Bytes) {
        if self.live(key).is_some() {
            let key = Bytes::copy_from_slice(key);
            self.write(Row { id: 0, revision, key, value: None, create_revision: revision, expiry: None });
        }
    }

    fn write(&mut self, mut row: Row) {
        row.id = self.next_row;
        self.next_row += 1;
        self.revision = row.revision;
        self.written.insert(row.key.clone(), Live::from_row(&row));
        self.rows.push(row);
    }
}

#[cfg(test)]
mod tests {
    use concord_store::Compare;

    use super::*;

    #[test]
    fn a_transaction_sees_what_the_batch_did_before_it() {
        let index = Index::default();
        let mut batch = Batch::new(&index, 7);
        let create = Txn::new().compare(Compare::absent("k")).put("k", "1");
        assert_eq!(batch.transact(&create), Ok(Committed { revision: 2 }));
        let Err(Error::CompareFailed(failed)) = batch.transact(&create.read_on_failure("k")) else {
            panic!("k exists now")
        };
        assert_eq!((failed.revision, failed.current[0].as_ref().map(|kv| kv.mod_revision)), (2, Some(2)));
        let update = Txn::new().compare(Compare::mod_revision("k", 2)).put("k", "2").put("l", "1");
        assert_eq!(batch.transact(&update), Ok(Committed { revision: 3 }));
        batch.expire(&"k".into(), 2);
        batch.expire(&"l".into(), 3);
        assert_eq!(batch.transact(&Txn::new().delete("l")), Ok(Committed { revision: 4 }));
        let rows: Vec<_> = batch.into_rows().iter().map(|r| (r.id, r.revision, r.create_revision)).collect();
        assert_eq!(rows, [(7, 2, 2), (8, 3, 2), (9, 3, 3), (10, 4, 4)]);
    }
}
