//! Reads a log afterwards and proves that every server of a fleet kept to what it had said.

use std::collections::{BTreeMap, BTreeSet};

use concord_storageversion::{Status, common_encoding_version, object_name};
use concord_store::{Change, Commit, KeyValue, Revision};
use serde_json::{Map, Value};

/// What the keys of migrations begin with.
const MIGRATIONS: &str = "/registry/storageversionmigrations/";

/// The annotation that says who wrote an object, see [`stamp`].
pub const WRITER: &str = "fleet.concord.dev/writer";

/// What a client writes into [`WRITER`] with the `count`th of its changes: which process of which server it asks, by what
/// the server's identity lease says who holds it.
pub fn stamp(id: &str, holder: &str, count: usize) -> String {
    format!("{id} {holder} {count}")
}

/// Replays a log from its beginning, revision by revision.
///
/// At every commit of an object: a server that had an identity lease had published its version for its resource, and where all
/// entries had one version, it is that one. If the commit brought another [`stamp`], it is that very server that had
/// published it, and its lease was held by that very process. If the name of a new object begins with the ID of a server and
/// `--`, it is that server. Who only kept what was stamped before, as a migrator does, may be any server. What is published
/// in a commit holds for the commit itself.
///
/// A migration that succeeded was right at some moment after it was asked for: everything that was stored of its resource
/// had one version.
pub struct Auditor {
    /// What the keys of a resource begin with, and the name of its StorageVersion.
    resources: Vec<(String, String)>,
    versions: BTreeMap<String, Status>,
    /// Who holds the lease of which server.
    leases: BTreeMap<String, String>,
    /// The last stamp of every object.
    stamps: BTreeMap<String, String>,
    /// What is stored, by the name of the StorageVersion.
    stored: BTreeMap<String, Stored>,
    /// When everything that was stored of a resource last had one version.
    uniform: BTreeMap<String, Revision>,
    succeeded: BTreeSet<String>,
    checked: usize,
    stamped: usize,
}

/// Who wrote an object, as far as that is known.
struct Writer {
    id: Option<String>,
    holder: Option<String>,
}

impl Auditor {
    /// For objects of these resources: what comes after `/registry/`, and the name of the StorageVersion.
    pub fn new(resources: &[(&str, &str)]) -> Self {
        let place = |(place, name): &(&str, &str)| (format!("/registry/{place}/"), (*name).to_owned());
        Self {
            resources: resources.iter().map(place).collect(),
            versions: BTreeMap::new(),
            leases: BTreeMap::new(),
            stamps: BTreeMap::new(),
            stored: BTreeMap::new(),
            uniform: BTreeMap::new(),
            succeeded: BTreeSet::new(),
            checked: 0,
            stamped: 0,
        }
    }

    /// How many objects were looked at.
    pub fn checked(&self) -> usize {
        self.checked
    }

    /// How many of them said which process wrote them.
    pub fn stamped(&self) -> usize {
        self.stamped
    }

    /// How many migrations succeeded.
    pub fn succeeded(&self) -> usize {
        self.succeeded.len()
    }

    /// Looks at the next commit.
    ///
    /// # Errors
    ///
    /// Who broke which promise.
    pub fn commit(&mut self, commit: &Commit) -> Result<(), String> {
        // Nobody may rely on a lease that goes away in the same commit.
        let mut held: BTreeSet<String> = self.leases.keys().cloned().collect();
        commit.changes.iter().try_for_each(|change| self.learn(change))?;
        held.extend(self.leases.keys().cloned());
        commit.changes.iter().try_for_each(|change| match change {
            Change::Put(entry) => self.check(entry, commit.revision, &held),
            Change::Delete { key } => {
                self.stamps.remove(&*String::from_utf8_lossy(key));
                Ok(())
            }
        })?;
        for (name, _) in self.stored.iter().filter(|(_, stored)| stored.counts.len() < 2) {
            self.uniform.insert(name.clone(), commit.revision);
        }
        commit.changes.iter().try_for_each(|change| self.judge(change))
    }

    /// A migration that succeeded has to be right.
    fn judge(&mut self, change: &Change) -> Result<(), String> {
        let Change::Put(entry) = change else { return Ok(()) };
        let key = String::from_utf8_lossy(&entry.key).into_owned();
        if !key.starts_with(MIGRATIONS) {
            return Ok(());
        }
        let migration = object(entry)?;
        let of = |path: &str| Value::Object(migration.clone()).pointer(path).cloned().unwrap_or_default();
        let text = |path: &str| of(path).as_str().unwrap_or_default().to_owned();
        let conditions = of("/status/conditions");
        let mut conditions = conditions.as_array().into_iter().flatten();
        if !conditions.any(|known| known["type"] == "Succeeded" && known["status"] == "True") {
            return Ok(());
        }
        let name = object_name(&text("/spec/resource/group"), &text("/spec/resource/resource"));
        let uniform = self.uniform.get(&name).copied().unwrap_or(entry.create_revision);
        if uniform < entry.create_revision {
            return Err(format!("{key} at {}: there were several versions all the time", entry.mod_revision));
        }
        self.succeeded.insert(key);
        Ok(())
    }

    fn learn(&mut self, change: &Change) -> Result<(), String> {
        let key = String::from_utf8_lossy(change.key()).into_owned();
        if let Some(id) = key.strip_prefix("/registry/leases/kube-system/") {
            match change {
                Change::Put(entry) => drop(self.leases.insert(id.to_owned(), holder(&object(entry)?))),
                Change::Delete { .. } => drop(self.leases.remove(id)),
            }
        }
        self.keep(&key, change)?;
        let Some(name) = key.strip_prefix("/registry/storageversions/") else { return Ok(()) };
        let Change::Put(entry) = change else {
            self.versions.remove(name);
            return Ok(());
        };
        let status = Status::of(&object(entry)?);
        let common = common_encoding_version(&status.storage_versions);
        if status.common_encoding_version.as_deref() != common {
            return Err(format!("{name} at {}: {status:?} contradicts itself", entry.mod_revision));
        }
        self.versions.insert(name.to_owned(), status);
        Ok(())
    }

    /// Takes note of the version that something is stored in.
    fn keep(&mut self, key: &str, change: &Change) -> Result<(), String> {
        let resource = self.resources.iter().find(|(prefix, _)| key.starts_with(prefix.as_str()));
        let Some((_, name)) = resource else { return Ok(()) };
        let stored = self.stored.entry(name.clone()).or_default();
        let version = match change {
            Change::Put(entry) => Some(version(&object(entry)?)),
            Change::Delete { .. } => None,
        };
        stored.set(key, version);
        Ok(())
    }

    fn check(&mut self, entry: &KeyValue, revision: Revision, held: &BTreeSet<String>) -> Result<(), String> {
        let key = String::from_utf8_lossy(&entry.key).into_owned();
        let resource = self.resources.iter().find(|(prefix, _)| key.starts_with(prefix.as_str()));
        let Some((_, name)) = resource else { return Ok(()) };
        let object = object(entry)?;
        let version = version(&object);
        let place = format!("{key} at {revision}, in {version}");
        let status = self.versions.get(name).ok_or_else(|| format!("{place}: nobody had said anything"))?;
        let writer = writer(&self.stamps, &key, entry, &object);
        let says = status.storage_versions.iter().any(|entry| {
            entry.encoding_version == version
                && writer
                    .id
                    .as_ref()
                    .map_or_else(|| held.contains(&entry.api_server_id), |id| *id == entry.api_server_id)
        });
        if !says {
            return Err(format!(
                "{place}: {} had said {status:?}",
                writer.id.as_deref().unwrap_or("nobody alive")
            ));
        }
        self.identified(&writer, held).map_err(|complaint| format!("{place}: {complaint}"))?;
        if status.common_encoding_version.as_deref().is_some_and(|common| common != version) {
            return Err(format!("{place}: all had agreed on {:?}", status.common_encoding_version));
        }
        self.checked += 1;
        self.stamped += usize::from(writer.holder.is_some());
        if let Some(stamp) = stamp_of(&object) {
            self.stamps.insert(key, stamp.to_owned());
        }
        Ok(())
    }

    /// Whoever wrote was who it said, and nobody else was meanwhile.
    fn identified(&self, writer: &Writer, held: &BTreeSet<String>) -> Result<(), String> {
        let Some(id) = &writer.id else { return Ok(()) };
        if !held.contains(id) {
            return Err(format!("{id} had no identity"));
        }
        // Not in the commit itself either: no commit of an object takes or gives back an identity.
        match (&writer.holder, self.leases.get(id)) {
            (Some(holder), Some(now)) if holder != now => {
                Err(format!("{id} was {now} by then, not {holder}"))
            }
            (Some(holder), None) => Err(format!("{id} was {holder} no longer")),
            _ => Ok(()),
        }
    }
}

/// Who wrote this, which may be a migrator at any server if it kept the stamp that was there.
fn writer(
    stamps: &BTreeMap<String, String>,
    key: &str,
    entry: &KeyValue,
    object: &Map<String, Value>,
) -> Writer {
    let new = stamp_of(object).filter(|stamp| stamps.get(key).map(String::as_str) != Some(*stamp));
    let mut words = new.into_iter().flat_map(|stamp| stamp.split(' ')).map(ToOwned::to_owned);
    if let (id @ Some(_), holder @ Some(_)) = (words.next(), words.next()) {
        return Writer { id, holder };
    }
    let is_new = entry.create_revision == entry.mod_revision;
    let named = key.rsplit('/').next().and_then(|name| name.split_once("--")).filter(|_| is_new);
    Writer { id: named.map(|(id, _)| id.to_owned()), holder: None }
}

fn stamp_of(object: &Map<String, Value>) -> Option<&str> {
    object.get("metadata")?.get("annotations")?.get(WRITER)?.as_str()
}

fn holder(lease: &Map<String, Value>) -> String {
    let holder = lease.get("spec").and_then(|spec| spec.get("holderIdentity")).and_then(Value::as_str);
    holder.unwrap_or_default().to_owned()
}

/// In which versions the objects of a resource are stored.
#[derive(Default)]
struct Stored {
    versions: BTreeMap<String, String>,
    counts: BTreeMap<String, usize>,
}

impl Stored {
    fn set(&mut self, key: &str, version: Option<String>) {
        let before = match &version {
            Some(version) => self.versions.insert(key.to_owned(), version.clone()),
            None => self.versions.remove(key),
        };
        if let Some(before) = before {
            let left = self.counts.get(&before).copied().unwrap_or_default().saturating_sub(1);
            match left {
                0 => drop(self.counts.remove(&before)),
                left => drop(self.counts.insert(before, left)),
            }
        }
        if let Some(version) = version {
            *self.counts.entry(version).or_default() += 1;
        }
    }
}

fn version(object: &Map<String, Value>) -> String {
    object.get("apiVersion").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn object(entry: &KeyValue) -> Result<Map<String, Value>, String> {
    let key = || String::from_utf8_lossy(&entry.key).into_owned();
    serde_json::from_slice(&entry.value).map_err(|error| format!("{}: {error}", key()))
}

#[cfg(test)]
mod tests;
