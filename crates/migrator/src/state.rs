//! What may be stored of each resource, kept where everybody can read it.
//!
//! It is what the StorageState of upstream's older migrator outside of the server was for: to know whether a migration is
//! needed without looking at every object. It is written after something was counted, and only if that changed; a migration
//! is decided and proved by counting, never by what stands here.

use std::collections::{BTreeMap, BTreeSet};

use concord_codec::{FieldValidation, PatchType};
use concord_meta::{GroupVersion, Status};
use concord_registry::{Object, ObjectName, Part, PatchRequest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Census, Row, progress::Counted, shared::Shared};

/// Where the ConfigMap is that says what may be stored.
pub const STATE_NAMESPACE: &str = "kube-system";
/// What it is called. It has a [`StorageState`] for each resource.
pub const STATE_NAME: &str = "concord-storage-state";

/// What may be stored of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageState {
    /// The form in which all servers wrote when it was counted.
    pub current: Row,
    /// What was found, besides what is written since.
    pub persisted: Vec<Counted>,
    /// The revision at which that was so.
    pub counted_at: u64,
}

impl StorageState {
    pub(crate) fn new(current: &Row, census: &Census) -> Self {
        let counted = |(row, objects): (&Row, &u64)| Counted { row: row.clone(), objects: *objects };
        Self {
            current: current.clone(),
            persisted: census.rows.iter().map(counted).collect(),
            counted_at: census.revision,
        }
    }

    /// Whether something is stored in another form than the one that was written when it was counted.
    pub fn is_migration_needed(&self) -> bool {
        self.persisted.iter().any(|counted| counted.row != self.current)
    }

    /// Whether the same forms may be stored. How many objects there are changes all the time, and is no news.
    fn says_the_same(&self, other: &Self) -> bool {
        let forms = |state: &Self| state.persisted.iter().map(|counted| counted.row.clone()).collect();
        let (mine, others): (Vec<Row>, Vec<Row>) = (forms(self), forms(other));
        self.current == other.current && mine == others
    }
}

/// What has to be changed about what is kept, so that it says this; and is about nothing but `stored`, if that is given.
fn changes(
    kept: &Object,
    states: &BTreeMap<String, StorageState>,
    stored: Option<&BTreeSet<String>>,
) -> serde_json::Map<String, Value> {
    let data = kept.get("data").and_then(Value::as_object).cloned().unwrap_or_default();
    let known = |name: &str| -> Option<StorageState> { serde_json::from_str(data.get(name)?.as_str()?).ok() };
    let is_news =
        |name: &str, state: &StorageState| !known(name).is_some_and(|known| known.says_the_same(state));
    let new = states.iter().filter(|(name, state)| is_news(name, state));
    let new = new.filter_map(|(name, state)| Some((name.clone(), serde_json::to_string(state).ok()?.into())));
    let gone = data.keys().filter(|name| stored.is_some_and(|stored| !stored.contains(*name)));
    new.chain(gone.map(|name| (name.clone(), Value::Null))).collect()
}

impl Shared {
    /// Keeps what may be stored, and forgets what is kept of anything but `stored`, if that is given. If that cannot be
    /// written, what is kept says more than is true until something is counted again.
    pub(crate) async fn keep(
        &self,
        states: &BTreeMap<String, StorageState>,
        stored: Option<&BTreeSet<String>>,
    ) {
        if let Err(error) = self.try_keep(states, stored).await {
            tracing::warn!(error = error.message, "What may be stored could not be written down.");
        }
    }

    async fn try_keep(
        &self,
        states: &BTreeMap<String, StorageState>,
        stored: Option<&BTreeSet<String>>,
    ) -> Result<(), Status> {
        let Some(maps) = self.config.resources.find(&GroupVersion::new("", "v1"), "configmaps") else {
            return Ok(());
        };
        let Some(storage) = maps.storage() else { return Ok(()) };
        let name = ObjectName { namespace: STATE_NAMESPACE, name: STATE_NAME };
        let read = self.registry().get(storage, name, concord_meta::options::ReadAt::MostRecent).await;
        let kept = match read {
            Err(status) if status.code == 404 => None,
            item => Some(maps.object(&item?)?),
        };
        let data = changes(kept.as_ref().unwrap_or(&Object::new()), states, stored);
        if data.is_empty() {
            return Ok(());
        }
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": STATE_NAME}, "data": data});
        let (body, Value::Object(object)) = (object.to_string(), object) else { return Ok(()) };
        if kept.is_none() {
            return self.registry().create(&self.context(), &maps, STATE_NAMESPACE, object).await.map(drop);
        }
        let request = PatchRequest {
            name,
            part: Part::Main,
            patch_type: PatchType::Merge,
            body: body.as_bytes(),
            force: false,
            validation: FieldValidation::Ignore,
        };
        Box::pin(self.registry().patch(&self.context(), &maps, request)).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(version: &str) -> Row {
        Row { version: version.to_owned(), encryption: String::new() }
    }

    fn state(current: &str, persisted: &[(&str, u64)], revision: u64) -> StorageState {
        let rows = persisted.iter().map(|(version, objects)| (row(version), *objects)).collect();
        StorageState::new(&row(current), &Census { rows, revision })
    }

    #[test]
    fn a_migration_is_needed_if_anything_else_is_stored() {
        for (state, expected) in [
            (state("v1", &[], 1), false),
            (state("v1", &[("v1", 3)], 1), false),
            (state("v2", &[("v1", 3)], 1), true),
            (state("v2", &[("v1", 1), ("v2", 3)], 1), true),
        ] {
            assert_eq!(state.is_migration_needed(), expected, "{state:?}");
            let text = serde_json::to_string(&state).expect("JSON");
            assert_eq!(serde_json::from_str::<StorageState>(&text).expect("the same"), state);
        }
    }

    #[test]
    fn only_what_is_new_is_written() {
        let text = |state: &StorageState| Value::from(serde_json::to_string(state).expect("JSON"));
        let before = state("v1", &[("v1", 3)], 1);
        let kept = json!({"data": {"a": text(&before), "b": "no state", "c": text(&before)}});
        let kept = kept.as_object().expect("an object");
        let new = state("v2", &[("v1", 3)], 2);
        let states = [("a", state("v1", &[("v1", 4)], 2)), ("b", before.clone()), ("d", new.clone())];
        let states = states.map(|(name, state)| (name.to_owned(), state)).into();
        let expected = json!({"b": text(&before), "d": text(&new)});
        assert_eq!(Value::Object(changes(kept, &states, None)), expected);
        let stored: BTreeSet<String> = ["a", "b", "d"].map(str::to_owned).into();
        let expected = json!({"b": text(&before), "c": null, "d": text(&new)});
        assert_eq!(Value::Object(changes(kept, &states, Some(&stored))), expected);
        assert!(changes(&Object::new(), &BTreeMap::new(), Some(&stored)).is_empty());
    }
}
