//! Reads a log afterwards and proves that every server of a fleet kept to what it had said.

use std::collections::{BTreeMap, BTreeSet};

use concord_storageversion::{Status, common_encoding_version, object_name};
use concord_store::{Change, Commit, KeyValue, Revision};
use serde_json::{Map, Value};

/// What the keys of migrations begin with.
const MIGRATIONS: &str = "/registry/storageversionmigrations/";

/// Replays a log from its beginning, revision by revision.
///
/// At every commit of an object: some server had published its version for its resource; where all entries had one
/// version, it is that one; and if the name of a new object begins with the ID of a server and `--`, it is that server that
/// had published it, and its identity lease existed. What is published in a commit holds for the commit itself.
///
/// A migration that succeeded was right at some moment after it was asked for: everything that was stored of its resource
/// had one version.
pub struct Auditor {
    /// What the keys of a resource begin with, and the name of its StorageVersion.
    resources: Vec<(String, String)>,
    versions: BTreeMap<String, Status>,
    leases: BTreeSet<String>,
    /// What is stored, by the name of the StorageVersion.
    stored: BTreeMap<String, Stored>,
    /// When everything that was stored of a resource last had one version.
    uniform: BTreeMap<String, Revision>,
    succeeded: BTreeSet<String>,
    checked: usize,
}

impl Auditor {
    /// For objects of these resources: what comes after `/registry/`, and the name of the StorageVersion.
    pub fn new(resources: &[(&str, &str)]) -> Self {
        let place = |(place, name): &(&str, &str)| (format!("/registry/{place}/"), (*name).to_owned());
        Self {
            resources: resources.iter().map(place).collect(),
            versions: BTreeMap::new(),
            leases: BTreeSet::new(),
            stored: BTreeMap::new(),
            uniform: BTreeMap::new(),
            succeeded: BTreeSet::new(),
            checked: 0,
        }
    }

    /// How many objects were looked at.
    pub fn checked(&self) -> usize {
        self.checked
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
        let before = self.leases.clone();
        commit.changes.iter().try_for_each(|change| self.learn(change))?;
        let held: BTreeSet<String> = self.leases.union(&before).cloned().collect();
        commit.changes.iter().try_for_each(|change| match change {
            Change::Put(entry) => self.check(entry, commit.revision, &held),
            Change::Delete { .. } => Ok(()),
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
                Change::Put(_) => drop(self.leases.insert(id.to_owned())),
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
        // Who made it wrote it; who changes it may be a migrator, at any server.
        let is_new = entry.create_revision == entry.mod_revision;
        let named = key.rsplit('/').next().and_then(|name| name.split_once("--")).filter(|_| is_new);
        let writer = named.map(|(writer, _)| writer);
        let says = status.storage_versions.iter().any(|entry| {
            entry.encoding_version == version && writer.is_none_or(|writer| writer == entry.api_server_id)
        });
        if !says {
            return Err(format!("{place}: {} had said {status:?}", writer.unwrap_or("nobody")));
        }
        if let Some(writer) = writer.filter(|writer| !held.contains(*writer)) {
            return Err(format!("{place}: {writer} had no identity"));
        }
        if status.common_encoding_version.as_deref().is_some_and(|common| common != version) {
            return Err(format!("{place}: all had agreed on {:?}", status.common_encoding_version));
        }
        self.checked += 1;
        Ok(())
    }
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
mod tests {
    use serde_json::json;

    use super::*;

    fn put(key: &str, value: &Value, revision: Revision) -> Change {
        Change::Put(KeyValue {
            key: key.to_owned().into(),
            value: value.to_string().into(),
            create_revision: revision,
            mod_revision: revision,
        })
    }

    #[test]
    fn whoever_writes_what_it_did_not_say_is_found() {
        let says = |version: &str| {
            json!({"status": {"commonEncodingVersion": version, "storageVersions": [
                {"apiServerID": "a", "encodingVersion": version, "decodableVersions": [version]}]}})
        };
        let lease = put("/registry/leases/kube-system/a", &json!({}), 2);
        let version = put("/registry/storageversions/g.foos", &says("g/v1"), 2);
        let thing = |name: &str, version: &str| {
            put(&format!("/registry/g/foos/ns/{name}"), &json!({"apiVersion": version}), 3)
        };
        for (changes, complaint) in [
            (vec![lease.clone(), version.clone()], ""),
            (vec![lease.clone()], "nobody had said anything"),
            (vec![version.clone()], "a had no identity"),
            (vec![lease.clone(), put("/registry/storageversions/g.foos", &says("g/v2"), 2)], "a had said"),
        ] {
            let mut auditor = Auditor::new(&[("g/foos", "g.foos")]);
            auditor.commit(&Commit { revision: 2, changes }).expect("nothing was written");
            let checked = auditor.commit(&Commit { revision: 3, changes: vec![thing("a--1", "g/v1")] });
            let found = checked.err().unwrap_or_default();
            assert!(found.contains(complaint) && found.is_empty() == complaint.is_empty(), "{found}");
        }
        let mut auditor = Auditor::new(&[("g/foos", "g.foos")]);
        auditor.commit(&Commit { revision: 2, changes: vec![lease, version] }).expect("nothing was written");
        assert!(auditor.commit(&Commit { revision: 3, changes: vec![thing("b--1", "g/v1")] }).is_err());
    }
    #[test]
    fn a_migration_that_succeeded_too_early_is_found() {
        let says = json!({"status": {"storageVersions": [
            {"apiServerID": "a", "encodingVersion": "g/v1", "decodableVersions": ["g/v1"]},
            {"apiServerID": "b", "encodingVersion": "g/v2", "decodableVersions": ["g/v2"]}]}});
        let thing = |name: &str, version: &str, at| {
            put(&format!("/registry/g/foos/{name}"), &json!({"apiVersion": version}), at)
        };
        let done = json!({"spec": {"resource": {"group": "g", "resource": "foos"}},
            "status": {"conditions": [{"type": "Succeeded", "status": "True"}]}});
        for (rewritten, complaint) in [("g/v2", ""), ("g/v1", "several versions")] {
            let mut auditor = Auditor::new(&[("g/foos", "g.foos")]);
            let commits = [
                put("/registry/storageversions/g.foos", &says, 2),
                thing("x", "g/v1", 3),
                thing("y", "g/v2", 4),
                thing("x", rewritten, 5),
            ];
            for (change, revision) in commits.into_iter().zip(2..) {
                auditor.commit(&Commit { revision, changes: vec![change] }).expect("good");
            }
            let Change::Put(mut entry) = put(&format!("{MIGRATIONS}m"), &done, 6) else { unreachable!() };
            entry.create_revision = 5;
            let judged = auditor.commit(&Commit { revision: 6, changes: vec![Change::Put(entry)] });
            let found = judged.err().unwrap_or_default();
            assert!(found.contains(complaint) && found.is_empty() == complaint.is_empty(), "{found}");
            assert_eq!(auditor.succeeded(), usize::from(complaint.is_empty()));
        }
    }
}
