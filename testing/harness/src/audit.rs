//! Reads a log afterwards and proves that every server of a fleet kept to what it had said.

use std::collections::{BTreeMap, BTreeSet};

use concord_storageversion::{Status, common_encoding_version};
use concord_store::{Change, Commit, KeyValue, Revision};
use serde_json::{Map, Value};

/// Replays a log from its beginning, revision by revision.
///
/// At every commit of an object: some server had published its version for its resource; where all entries had one
/// version, it is that one; and if the name of the object begins with the ID of a server and `--`, it is that server that
/// had published it, and its identity lease existed. What is published in a commit holds for the commit itself.
pub struct Auditor {
    /// What the keys of a resource begin with, and the name of its StorageVersion.
    resources: Vec<(String, String)>,
    versions: BTreeMap<String, Status>,
    leases: BTreeSet<String>,
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
            checked: 0,
        }
    }

    /// How many objects were looked at.
    pub fn checked(&self) -> usize {
        self.checked
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
        })
    }

    fn learn(&mut self, change: &Change) -> Result<(), String> {
        let key = String::from_utf8_lossy(change.key()).into_owned();
        if let Some(id) = key.strip_prefix("/registry/leases/kube-system/") {
            match change {
                Change::Put(_) => drop(self.leases.insert(id.to_owned())),
                Change::Delete { .. } => drop(self.leases.remove(id)),
            }
        }
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

    fn check(&mut self, entry: &KeyValue, revision: Revision, held: &BTreeSet<String>) -> Result<(), String> {
        let key = String::from_utf8_lossy(&entry.key).into_owned();
        let resource = self.resources.iter().find(|(prefix, _)| key.starts_with(prefix.as_str()));
        let Some((_, name)) = resource else { return Ok(()) };
        let object = object(entry)?;
        let version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let place = format!("{key} at {revision}, in {version}");
        let status = self.versions.get(name).ok_or_else(|| format!("{place}: nobody had said anything"))?;
        let named = key.rsplit('/').next().and_then(|name| name.split_once("--"));
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
}
