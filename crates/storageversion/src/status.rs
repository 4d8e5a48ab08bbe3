//! The status of a StorageVersion: its wire form, and the part of it that follows from the entries.

use serde_json::{Map, Value, json};

/// What one server says about a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry {
    /// Who says it.
    pub api_server_id: String,
    /// The version it writes objects in: `v1` or `group/version`.
    pub encoding_version: String,
    /// The versions it can read.
    pub decodable_versions: Vec<String>,
    /// The versions it serves.
    pub served_versions: Vec<String>,
    /// What it encrypts objects with. Upstream's entries have no place for it: it stands in [`ENCRYPTION_ANNOTATION`].
    pub keys: Keys,
}

/// What a server encrypts the objects of a resource with, in the words of a stored value with a tag of the key, or nothing for
/// objects that are stored as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Keys {
    /// What it writes with.
    pub seals_with: String,
    /// What it can read, in the order in which it tries; empty if it knows of no encryption.
    pub opens: Vec<String>,
}

/// The annotation of a StorageVersion that says what each server encrypts with: a JSON object by server ID.
pub const ENCRYPTION_ANNOTATION: &str = "storagemigration.concord.dev/encryption";

/// A condition, of the API's own kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condition {
    /// `AllEncodingVersionsEqual` is the only one there is.
    pub kind: String,
    /// `True` or `False`.
    pub status: String,
    /// The generation it was derived from.
    pub observed_generation: i64,
    /// When its status, or the common version, became what it is; RFC 3339.
    pub last_transition_time: Option<String>,
    /// Why, for machines.
    pub reason: String,
    /// Why, for people.
    pub message: String,
}

/// The status of a StorageVersion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// One entry for each server.
    pub storage_versions: Vec<Entry>,
    /// The version that all entries have; absent if there is none.
    pub common_encoding_version: Option<String>,
    /// What follows from the entries, for `kubectl wait`.
    pub conditions: Vec<Condition>,
}

/// The condition that says whether all servers write one version.
const ALL_EQUAL: &str = "AllEncodingVersionsEqual";

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value, name: &str) -> Vec<String> {
    let items = value[name].as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

impl Entry {
    /// Reads an entry; what is not there, or of another type, reads as empty.
    pub fn read(value: &Value) -> Self {
        Self {
            api_server_id: text(value, "apiServerID"),
            encoding_version: text(value, "encodingVersion"),
            decodable_versions: texts(value, "decodableVersions"),
            served_versions: texts(value, "servedVersions"),
            keys: Keys::default(),
        }
    }

    fn value(&self) -> Value {
        let mut value = Map::new();
        let mut set = |name: &str, text: Value, empty: bool| {
            if !empty {
                value.insert(name.to_owned(), text);
            }
        };
        set("apiServerID", self.api_server_id.as_str().into(), self.api_server_id.is_empty());
        set("encodingVersion", self.encoding_version.as_str().into(), self.encoding_version.is_empty());
        set("decodableVersions", self.decodable_versions.clone().into(), self.decodable_versions.is_empty());
        set("servedVersions", self.served_versions.clone().into(), self.served_versions.is_empty());
        Value::Object(value)
    }
}

impl Keys {
    fn read(value: &Value) -> Self {
        Self { seals_with: text(value, "sealsWith"), opens: texts(value, "opens") }
    }
}

/// What the annotation of an object says.
fn encryption(object: &Map<String, Value>) -> Value {
    let annotations = object.get("metadata").map(|metadata| &metadata["annotations"]);
    let said = annotations.and_then(|all| all[ENCRYPTION_ANNOTATION].as_str());
    said.and_then(|said| serde_json::from_str(said).ok()).unwrap_or_default()
}

/// What [`ENCRYPTION_ANNOTATION`] has to say about entries; `None` if nobody knows of any encryption.
pub fn encryption_annotation(entries: &[Entry]) -> Option<String> {
    let knows = entries.iter().filter(|entry| entry.keys != Keys::default());
    let said: Map<String, Value> = knows
        .map(|Entry { api_server_id, keys, .. }| {
            let keys = json!({"sealsWith": keys.seals_with, "opens": keys.opens});
            (api_server_id.clone(), keys)
        })
        .collect();
    (!said.is_empty()).then(|| Value::Object(said).to_string())
}

impl Condition {
    fn read(value: &Value) -> Self {
        Self {
            kind: text(value, "type"),
            status: text(value, "status"),
            observed_generation: value["observedGeneration"].as_i64().unwrap_or_default(),
            last_transition_time: value["lastTransitionTime"].as_str().map(ToOwned::to_owned),
            reason: text(value, "reason"),
            message: text(value, "message"),
        }
    }

    fn value(&self) -> Value {
        let mut value = json!({
            "type": self.kind, "status": self.status, "lastTransitionTime": self.last_transition_time,
            "reason": self.reason, "message": self.message,
        });
        if self.observed_generation != 0 {
            value["observedGeneration"] = self.observed_generation.into();
        }
        value
    }
}

impl Status {
    /// Reads the status of an object.
    pub fn of(object: &Map<String, Value>) -> Self {
        let Some(status) = object.get("status") else { return Self::default() };
        let items = |name: &str| status[name].as_array().into_iter().flatten();
        let keys = encryption(object);
        let entry = |value: &Value| {
            let entry = Entry::read(value);
            Entry { keys: Keys::read(&keys[&entry.api_server_id]), ..entry }
        };
        Self {
            storage_versions: items("storageVersions").map(entry).collect(),
            common_encoding_version: status["commonEncodingVersion"].as_str().map(ToOwned::to_owned),
            conditions: items("conditions").map(Condition::read).collect(),
        }
    }

    /// As it stands on the wire: what is empty is left out.
    pub fn value(&self) -> Value {
        let mut value = Map::new();
        if !self.storage_versions.is_empty() {
            let entries: Vec<Value> = self.storage_versions.iter().map(Entry::value).collect();
            value.insert("storageVersions".to_owned(), entries.into());
        }
        if let Some(common) = &self.common_encoding_version {
            value.insert("commonEncodingVersion".to_owned(), common.as_str().into());
        }
        if !self.conditions.is_empty() {
            let conditions: Vec<Value> = self.conditions.iter().map(Condition::value).collect();
            value.insert("conditions".to_owned(), conditions.into());
        }
        Value::Object(value)
    }
}

/// The version that all entries have; `None` if they differ, or if there are none.
pub fn common_encoding_version(entries: &[Entry]) -> Option<&str> {
    let (first, rest) = entries.split_first()?;
    let common = first.encoding_version.as_str();
    rest.iter().all(|entry| entry.encoding_version == common).then_some(common)
}

/// The status with these entries: the common version and the condition follow from them.
///
/// The time of the condition moves if its status changes, or if the common version changes from one to another while the
/// status stays `True`: whoever waits for a migration must see that.
pub fn derive(before: &Status, entries: Vec<Entry>, generation: i64, now: &str) -> Status {
    let common = common_encoding_version(&entries).map(ToOwned::to_owned);
    let (status, reason, message) = match common {
        Some(_) => ("True", "CommonEncodingVersionSet", "Common encoding version set"),
        None => ("False", "CommonEncodingVersionUnset", "Common encoding version unset"),
    };
    let another = match (&before.common_encoding_version, &common) {
        (Some(before), Some(now)) => before != now,
        _ => false,
    };
    let mut conditions = before.conditions.clone();
    let at = conditions.iter().position(|condition| condition.kind == ALL_EQUAL);
    let at = at.unwrap_or_else(|| {
        conditions.push(Condition { kind: ALL_EQUAL.to_owned(), ..Condition::default() });
        conditions.len() - 1
    });
    let condition = &mut conditions[at];
    if condition.status != status || another {
        status.clone_into(&mut condition.status);
        condition.last_transition_time = Some(now.to_owned());
    }
    condition.observed_generation = generation;
    reason.clone_into(&mut condition.reason);
    message.clone_into(&mut condition.message);
    Status { storage_versions: entries, common_encoding_version: common, conditions }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, version: &str) -> Entry {
        Entry {
            api_server_id: id.to_owned(),
            encoding_version: version.to_owned(),
            decodable_versions: vec![version.to_owned()],
            served_versions: vec![version.to_owned()],
            keys: Keys::default(),
        }
    }

    #[test]
    fn what_is_encrypted_stands_in_an_annotation() {
        let keys = Keys {
            seals_with: "aescbc:v1:k2".to_owned(),
            opens: vec!["aescbc:v1:k2".to_owned(), String::new()],
        };
        let entries = [Entry { keys, ..entry("a", "v1") }, entry("b", "v1")];
        let status = derive(&Status::default(), entries.to_vec(), 0, "t");
        let annotation = encryption_annotation(&entries).expect("one of them encrypts");
        let object = json!({"metadata": {"annotations": {ENCRYPTION_ANNOTATION: annotation}}, "status": status.value()});
        let read = Status::of(object.as_object().expect("an object"));
        assert_eq!(read.storage_versions, entries);
        assert_eq!(encryption_annotation(&entries[1..]), None);
        let damaged =
            json!({"metadata": {"annotations": {ENCRYPTION_ANNOTATION: "{"}}, "status": status.value()});
        let read = Status::of(damaged.as_object().expect("an object"));
        assert_eq!(read.storage_versions[0].keys, Keys::default());
    }

    #[test]
    fn the_status_follows_from_the_entries() {
        let (a1, b1, b2, a2) = (entry("a", "v1"), entry("b", "v1"), entry("b", "v2"), entry("a", "v2"));
        let mut status = Status::default();
        // What is written, what the common version is then, and when the condition changed.
        for (now, entries, common, condition, time) in [
            ("t1", vec![a1.clone()], Some("v1"), "True", "t1"),
            ("t2", vec![a1.clone(), b1], Some("v1"), "True", "t1"),
            ("t3", vec![a1, b2.clone()], None, "False", "t3"),
            ("t4", vec![a2.clone(), b2.clone()], Some("v2"), "True", "t4"),
            ("t5", vec![entry("a", "v3")], Some("v3"), "True", "t5"),
            ("t6", vec![], None, "False", "t6"),
        ] {
            status = derive(&status, entries, 0, now);
            assert_eq!(status.common_encoding_version.as_deref(), common, "{now}");
            assert_eq!(status.conditions.len(), 1, "{now}");
            let now_is = &status.conditions[0];
            assert_eq!(
                (now_is.status.as_str(), now_is.last_transition_time.as_deref()),
                (condition, Some(time))
            );
        }
        assert_eq!(status.conditions[0].reason, "CommonEncodingVersionUnset");
    }

    #[test]
    fn conditions_of_others_stay() {
        let other = Condition { kind: "Other".to_owned(), ..Condition::default() };
        let before = Status { conditions: vec![other.clone()], ..Status::default() };
        let after = derive(&before, vec![entry("a", "v1")], 3, "t");
        assert_eq!((after.conditions.len(), &after.conditions[0]), (2, &other));
        assert_eq!(after.conditions[1].observed_generation, 3);
    }

    #[test]
    fn the_wire_form_is_upstreams() {
        let status = derive(&Status::default(), vec![entry("a", "apps/v1")], 0, "2026-01-01T00:00:00Z");
        let wire = json!({
            "storageVersions": [{"apiServerID": "a", "encodingVersion": "apps/v1",
                "decodableVersions": ["apps/v1"], "servedVersions": ["apps/v1"]}],
            "commonEncodingVersion": "apps/v1",
            "conditions": [{"type": "AllEncodingVersionsEqual", "status": "True",
                "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "CommonEncodingVersionSet",
                "message": "Common encoding version set"}],
        });
        assert_eq!(status.value(), wire);
        let object = Map::from_iter([("status".to_owned(), wire)]);
        assert_eq!(Status::of(&object), status);
        assert_eq!(Status::default().value(), json!({}));
        assert_eq!(Status::of(&Map::new()), Status::default());
    }
}
