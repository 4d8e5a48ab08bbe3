//! What the servers say about how they store things.

use std::collections::BTreeMap;

use concord_migrator::{PROGRESS_ANNOTATION, STATE_NAME, STATE_NAMESPACE, StorageState};
use concord_storageversion::{ENCRYPTION_ANNOTATION, Keys, Status, parse_object_name};
use serde_json::{Value, json};

use super::{Api, Output, show::table};
use crate::say;

const VERSIONS: &str = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions";

/// A resource and what each server says about it.
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) servers: BTreeMap<String, (String, Keys)>,
}

impl Resource {
    /// `secrets`, `deployments.apps`.
    pub(crate) fn title(&self) -> String {
        match self.group.as_str() {
            "" => self.name.clone(),
            group => format!("{}.{group}", self.name),
        }
    }

    fn all<'a>(&'a self, said: impl Fn(&'a (String, Keys)) -> &'a str) -> Vec<&'a str> {
        let mut all: Vec<&str> = self.servers.values().map(said).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether all servers say the same.
    fn is_agreed(&self) -> bool {
        self.all(|(version, _)| version).len() == 1 && self.all(|(_, keys)| &keys.seals_with).len() == 1
    }

    /// Whether something was found stored in another form than the servers write now; nothing if nobody has counted.
    fn is_migration_needed(&self, migrated: &Migrated) -> Option<bool> {
        let found = migrated.census.as_array()?;
        let is_written = |row: &Value| {
            let is_same = |(version, keys): &(String, Keys)| {
                let key = row["encryption"].as_str().unwrap_or_default();
                row["version"] == **version && keys.seals_with == key
            };
            self.servers.values().all(is_same)
        };
        Some(!found.iter().all(is_written))
    }

    fn value(&self, migrated: &Migrated) -> Value {
        let server = |(id, (version, keys)): (&String, &(String, Keys))| json!({"id": id, "version": version, "sealsWith": keys.seals_with, "opens": keys.opens});
        json!({
            "group": self.group, "resource": self.name, "agreed": self.is_agreed(),
            "servers": self.servers.iter().map(server).collect::<Vec<_>>(),
            "lastMigration": migrated.last, "stored": migrated.census, "storedAt": migrated.counted_at,
            "migrationNeeded": self.is_migration_needed(migrated),
        })
    }

    fn row(&self, migrated: &Migrated) -> Vec<String> {
        let encryption = self.all(|(_, keys)| match keys.seals_with.as_str() {
            "" => "-",
            key => key,
        });
        vec![
            self.title(),
            self.all(|(version, _)| version).join(" / "),
            encryption.join(" / "),
            self.servers.len().to_string(),
            if self.is_agreed() { "yes" } else { "NO" }.to_owned(),
            migrated.stored(),
            self.is_migration_needed(migrated)
                .map_or("-", |is_so| if is_so { "YES" } else { "no" })
                .to_owned(),
            migrated.last.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    }
}

/// What is known about the objects of a resource.
#[derive(Debug, Default)]
struct Migrated {
    /// How the last one ended, or is going.
    last: Option<String>,
    /// What was found stored when that was last counted, by a migration or by the servers.
    census: Value,
    /// The revision at which that was so.
    counted_at: Value,
}

impl Migrated {
    /// `1204 v1, 3 v2`; a line if nobody has counted.
    fn stored(&self) -> String {
        let row = |row: &Value| {
            let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
            let key = Some(text("encryption")).filter(|key| !key.is_empty());
            let key = key.map(|key| format!(" ({key})")).unwrap_or_default();
            format!("{} {}{key}", row["objects"], text("version"))
        };
        match self.census.as_array().map(Vec::as_slice) {
            None => "-".to_owned(),
            Some([]) => "nothing".to_owned(),
            Some(rows) => rows.iter().map(row).collect::<Vec<_>>().join(", "),
        }
    }

    /// Adds what the servers found.
    fn find(&mut self, state: &StorageState) {
        if self.counted_at.as_u64().is_none_or(|at| at < state.counted_at) {
            self.counted_at = state.counted_at.into();
            self.census = json!(state.persisted);
        }
    }

    /// Adds what a later migration tells.
    fn add(&mut self, migration: &Value) {
        let conditions = migration["status"]["conditions"].as_array().into_iter().flatten();
        let mut holding =
            conditions.filter(|known| known["status"] == "True").filter_map(|known| known["type"].as_str());
        let state =
            holding.rfind(|kind| ["Running", "Succeeded", "Failed"].contains(kind)).unwrap_or("Waiting");
        self.last = Some(format!("{state} ({})", migration["metadata"]["name"].as_str().unwrap_or_default()));
        let told = migration["metadata"]["annotations"][PROGRESS_ANNOTATION].as_str().unwrap_or_default();
        let progress: Value = serde_json::from_str(told).unwrap_or_default();
        if progress["censusRevision"].is_u64() {
            self.counted_at = progress["censusRevision"].clone();
            self.census = progress.get("census").cloned().unwrap_or_else(|| json!([]));
        }
    }
}

/// Adds what the servers found themselves, where that is newer.
async fn states(api: &Api, all: &mut BTreeMap<String, Migrated>) {
    let path = format!("/api/v1/namespaces/{STATE_NAMESPACE}/configmaps/{STATE_NAME}");
    // There is none before anything was counted, and not everybody may read it.
    let Ok(map) = api.get(&path).await else { return };
    for (title, state) in map["data"].as_object().into_iter().flatten() {
        let state = state.as_str().and_then(|text| serde_json::from_str::<StorageState>(text).ok());
        if let Some(state) = state {
            all.entry(title.clone()).or_default().find(&state);
        }
    }
}

/// Everything that some server stores.
pub(crate) async fn resources(api: &Api) -> anyhow::Result<Vec<Resource>> {
    let list = api.get(VERSIONS).await?;
    let items = list["items"].as_array().into_iter().flatten().filter_map(Value::as_object);
    let resource = |object: &serde_json::Map<String, Value>| {
        let (group, name) = parse_object_name(object.get("metadata")?["name"].as_str()?)?;
        let entries = Status::of(object).storage_versions.into_iter();
        let servers = entries.map(|entry| (entry.api_server_id, (entry.encoding_version, entry.keys)));
        Some(Resource { group: group.to_owned(), name: name.to_owned(), servers: servers.collect() })
    };
    Ok(items.filter_map(resource).collect())
}

/// What the migrations of each resource tell.
async fn migrations(api: &Api) -> anyhow::Result<BTreeMap<String, Migrated>> {
    let list = api.get(&api.migrations("").await?).await?;
    let mut items: Vec<&Value> = list["items"].as_array().into_iter().flatten().collect();
    items.sort_by_key(|item| item["metadata"]["creationTimestamp"].as_str().unwrap_or_default());
    let mut all: BTreeMap<String, Migrated> = BTreeMap::new();
    for item in items {
        let resource = &item["spec"]["resource"];
        let part = |name: &str| resource[name].as_str().unwrap_or_default();
        let title = match (part("group"), part("resource")) {
            ("", name) => name.to_owned(),
            (group, name) => format!("{name}.{group}"),
        };
        all.entry(title).or_default().add(item);
    }
    Ok(all)
}

/// Shows them.
pub(crate) async fn run(api: &Api, wanted: &[String], output: Output) -> anyhow::Result<u8> {
    let mut migrations = migrations(api).await?;
    states(api, &mut migrations).await;
    let mut all = resources(api).await?;
    all.retain(|resource| wanted.is_empty() || wanted.contains(&resource.title()));
    all.sort_by_key(Resource::title);
    let none = Migrated::default();
    let migrated = |resource: &Resource| migrations.get(&resource.title()).unwrap_or(&none);
    if output == Output::Json {
        let all: Vec<Value> = all.iter().map(|resource| resource.value(migrated(resource))).collect();
        say(&serde_json::to_string_pretty(&json!({"resources": all, "annotation": ENCRYPTION_ANNOTATION}))?)?;
        return Ok(0);
    }
    let header =
        ["RESOURCE", "VERSION", "ENCRYPTION", "SERVERS", "AGREED", "STORED", "NEEDED", "LAST MIGRATION"]
            .map(str::to_owned);
    let rows = all.iter().map(|resource| resource.row(migrated(resource)));
    say(&table(&std::iter::once(header.to_vec()).chain(rows).collect::<Vec<_>>()))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_last_is_shown() {
        let migration = |name: &str, progress: Value| {
            json!({"metadata": {"name": name, "annotations": {PROGRESS_ANNOTATION: progress.to_string()}},
                "status": {"conditions": [{"type": "Succeeded", "status": "True"}]}})
        };
        let mut migrated = Migrated::default();
        assert_eq!(migrated.stored(), "-");
        migrated.add(&migration("a", json!({"censusRevision": 7})));
        assert_eq!(migrated.stored(), "nothing");
        let rows = json!([{"version": "v1", "objects": 3}, {"version": "v1", "encryption": "aesgcm:v1:k", "objects": 4}]);
        migrated.add(&migration("b", json!({"census": rows, "censusRevision": 9})));
        migrated.add(&migration("c", json!({"phase": "Waiting"})));
        assert_eq!(migrated.stored(), "3 v1, 4 v1 (aesgcm:v1:k)");
        assert_eq!((&migrated.counted_at, migrated.last.as_deref()), (&json!(9), Some("Succeeded (c)")));
        let state = |at: u64| -> StorageState {
            let state = json!({"current": {"version": "v1"}, "persisted": [{"version": "v1", "objects": 5}], "countedAt": at});
            serde_json::from_value(state).expect("a state")
        };
        migrated.find(&state(8));
        assert_eq!(migrated.counted_at, json!(9), "a migration counted later");
        migrated.find(&state(10));
        assert_eq!((migrated.stored().as_str(), &migrated.counted_at), ("5 v1", &json!(10)));
    }

    #[test]
    fn what_has_another_form_than_servers_write_needs_a_migration() {
        let mut resource =
            Resource { group: String::new(), name: "secrets".to_owned(), servers: BTreeMap::new() };
        let keys = |key: &str| Keys { seals_with: key.to_owned(), ..Keys::default() };
        resource.servers.insert("s1".to_owned(), ("v1".to_owned(), keys("k2")));
        let found = |census: Value| Migrated { census, ..Migrated::default() };
        let row = |key: &str| json!({"version": "v1", "encryption": key, "objects": 1});
        assert_eq!(resource.is_migration_needed(&Migrated::default()), None);
        for (census, expected) in [
            (json!([]), false),
            (json!([row("k2")]), false),
            (json!([row("k1")]), true),
            (json!([row("k2"), {"version": "v1", "objects": 1}]), true),
        ] {
            assert_eq!(resource.is_migration_needed(&found(census.clone())), Some(expected), "{census}");
        }
        resource.servers.insert("s2".to_owned(), ("v1".to_owned(), keys("k1")));
        assert_eq!(
            resource.is_migration_needed(&found(json!([row("k2")]))),
            Some(true),
            "one writes otherwise"
        );
    }
}
