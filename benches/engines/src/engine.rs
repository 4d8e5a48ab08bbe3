//! What Concord's embedded engine asks of the library below it, and no more.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::{fjall::Fjall, redb::Redb, sqlite::Sqlite};

/// One change of the log, as it stands in the file.
#[derive(Debug, Clone)]
pub struct Row {
    pub id: u64,
    pub revision: u64,
    pub kind: u8,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

impl Row {
    pub fn crc(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.id.to_le_bytes());
        hasher.update(&self.revision.to_le_bytes());
        hasher.update(&[self.kind]);
        hasher.update(&self.key);
        hasher.update(&self.value);
        hasher.finalize()
    }

    /// The row as one value, for engines without columns.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(17 + self.key.len() + self.value.len());
        bytes.extend_from_slice(&self.crc().to_le_bytes());
        bytes.extend_from_slice(&self.revision.to_le_bytes());
        bytes.push(self.kind);
        bytes.extend_from_slice(&(self.key.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.key);
        bytes.extend_from_slice(&self.value);
        bytes
    }

    pub fn decode(id: u64, bytes: &[u8]) -> Result<Self> {
        let cut = || format!("row {id} is cut off");
        let (crc, rest) = bytes.split_first_chunk().with_context(cut)?;
        let (revision, rest) = rest.split_first_chunk().with_context(cut)?;
        let (kind, rest) = rest.split_first().with_context(cut)?;
        let (key_len, rest) = rest.split_first_chunk().with_context(cut)?;
        let (key, value) = rest.split_at_checked(u32::from_le_bytes(*key_len) as usize).with_context(cut)?;
        let row = Self {
            id,
            revision: u64::from_le_bytes(*revision),
            kind: *kind,
            key: key.to_vec(),
            value: value.to_vec(),
        };
        row.check(u32::from_le_bytes(*crc))
    }

    pub fn check(self, crc: u32) -> Result<Self> {
        if self.crc() != crc {
            bail!("row {} fails its checksum", self.id);
        }
        Ok(self)
    }
}

/// Copies a consistent state into a directory, from another thread than the writer's.
pub type Copy = Box<dyn FnOnce(&Path) -> Result<()> + Send>;

/// An open engine, owned by one writer thread.
pub trait Engine: Send {
    /// Adds rows in one transaction. They are durable when this returns.
    fn append(&mut self, rows: &[Row]) -> Result<()>;
    /// Calls `each` with every row in the order of ids.
    fn scan(&mut self, each: &mut dyn FnMut(Row)) -> Result<()>;
    /// Deletes rows in one transaction, as compaction does chunk by chunk.
    fn delete(&mut self, ids: &[u64]) -> Result<()>;
    /// Gives free space back to the file system, as far as the engine can.
    fn reclaim(&mut self) -> Result<()>;
    /// What copies a consistent state to a new place while the writer goes on.
    fn backup(&self) -> Copy;
}

/// Opens the engine that `spec` names: `redb`, `redb:two_phase`, `fjall`, `sqlite` or
/// `sqlite:page_size=8192,…`, see [`crate::sqlite::Options`].
pub fn open(spec: &str, dir: &Path) -> Result<Box<dyn Engine>> {
    let (name, options) = spec.split_once(':').unwrap_or((spec, ""));
    Ok(match name {
        "sqlite" => Box::new(Sqlite::open(dir, &options.parse()?)?),
        "redb" => Box::new(Redb::open(dir, options == "two_phase")?),
        "fjall" => Box::new(Fjall::open(dir)?),
        _ => bail!("there is no engine {name:?}"),
    })
}

/// The bytes of all files in `dir`, as allocated.
pub fn size_on_disk(dir: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let mut total = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        total += if metadata.is_dir() { size_on_disk(&entry.path())? } else { metadata.blocks() * 512 };
    }
    Ok(total)
}
