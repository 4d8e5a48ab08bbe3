//! fjall: a log-structured tree from id to the encoded row, a journal, one sync per batch.

use std::path::Path;

use anyhow::Result;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use crate::engine::{Copy, Engine, Row};

pub struct Fjall {
    database: Database,
    log: Keyspace,
}

impl Fjall {
    pub fn open(dir: &Path) -> Result<Self> {
        let database = Database::builder(dir.join("store.fjall")).open()?;
        let log = database.keyspace("log", KeyspaceCreateOptions::default)?;
        Ok(Self { database, log })
    }
}

impl Engine for Fjall {
    fn append(&mut self, rows: &[Row]) -> Result<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for row in rows {
            batch.insert(&self.log, row.id.to_be_bytes(), row.encode());
        }
        batch.commit()?;
        Ok(())
    }

    fn scan(&mut self, each: &mut dyn FnMut(Row)) -> Result<()> {
        for entry in self.log.iter() {
            let (id, bytes) = entry.into_inner()?;
            each(Row::decode(u64::from_be_bytes(id.as_ref().try_into()?), &bytes)?);
        }
        Ok(())
    }

    fn delete(&mut self, ids: &[u64]) -> Result<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for id in ids {
            batch.remove(&self.log, id.to_be_bytes());
        }
        batch.commit()?;
        Ok(())
    }

    fn reclaim(&mut self) -> Result<()> {
        self.log.rotate_memtable_and_wait()?;
        self.log.major_compact()?;
        Ok(())
    }

    fn backup(&self) -> Copy {
        let from = self.log.clone();
        let snapshot = self.database.snapshot();
        Box::new(move |to| {
            use fjall::Readable as _;
            let database = Database::builder(to.join("backup.fjall")).open()?;
            let log = database.keyspace("log", KeyspaceCreateOptions::default)?;
            for entry in snapshot.iter(&from) {
                let (id, bytes) = entry.into_inner()?;
                log.insert(id, bytes)?;
            }
            database.persist(PersistMode::SyncAll)?;
            Ok(())
        })
    }
}
