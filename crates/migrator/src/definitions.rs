//! What is said in a CustomResourceDefinition about the migration of its objects.

use std::sync::Arc;

use concord_meta::{GroupResource, GroupVersion, Status, options::ReadAt};
use concord_registry::{Object, ObjectName, Part, Resource, UpdateRequest, metadata};
use serde_json::json;

use crate::{
    migration::{Condition, Transition, set},
    shared::{Shared, now},
};

const MIGRATING: &str = "StorageMigrating";
const TRIES: usize = 10;

/// How a migration ended, for its definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End<'a> {
    /// Everything is stored in this version.
    Succeeded(&'a str),
    /// Not everything is.
    Failed,
    /// It was taken back.
    Cancelled,
}

impl Shared {
    fn definitions(&self) -> Option<Arc<Resource>> {
        let version = GroupVersion::new("apiextensions.k8s.io", "v1");
        let found = self.config.resources.find(&version, "customresourcedefinitions");
        found.filter(|found| found.storage().is_some())
    }

    /// Says that a migration has begun. The generation of the definition then; `None` if there is none.
    pub(crate) async fn mark(
        &self,
        resource: &GroupResource,
        migration: &str,
    ) -> Result<Option<i64>, Status> {
        let message = format!("Migration {migration} is running");
        let condition = Condition { kind: MIGRATING, holds: true, reason: "MigrationRunning", message };
        self.edit(resource, |definition| told(definition, &condition)).await
    }

    /// Says that it has ended. What was stored earlier is forgotten only if everything has been proved to be stored in the
    /// version of today, and the definition is the one that it was proved for.
    pub(crate) async fn unmark(
        &self,
        resource: &GroupResource,
        generation: Option<i64>,
        end: End<'_>,
    ) -> Result<(), Status> {
        self.edit(resource, |definition| finish(definition, generation, end)).await.map(drop)
    }

    async fn edit(
        &self,
        resource: &GroupResource,
        change: impl Fn(&mut Object) -> bool,
    ) -> Result<Option<i64>, Status> {
        let Some(definitions) = self.definitions() else { return Ok(None) };
        let Some(storage) = definitions.storage() else { return Ok(None) };
        let name = format!("{}.{}", resource.resource, resource.group);
        let name = ObjectName { namespace: "", name: &name };
        let mut tries = 0;
        loop {
            let item = match self.registry().get(storage, name, ReadAt::MostRecent).await {
                Err(status) if status.code == 404 => return Ok(None),
                item => item?,
            };
            let mut object = definitions.object(&item)?;
            let generation = metadata(&object).generation();
            if !change(&mut object) {
                return Ok(Some(generation));
            }
            let request = UpdateRequest { name, part: Part::Sub("status"), object };
            match self.registry().update(&self.context(), &definitions, request).await {
                Err(status) if status.code == 409 && tries < TRIES => tries += 1,
                Err(status) if status.code == 404 => return Ok(None),
                written => return written.map(|_| Some(generation)),
            }
        }
    }

    /// The resources whose definitions say that they are being migrated.
    pub(crate) fn marked(&self) -> Vec<GroupResource> {
        let Some(definitions) = self.definitions() else { return Vec::new() };
        let Some(storage) = definitions.storage() else { return Vec::new() };
        let Ok(snapshot) = self.registry().replica().newest() else { return Vec::new() };
        let range = concord_store::KeyRange::prefix(storage.prefix.clone());
        let objects = snapshot.scan(&range).filter_map(|entry| definitions.object(&entry.into()).ok());
        let marked = objects.filter(|definition| {
            let status = definition.get("status").cloned().unwrap_or_default();
            let conditions = status["conditions"].as_array().into_iter().flatten();
            conditions.clone().any(|known| known["type"] == MIGRATING && known["status"] == "True")
        });
        marked
            .filter_map(|definition| {
                let spec = definition.get("spec")?;
                Some(GroupResource::new(spec["group"].as_str()?, spec["names"]["plural"].as_str()?))
            })
            .collect()
    }
}

/// Sets the condition. False if it is there already.
fn told(definition: &mut Object, condition: &Condition) -> bool {
    let generation = metadata(definition).generation();
    let status = definition.entry("status").or_insert_with(|| json!({}));
    let mut all = status["conditions"].as_array().cloned().unwrap_or_default();
    let now = now().to_string();
    let is_new = set(&mut all, condition, &Transition { member: "lastTransitionTime", now: &now });
    let mut is_observed = true;
    for known in all.iter_mut().filter(|known| known["type"] == MIGRATING) {
        is_observed = known["observedGeneration"] == generation;
        known["observedGeneration"] = generation.into();
    }
    status["conditions"] = all.into();
    is_new || !is_observed
}

/// Ends it in the definition. Its list of versions is only ever shortened to the one version that everything is stored in.
fn finish(definition: &mut Object, generation: Option<i64>, end: End<'_>) -> bool {
    let is_same = generation == Some(metadata(definition).generation());
    let stored = end_version(definition, end).filter(|_| is_same);
    let (reason, message) = match (end, &stored) {
        (End::Succeeded(_), Some(_)) => {
            ("MigrationSucceeded", "The migration has succeeded and the stored versions have been updated")
        }
        (End::Succeeded(_), None) => (
            "MigrationSucceeded",
            "The migration has succeeded but the stored versions have not been updated due to a generation mismatch",
        ),
        (End::Failed, _) => ("MigrationFailed", "The migration has failed"),
        (End::Cancelled, _) => ("MigrationCancelled", "The migration has been cancelled"),
    };
    let condition = Condition { kind: MIGRATING, holds: false, reason, message: message.to_owned() };
    let is_new = told(definition, &condition);
    let Some(stored) = stored else { return is_new };
    let status = definition.entry("status").or_insert_with(|| json!({}));
    let versions = json!([stored]);
    let is_shorter = status["storedVersions"] != versions;
    status["storedVersions"] = versions;
    is_new || is_shorter
}

/// The version that everything is stored in, if it is also the one that the definition stores objects in today.
fn end_version(definition: &Object, end: End<'_>) -> Option<String> {
    let End::Succeeded(version) = end else { return None };
    let versions = definition.get("spec")?.get("versions")?.as_array()?;
    let stored = versions.iter().find(|version| version["storage"] == true)?["name"].as_str()?;
    let name = version.rsplit_once('/').map_or(version, |(_, name)| name);
    (stored == name).then(|| stored.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn definition(storage: &str) -> Object {
        let version = |name: &str| json!({"name": name, "served": true, "storage": name == storage});
        let object = json!({
            "metadata": {"generation": 3},
            "spec": {"versions": [version("v1"), version("v2")]},
            "status": {"storedVersions": ["v1", "v2"], "conditions": []},
        });
        object.as_object().expect("an object").clone()
    }

    fn stored(definition: &Object) -> &Value {
        &definition["status"]["storedVersions"]
    }

    #[test]
    fn what_was_stored_is_forgotten_only_after_proof() {
        for (storage, generation, end, expected) in [
            ("v2", Some(3), End::Succeeded("g/v2"), json!(["v2"])),
            ("v2", Some(2), End::Succeeded("g/v2"), json!(["v1", "v2"])),
            ("v2", None, End::Succeeded("g/v2"), json!(["v1", "v2"])),
            ("v1", Some(3), End::Succeeded("g/v2"), json!(["v1", "v2"])),
            ("v2", Some(3), End::Failed, json!(["v1", "v2"])),
            ("v2", Some(3), End::Cancelled, json!(["v1", "v2"])),
        ] {
            let mut definition = definition(storage);
            assert!(finish(&mut definition, generation, end));
            assert_eq!(*stored(&definition), expected, "{storage} {generation:?} {end:?}");
            assert_eq!(definition["status"]["conditions"][0]["status"], "False");
            assert!(!finish(&mut definition, generation, end), "the second time changes nothing");
        }
    }

    #[test]
    fn a_beginning_changes_nothing_but_a_condition() {
        let mut definition = definition("v2");
        let message = "Migration m is running".to_owned();
        let condition = Condition { kind: MIGRATING, holds: true, reason: "MigrationRunning", message };
        assert!(told(&mut definition, &condition) && !told(&mut definition, &condition));
        assert_eq!(*stored(&definition), json!(["v1", "v2"]));
        assert_eq!(definition["status"]["conditions"][0]["observedGeneration"], 3);
    }
}
