//! What the servers say about how they store things.

use std::collections::BTreeMap;

use concord_storageversion::{ENCRYPTION_ANNOTATION, Keys, Status, parse_object_name};
use serde_json::{Value, json};

use super::{Api, Output, show::table};
use crate::say;

const VERSIONS: &str = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions";
const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations";

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

    fn value(&self, migration: Option<&str>) -> Value {
        let server = |(id, (version, keys)): (&String, &(String, Keys))| json!({"id": id, "version": version, "sealsWith": keys.seals_with, "opens": keys.opens});
        json!({
            "group": self.group, "resource": self.name, "agreed": self.is_agreed(),
            "servers": self.servers.iter().map(server).collect::<Vec<_>>(), "lastMigration": migration,
        })
    }

    fn row(&self, migration: Option<&str>) -> Vec<String> {
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
            migration.unwrap_or("-").to_owned(),
        ]
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

/// How the last migration of each resource ended, or is going.
async fn migrations(api: &Api) -> anyhow::Result<BTreeMap<String, String>> {
    let list = api.get(MIGRATIONS).await?;
    let mut items: Vec<&Value> = list["items"].as_array().into_iter().flatten().collect();
    items.sort_by_key(|item| item["metadata"]["creationTimestamp"].as_str().unwrap_or_default());
    let title = |item: &Value| {
        let resource = &item["spec"]["resource"];
        let (group, name) = (resource["group"].as_str().unwrap_or_default(), resource["resource"].as_str()?);
        Some(if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") })
    };
    let state = |item: &Value| {
        let conditions = item["status"]["conditions"].as_array().into_iter().flatten();
        let mut holding =
            conditions.filter(|known| known["status"] == "True").filter_map(|known| known["type"].as_str());
        let state =
            holding.rfind(|kind| ["Running", "Succeeded", "Failed"].contains(kind)).unwrap_or("Waiting");
        format!("{state} ({})", item["metadata"]["name"].as_str().unwrap_or_default())
    };
    Ok(items.into_iter().filter_map(|item| Some((title(item)?, state(item)))).collect())
}

/// Shows them.
pub(crate) async fn run(api: &Api, wanted: &[String], output: Output) -> anyhow::Result<u8> {
    let migrations = migrations(api).await?;
    let mut all = resources(api).await?;
    all.retain(|resource| wanted.is_empty() || wanted.contains(&resource.title()));
    all.sort_by_key(Resource::title);
    let migration = |resource: &Resource| migrations.get(&resource.title()).map(String::as_str);
    if output == Output::Json {
        let all: Vec<Value> = all.iter().map(|resource| resource.value(migration(resource))).collect();
        say(&serde_json::to_string_pretty(&json!({"resources": all, "annotation": ENCRYPTION_ANNOTATION}))?)?;
        return Ok(0);
    }
    let header =
        ["RESOURCE", "VERSION", "ENCRYPTION", "SERVERS", "AGREED", "LAST MIGRATION"].map(str::to_owned);
    let rows = all.iter().map(|resource| resource.row(migration(resource)));
    say(&table(&std::iter::once(header.to_vec()).chain(rows).collect::<Vec<_>>()))?;
    Ok(0)
}
