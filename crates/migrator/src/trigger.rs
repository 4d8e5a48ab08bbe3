//! Migrations that nobody has to ask for.

mod settled;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use concord_meta::{GroupResource, GroupVersion, Status};
use concord_registry::{Object, Resource, metadata};
use concord_store::{KeyRange, Revision};
use serde_json::{Value, json};

use self::settled::Settled;
use crate::{
    Census, Row, StorageState,
    agreement::Writers,
    census::{census, form},
    migration::{AUTOMATIC_ANNOTATION, Migration},
    shared::Shared,
};

/// How long to wait after a look at everything failed.
const RETRY: Duration = Duration::from_secs(5);

/// Looks at what is stored whenever the servers have agreed on another form for a while, and asks for a migration if there
/// is something to migrate. What is stored is counted: what was found is kept for whoever wants to know, and not believed.
pub(crate) struct Trigger {
    shared: Arc<Shared>,
}

/// The resources that are stored, by what their keys begin with.
type Stored = BTreeMap<Bytes, Arc<Resource>>;

/// What was found of each resource.
type Counted = BTreeMap<String, StorageState>;

/// A form that all servers write, and since when they do without a gap: in a gap somebody may have written another one.
type Form = (Row, Revision);

/// What was last seen of each resource.
#[derive(Default)]
struct Seen {
    /// The forms that everything is known to have been brought into, or to be about to be.
    handled: BTreeMap<Bytes, (Form, Settled)>,
    /// What the servers agreed on.
    before: BTreeMap<Bytes, Form>,
}

impl Trigger {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Goes on until it is dropped.
    pub(crate) async fn run(&self) {
        let Some(delay) = self.shared.config.automatic_after else { return };
        let mut changes = self.shared.changes();
        let mut seen = Seen::default();
        loop {
            tokio::time::sleep(delay).await;
            let (stored, agreed) = self.agreed();
            let is_waiting = self.look(&stored, &agreed, &mut seen).await;
            let is_settled = seen.before == agreed;
            seen.before = agreed;
            match &changes {
                _ if is_waiting => tokio::time::sleep(RETRY).await,
                _ if !is_settled => {}
                Some(_) => self.shared.servers_changed(&mut changes).await,
                // Without a fleet nobody tells what this server does.
                None => tokio::time::sleep(RETRY).await,
            }
        }
    }

    /// Looks at everything. True if something is to be looked at again soon.
    async fn look(&self, stored: &Stored, agreed: &BTreeMap<Bytes, Form>, seen: &mut Seen) -> bool {
        let (mut counted, mut is_waiting) = (Counted::new(), false);
        let Seen { handled, before } = seen;
        handled.retain(|prefix, _| stored.contains_key(prefix));
        for (prefix, form) in agreed {
            // Twice the same, a while apart: servers that come and go one after another have settled.
            let Some(resource) = stored.get(prefix).filter(|_| before.get(prefix) == Some(form)) else {
                continue;
            };
            let known = handled.get(prefix).filter(|(known, _)| known == form).map(|(_, settled)| *settled);
            if known.is_some_and(|settled| !self.is_over(resource, settled)) {
                continue;
            }
            match self.handle(resource, &form.0, known, &mut counted).await {
                Ok(Some(settled)) => drop(handled.insert(prefix.clone(), (form.clone(), settled))),
                Ok(None) => is_waiting = true,
                Err(error) => {
                    let resource = resource.group_resource();
                    tracing::warn!(%resource, error = error.message, "What is stored could not be looked at.");
                    is_waiting = true;
                }
            }
        }
        if !counted.is_empty() {
            let names = stored.values().map(|resource| resource.group_resource().to_string()).collect();
            self.shared.keep(&counted, Some(&names)).await;
        }
        is_waiting
    }

    /// What is stored, and in which form all servers write it.
    fn agreed(&self) -> (Stored, BTreeMap<Bytes, Form>) {
        let mut stored = Stored::new();
        for resource in self.shared.config.resources.all() {
            let Some(storage) = resource.storage() else { continue };
            let known = stored.entry(storage.prefix.clone()).or_insert_with(|| resource.clone());
            if resource.group_resource() < known.group_resource() {
                *known = resource.clone();
            }
        }
        let target =
            |(prefix, resource): (&Bytes, &Arc<Resource>)| match self.shared.writers(resource.storage()?) {
                Writers::Agree(agreed) => Some((prefix.clone(), (agreed.target, agreed.since))),
                Writers::Disagree(_) => None,
            };
        let agreed = stored.iter().filter_map(target).collect();
        (stored, agreed)
    }

    fn is_over(&self, resource: &Resource, settled: Settled) -> bool {
        let name = resource.group_resource();
        settled.is_over(Instant::now(), || self.generation(&name), || self.is_wanted(&name))
    }

    /// Asks for a migration if it is needed and wanted, and has not been asked for in vain. `None` if that is to be looked at
    /// again, since one is under way: it may be taken back.
    async fn handle(
        &self,
        resource: &Resource,
        target: &Row,
        known: Option<Settled>,
        counted: &mut Counted,
    ) -> Result<Option<Settled>, Status> {
        let name = resource.group_resource();
        let Some(storage) = resource.storage() else { return Ok(Some(Settled::Right)) };
        // Events go by themselves, and soon.
        if name.resource == "events" {
            return Ok(Some(Settled::Right));
        }
        // First: whoever changes the definition from now on is noticed.
        let asked = Settled::Asked { generation: self.generation(&name), at: Instant::now() };
        let of_resource = self.migrations(&name);
        if of_resource.iter().any(|migration| !migration.is_terminal() && !migration.orders.is_dry_run) {
            return Ok(None);
        }
        let state = self.state(&name, &storage.prefix, target).await?;
        let is_needed = state.is_migration_needed();
        counted.insert(name.to_string(), state);
        if !is_needed && !self.is_listed(&name, target) {
            return Ok(Some(Settled::Right));
        }
        if !self.is_wanted(&name) {
            tracing::info!(resource = %name, "Objects have another form than they would be written in; nobody wants them migrated.");
            return Ok(Some(Settled::Unwanted));
        }
        // If only the list is wrong by now, what was in the way is gone, and one more sets it right.
        if is_needed && known.is_some_and(|known| known.is_same_question(asked)) {
            return Ok(Some(asked));
        }
        self.ask(&name, target).await?;
        self.forget(&of_resource).await?;
        Ok(Some(asked))
    }

    /// Whether the definition says that objects may be stored in another version. Only a migration takes that back, also if
    /// there are no objects.
    fn is_listed(&self, name: &GroupResource, target: &Row) -> bool {
        self.definition(name).is_some_and(|definition| lists_another(&definition, target))
    }

    fn generation(&self, name: &GroupResource) -> Option<i64> {
        self.definition(name).map(|definition| metadata(&definition).generation())
    }

    fn definition(&self, name: &GroupResource) -> Option<Object> {
        let version = GroupVersion::new("apiextensions.k8s.io", "v1");
        self.object(&version, "customresourcedefinitions", &format!("{}.{}", name.resource, name.group))
    }

    /// What is stored. It is shown, whether or not anything comes of it.
    async fn state(
        &self,
        name: &GroupResource,
        prefix: &Bytes,
        target: &Row,
    ) -> Result<StorageState, Status> {
        let counted = self.count(prefix).await?;
        self.shared.config.metrics.migration().set_census(&name.to_string(), counted.shown());
        Ok(StorageState::new(target, &counted))
    }

    async fn count(&self, prefix: &Bytes) -> Result<Census, Status> {
        let registry = self.shared.registry();
        if let Some(keyring) = &self.shared.config.keyring {
            let counted = census(registry, Some(keyring), prefix).await;
            return counted.map_err(Status::internal_error);
        }
        // Nothing is encrypted here: what is stored is what this server has in memory.
        let snapshot =
            registry.replica().newest().map_err(|error| Status::service_unavailable(error.to_string()))?;
        let mut counted = Census { revision: snapshot.revision(), ..Census::default() };
        for entry in snapshot.scan(&KeyRange::prefix(prefix.clone())) {
            *counted.rows.entry(form(None, &entry.key, &entry.value)).or_default() += 1;
        }
        Ok(counted)
    }

    /// Whether neither the definition nor the StorageVersion says that it is not.
    fn is_wanted(&self, name: &GroupResource) -> bool {
        let group = if name.group.is_empty() { "core" } else { &name.group };
        let places = [
            (
                "apiextensions.k8s.io",
                "v1",
                "customresourcedefinitions",
                format!("{}.{}", name.resource, name.group),
            ),
            (
                "internal.apiserver.k8s.io",
                "v1alpha1",
                "storageversions",
                format!("{group}.{}", name.resource),
            ),
        ];
        let says_no = |(group, version, plural, name): &(&str, &str, &str, String)| {
            let object = self.object(&GroupVersion::new(*group, *version), plural, name);
            let annotations = object.and_then(|object| metadata(&object).get("annotations").cloned());
            annotations.is_some_and(|annotations| annotations[AUTOMATIC_ANNOTATION] == "false")
        };
        !places.iter().any(says_no)
    }

    /// An object of no namespace.
    fn object(&self, version: &GroupVersion, plural: &str, name: &str) -> Option<Object> {
        let resource = self.shared.config.resources.find(version, plural)?;
        let storage = resource.storage()?;
        let key = storage.key(concord_registry::ObjectName { namespace: "", name });
        let snapshot = self.shared.registry().replica().newest().ok()?;
        resource.object(&snapshot.get(&key)?.into()).ok()
    }

    fn migrations(&self, name: &GroupResource) -> Vec<Migration> {
        let migrations = &self.shared.migrations;
        let Some(storage) = migrations.storage() else { return Vec::new() };
        let Ok(snapshot) = self.shared.registry().replica().newest() else { return Vec::new() };
        let range = KeyRange::prefix(storage.prefix.clone());
        let objects = snapshot.scan(&range).filter_map(|entry| migrations.object(&entry.into()).ok());
        objects
            .map(|object| Migration::read(&object))
            .filter(|migration| migration.resource == *name)
            .collect()
    }

    async fn ask(&self, name: &GroupResource, target: &Row) -> Result<(), Status> {
        let migrations = &self.shared.migrations;
        let mut resource = json!({"group": name.group, "resource": name.resource});
        if migrations.version.version == "v1alpha1" {
            let version = target.version.rsplit('/').next().unwrap_or_default();
            resource["version"] = version.into();
        }
        let object = json!({
            "apiVersion": migrations.version.to_string(),
            "kind": migrations.names.kind,
            "metadata": {
                "generateName": format!("{name}-"),
                "annotations": {AUTOMATIC_ANNOTATION: "true"},
            },
            "spec": {"resource": resource},
        });
        let Value::Object(object) = object else { return Ok(()) };
        tracing::info!(resource = %name, %target, "Objects have another form than they would be written in; they are migrated.");
        let context = self.shared.context();
        self.shared.registry().create(&context, migrations, "", object).await.map(drop)
    }

    /// Removes earlier migrations that nobody asked for, so that they do not pile up.
    async fn forget(&self, migrations: &[Migration]) -> Result<(), Status> {
        let ended = migrations.iter().filter(|migration| migration.is_automatic && migration.is_terminal());
        let names: BTreeSet<&str> = ended.map(|migration| migration.name.as_str()).collect();
        let options = concord_meta::options::DeleteOptions::default();
        for name in names {
            let name = concord_registry::ObjectName { namespace: "", name };
            let context = self.shared.context();
            let deleted =
                self.shared.registry().delete(&context, &self.shared.migrations, name, &options).await;
            deleted.map(drop).or_else(|status| if status.code == 404 { Ok(()) } else { Err(status) })?;
        }
        Ok(())
    }
}

/// Whether a definition lists another stored version than this one.
fn lists_another(definition: &Object, target: &Row) -> bool {
    let version = target.version.rsplit('/').next().unwrap_or_default();
    let stored = definition.get("status").and_then(|status| status["storedVersions"].as_array());
    stored.is_some_and(|stored| stored.iter().any(|listed| listed != version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_that_lists_another_version_needs_a_migration() {
        let target = Row { version: "example.com/v2".to_owned(), encryption: String::new() };
        for (stored, expected) in
            [(json!(["v2"]), false), (json!(["v1", "v2"]), true), (json!(["v1"]), true), (json!(null), false)]
        {
            let definition = json!({"status": {"storedVersions": stored}});
            let definition = definition.as_object().expect("an object");
            assert_eq!(lists_another(definition, &target), expected, "{definition:?}");
        }
    }
}
