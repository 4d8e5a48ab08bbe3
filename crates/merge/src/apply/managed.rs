//! metadata.managedFields: who owns what, decoded.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::time::Time;
use crate::{
    fields::{FieldSet, FieldsError},
    go,
};

/// How a manager came to own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply: what the manager leaves out next time is given up.
    Apply,
    /// By any other write.
    Update,
}

/// What makes two writes the same manager's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ManagerId {
    /// The fieldManager.
    pub manager: String,
    /// How it writes.
    pub operation: Operation,
    /// The version it writes; empty for appliers, who stay the same manager when they move to a new one.
    pub api_version: String,
    /// The subresource it writes through, or empty.
    pub subresource: String,
}

/// What a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The fields.
    pub fields: FieldSet,
    /// The version whose fields these are.
    pub api_version: String,
    /// When the manager last changed something; unknown for one that never did.
    pub time: Option<Time>,
}

/// The managers of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Managed {
    /// What each owns.
    pub managers: BTreeMap<ManagerId, Owned>,
}

/// Why managedFields could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManagedFieldsError {
    /// Not a list of entries.
    #[error("expected a list of objects")]
    NotEntries,
    /// A member of an entry has the wrong type.
    #[error("{0} must be a string")]
    NotAString(&'static str),
    /// Neither Apply nor Update.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// No apiVersion.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// No fieldsType.
    #[error("missing fieldsType in managed fields entry {0}")]
    MissingFieldsType(usize),
    /// Another fieldsType than FieldsV1.
    #[error("invalid fieldsType {} in managed fields entry {index}", go::quote(.fields_type))]
    FieldsType {
        /// Which entry.
        index: usize,
        /// What it said.
        fields_type: String,
    },
    /// A time that is none.
    #[error("time must be RFC 3339")]
    Time,
    /// A broken set.
    #[error("error decoding set: {0}")]
    Fields(#[from] FieldsError),
}

const CAP: usize = 10;
const OLD_UPDATES: &str = "ancient-changes";

impl Managed {
    /// Reads metadata.managedFields. Null is an empty list.
    pub fn decode(entries: &Value) -> Result<Self, ManagedFieldsError> {
        let entries = match entries {
            Value::Null => return Ok(Self::default()),
            Value::Array(entries) => entries,
            _ => return Err(ManagedFieldsError::NotEntries),
        };
        let managers = entries.iter().enumerate().map(|(index, entry)| decode_entry(index, entry));
        Ok(Self { managers: managers.collect::<Result<_, _>>()? })
    }

    /// The entries in upstream's order: appliers first, then by time, manager, version and subresource.
    /// `None` if there are none: an object without managers has no managedFields.
    pub fn encode(&self) -> Option<Value> {
        let mut entries: Vec<_> = self.managers.iter().collect();
        entries.sort_by_key(|&(id, owned)| {
            (id.operation, seconds(owned), &id.manager, &owned.api_version, &id.subresource)
        });
        (!entries.is_empty())
            .then(|| entries.into_iter().map(|(id, owned)| encode_entry(id, owned)).collect())
    }

    /// Merges the oldest updaters of each version into one until there are few enough, so that a stream of
    /// managers with ever new names cannot grow an object.
    pub(super) fn cap(&mut self) {
        let updaters = self.managers.iter().filter(|(id, _)| id.operation == Operation::Update);
        let mut updaters: Vec<_> = updaters.map(|(id, owned)| (seconds(owned), id.clone())).collect();
        updaters.sort();
        let mut excess = updaters.len().saturating_sub(CAP);
        let mut first_of_version: BTreeMap<String, ManagerId> = BTreeMap::new();
        for (_, id) in updaters {
            if excess == 0 {
                return;
            }
            let Some(version) = self.managers.get(&id).map(|owned| owned.api_version.clone()) else {
                continue;
            };
            match first_of_version.get(&version) {
                None => drop(first_of_version.insert(version, id)),
                Some(first) => {
                    self.merge_into_bucket(first, &id, version.clone());
                    excess -= 1;
                }
            }
        }
    }

    fn merge_into_bucket(&mut self, first: &ManagerId, id: &ManagerId, api_version: String) {
        let bucket = ManagerId {
            manager: OLD_UPDATES.to_owned(),
            operation: Operation::Update,
            api_version,
            subresource: String::new(),
        };
        // The bucket of earlier merges may itself be the one whose turn it is.
        let (kept, merged) = if *id == bucket { (id, first) } else { (first, id) };
        let kept = if self.managers.contains_key(&bucket) { &bucket } else { kept };
        let (Some(mut owned), Some(merged)) = (self.managers.remove(kept), self.managers.remove(merged))
        else {
            return;
        };
        owned.fields = owned.fields.union(&merged.fields);
        owned.time = owned.time.max(merged.time);
        self.managers.insert(bucket, owned);
    }
}

fn seconds(owned: &Owned) -> i64 {
    owned.time.map_or(0, |time| time.unix)
}

fn decode_entry(index: usize, entry: &Value) -> Result<(ManagerId, Owned), ManagedFieldsError> {
    let entry = entry.as_object().ok_or(ManagedFieldsError::NotEntries)?;
    let operation = match text(entry, "operation")? {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err(ManagedFieldsError::Operation),
    };
    let api_version = text(entry, "apiVersion")?.to_owned();
    if api_version.is_empty() {
        return Err(ManagedFieldsError::ApiVersion);
    }
    match text(entry, "fieldsType")? {
        "FieldsV1" => {}
        "" => return Err(ManagedFieldsError::MissingFieldsType(index)),
        other => return Err(ManagedFieldsError::FieldsType { index, fields_type: other.to_owned() }),
    }
    let time = match text(entry, "time")? {
        "" => None,
        time => Some(Time::parse(time).ok_or(ManagedFieldsError::Time)?),
    };
    let id = ManagerId {
        manager: text(entry, "manager")?.to_owned(),
        operation,
        api_version: if operation == Operation::Apply { String::new() } else { api_version.clone() },
        subresource: text(entry, "subresource")?.to_owned(),
    };
    let fields = entry.get("fieldsV1").map_or_else(|| Ok(FieldSet::new()), FieldSet::decode)?;
    Ok((id, Owned { fields, api_version, time }))
}

/// A string member; empty if absent.
fn text<'a>(entry: &'a Map<String, Value>, name: &'static str) -> Result<&'a str, ManagedFieldsError> {
    match entry.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(ManagedFieldsError::NotAString(name)),
    }
}

fn encode_entry(id: &ManagerId, owned: &Owned) -> Value {
    let mut entry = Map::new();
    let mut set = |name: &str, text: &str| {
        if !text.is_empty() {
            entry.insert(name.to_owned(), text.into());
        }
    };
    set("manager", &id.manager);
    set("subresource", &id.subresource);
    set("time", &owned.time.map(|time| time.to_string()).unwrap_or_default());
    let operation = if id.operation == Operation::Apply { "Apply" } else { "Update" };
    entry.insert("operation".to_owned(), operation.into());
    entry.insert("apiVersion".to_owned(), json!(owned.api_version));
    entry.insert("fieldsType".to_owned(), "FieldsV1".into());
    entry.insert("fieldsV1".to_owned(), owned.fields.to_value());
    Value::Object(entry)
}
