//! Whether FlowSchemas refer to a priority level that exists: the condition Dangling.

use std::{collections::BTreeSet, sync::Arc};

use concord_meta::{Status, go::quote};
use concord_registry::{Item, Object, ObjectName, Registry, Resource, Resources};
use concord_replica::{Event, EventKind, Scope, Snapshot};
use concord_store::KeyRange;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{condition, flowcontrol::MANDATORY, writer::Writer};
use crate::{
    own::{now, served},
    queue::{self, Sync},
};

const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// What is looked at when a priority level comes or goes: all FlowSchemas. None has this name.
const ALL: &str = "";

/// What is followed, in this order.
const SCHEMAS: usize = 0;

/// Says in the status of every FlowSchema whether its priority level exists.
pub(crate) struct Dangling {
    writer: Writer,
    schemas: Arc<Resource>,
    levels: Arc<Resource>,
}

impl Dangling {
    /// `None` if there are no FlowSchemas.
    pub(crate) fn new(registry: Arc<Registry>, resources: Arc<dyn Resources>) -> Option<Self> {
        let find = |plural| served(resources.as_ref(), GROUP, "v1", plural);
        let (schemas, levels) = (find("flowschemas")?, find("prioritylevelconfigurations")?);
        Some(Self { writer: Writer { registry, resources }, schemas, levels })
    }

    /// Goes on until it is cancelled or the replica ends.
    pub(crate) async fn run(self, cancel: CancellationToken) {
        let storages = [self.schemas.storage(), self.levels.storage()];
        let scopes: Vec<Scope> =
            storages.into_iter().flatten().map(|storage| Scope::prefix(storage.prefix.clone())).collect();
        cancel.run_until_cancelled(queue::run(&self, &self.writer.registry, &scopes)).await;
    }

    fn names(&self, snapshot: &Snapshot) -> Vec<String> {
        let Some(storage) = self.schemas.storage() else { return Vec::new() };
        let entries = snapshot.scan(&KeyRange::prefix(storage.prefix.clone()));
        let names = entries.filter_map(|entry| storage.object_name(&entry.key));
        names.map(|name| name.name.to_owned()).collect()
    }

    async fn look_at(&self, snapshot: &Snapshot, name: &str) -> Result<(), Status> {
        let find = |resource: &Resource, name: &str| {
            let storage = resource.storage()?;
            snapshot.get(&storage.key(ObjectName { namespace: "", name })).cloned()
        };
        let Some(entry) = find(&self.schemas, name) else { return Ok(()) };
        let schema = self.schemas.object(&Item::from(&entry))?;
        let level = level_of(&schema);
        let exists = MANDATORY.contains(&level) || find(&self.levels, level).is_some();
        let wanted = wanted(level, exists);
        let is_told = condition(&schema, "Dangling").is_some_and(|found| {
            ["status", "reason", "message"].iter().all(|field| found[*field] == wanted[*field])
        });
        if is_told {
            return Ok(());
        }
        let status = json!({"conditions": [wanted]});
        self.writer.apply_status(&self.schemas, name, MANAGER, &status).await
    }
}

fn level_of(schema: &Object) -> &str {
    let level = schema.get("spec").and_then(|spec| spec["priorityLevelConfiguration"]["name"].as_str());
    level.unwrap_or_default()
}

fn wanted(level: &str, exists: bool) -> Value {
    let (status, reason, fate) = match exists {
        true => ("False", "Found", "and it exists"),
        false => ("True", "NotFound", "but there is no such object"),
    };
    let level = quote(level);
    json!({
        "type": "Dangling", "status": status, "reason": reason, "lastTransitionTime": now().to_string(),
        "message": format!("This FlowSchema references the PriorityLevelConfiguration object named {level} {fate}"),
    })
}

impl Sync for Dangling {
    type Item = String;
    const QUEUE: &str = "flowschema_status";

    fn all(&self, _: &Snapshot, items: &mut BTreeSet<String>) {
        items.insert(ALL.to_owned());
    }

    fn changed(&self, scope: usize, event: &Event, items: &mut BTreeSet<String>) {
        let name = match scope {
            SCHEMAS => self.schemas.storage().and_then(|storage| storage.object_name(event.key())),
            _ if matches!(event.kind, EventKind::Modified { .. }) => None,
            _ => Some(ObjectName { namespace: "", name: ALL }),
        };
        items.extend(name.map(|name| name.name.to_owned()));
    }

    async fn sync(&self, name: &String) -> Result<(), Status> {
        let snapshot = self.writer.registry.replica().newest().map_err(Status::internal_error)?;
        if name != ALL {
            return self.look_at(&snapshot, name).await;
        }
        let mut first_error = Ok(());
        for name in self.names(&snapshot) {
            first_error = first_error.and(self.look_at(&snapshot, &name).await);
        }
        first_error
    }
}
