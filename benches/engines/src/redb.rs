//! redb: one table from id to the encoded row, a copy-on-write tree, one sync per transaction.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, Result};
use redb::{Database, Durability, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use crate::engine::{Copy, Engine, Row};

const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");

pub struct Redb {
    database: Arc<Database>,
    two_phase: bool,
}

impl Redb {
    pub fn open(dir: &Path, two_phase: bool) -> Result<Self> {
        let database = Database::builder().set_cache_size(64 << 20).create(dir.join("store.redb"))?;
        let redb = Self { database: Arc::new(database), two_phase };
        redb.write(|_| Ok(()))?;
        Ok(redb)
    }

    fn write(&self, change: impl FnOnce(&mut redb::Table<'_, u64, &[u8]>) -> Result<()>) -> Result<()> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        transaction.set_two_phase_commit(self.two_phase);
        change(&mut transaction.open_table(LOG)?)?;
        transaction.commit()?;
        Ok(())
    }
}

impl Engine for Redb {
    fn append(&mut self, rows: &[Row]) -> Result<()> {
        self.write(|table| {
            for row in rows {
                table.insert(row.id, row.encode().as_slice())?;
            }
            Ok(())
        })
    }

    fn scan(&mut self, each: &mut dyn FnMut(Row)) -> Result<()> {
        let transaction = self.database.begin_read()?;
        for entry in transaction.open_table(LOG)?.iter()? {
            let (id, bytes) = entry?;
            each(Row::decode(id.value(), bytes.value())?);
        }
        Ok(())
    }

    fn delete(&mut self, ids: &[u64]) -> Result<()> {
        self.write(|table| {
            for id in ids {
                table.remove(id)?;
            }
            Ok(())
        })
    }

    fn reclaim(&mut self) -> Result<()> {
        let database = Arc::get_mut(&mut self.database).context("a backup is running")?;
        while database.compact()? {}
        Ok(())
    }

    fn backup(&self) -> Copy {
        let from = Arc::clone(&self.database);
        Box::new(move |to| {
            let from = from.begin_read()?;
            let to = Database::create(to.join("backup.redb"))?.begin_write()?;
            {
                let mut table = to.open_table(LOG)?;
                for entry in from.open_table(LOG)?.iter()? {
                    let (id, bytes) = entry?;
                    table.insert(id.value(), bytes.value())?;
                }
            }
            to.commit()?;
            Ok(())
        })
    }
}
