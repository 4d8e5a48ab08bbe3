//! The APIServices of what this server serves itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use concord_codec::{FieldValidation, MediaType};
use concord_endpoints::{ApiSet, Apis, Origin, Priority};
use concord_merge::apply::Time;
use concord_meta::{
    GroupVersion, Reason, Status,
    options::{DeleteOptions, Preconditions},
};
use concord_registry::{
    Body, Context, Item, ObjectName, Part, Registry, Resource, Resources as _, UpdateRequest,
};
use concord_replica::{Batch, Closed, Error as ReplicaError, Scope, Snapshot};
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    availability::Condition,
    service::{ApiService, MANAGED, Managed},
    view::{self, ApiServices, CUSTOM},
};

/// The pause before something that failed is tried again.
const PAUSE: Duration = Duration::from_millis(500);
/// How many are written at once: they share the sync of one commit.
const AT_ONCE: usize = 32;
/// Who owns the fields; upstream's name.
const MANAGER: &str = "kube-apiserver";

/// Keeps one APIService for each version that this server serves itself, as upstream does: those of built-in groups are
/// looked after when the server starts, those of custom resources all the time. Nothing is written that is right already.
pub struct Registration {
    registry: Arc<Registry>,
    apis: Arc<Apis>,
    services: ApiServices,
    /// What all keys begin with, with a slash at the end.
    prefix: String,
    settings: RegistrationSettings,
    is_complete: Arc<AtomicBool>,
}

/// What [`Registration`] has to know about its server.
pub struct RegistrationSettings {
    /// Whether other servers may use the same store. What is built into them need not be built into this one.
    pub shared_store: bool,
    /// Whether all custom resources are known that there were when the server started.
    pub customs_are_known: Box<dyn Fn() -> bool + Send + Sync>,
}

/// What is to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wanted {
    priority: Priority,
    managed: Managed,
}

/// What is to be done about one APIService.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Create(GroupVersion, Wanted),
    Update(GroupVersion, Wanted),
    Delete {
        name: String,
        uid: String,
    },
    /// It became this server's own.
    Tell(String),
}

/// What is there, and what has been done about it.
#[derive(Default)]
struct Progress {
    known: BTreeMap<String, ApiService>,
    /// Those that were there when the server started.
    at_start: BTreeSet<String>,
    /// Those about which everything was done that is done when the server starts.
    started: BTreeSet<String>,
}

impl Registration {
    /// Does nothing yet: [`Registration::run`] does.
    pub(crate) fn new(
        registry: Arc<Registry>,
        apis: Arc<Apis>,
        services: ApiServices,
        (prefix, settings): (String, RegistrationSettings),
        is_complete: Arc<AtomicBool>,
    ) -> Self {
        Self { registry, apis, services, prefix, settings, is_complete }
    }

    /// Goes on until it is cancelled or the replica ends.
    pub async fn run(self, cancel: CancellationToken) {
        cancel.run_until_cancelled(self.follow()).await;
    }

    async fn follow(&self) {
        let mut progress = Progress::default();
        let mut is_first = true;
        loop {
            match self.follow_once(&mut progress, &mut is_first).await {
                Ok(Closed::Shutdown | Closed::Failed)
                | Err(ReplicaError::Shutdown | ReplicaError::Failed { .. }) => return,
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn follow_once(
        &self,
        progress: &mut Progress,
        is_first: &mut bool,
    ) -> Result<Closed, ReplicaError> {
        let replica = self.registry.replica();
        let definitions = format!("{}apiextensions.k8s.io/customresourcedefinitions/", self.prefix);
        let (_, mut definitions) = replica.snapshot_and_subscribe(Scope::prefix(definitions))?;
        let prefix = view::prefix(&self.prefix);
        let (snapshot, mut services) = replica.snapshot_and_subscribe(Scope::prefix(prefix))?;
        progress.learn_all(&snapshot, services.scope());
        if std::mem::take(is_first) {
            progress.at_start = progress.known.keys().cloned().collect();
        }
        loop {
            let is_settled = self.settle(progress).await;
            self.is_complete.fetch_or(is_settled, Ordering::Relaxed);
            tokio::select! {
                batch = services.next() => match batch {
                    Ok(batch) => progress.learn(&batch, services.scope()),
                    Err(closed) => return Ok(closed),
                },
                batch = definitions.next() => if let Err(closed) = batch { return Ok(closed) },
                () = tokio::time::sleep(PAUSE), if !is_settled => {}
            }
        }
    }

    /// Does what is to be done now. Whether all of it could be.
    async fn settle(&self, progress: &mut Progress) -> bool {
        // What can be read of a definition by now is in the set.
        let set = self.apis.current().await;
        let customs_are_known = (self.settings.customs_are_known)();
        let wanted = self.wanted(&set);
        let steps = progress.steps(&wanted, customs_are_known, self.settings.shared_store);
        let outcomes = stream::iter(steps).map(|step| async {
            let outcome = self.take(&step).await;
            (step, outcome)
        });
        let outcomes: Vec<_> = outcomes.buffer_unordered(AT_ONCE).collect().await;
        let mut failed = BTreeSet::new();
        for (step, outcome) in outcomes {
            match outcome {
                Ok(()) => drop(progress.started.insert(step.name())),
                Err(status) => {
                    tracing::debug!(%status, ?step, "An APIService has to wait, trying again.");
                    failed.insert(step.name());
                }
            }
        }
        progress.started.extend(wanted.into_keys().filter(|name| !failed.contains(name)));
        failed.is_empty() && customs_are_known
    }

    /// What is to be there, by name.
    fn wanted(&self, set: &ApiSet) -> BTreeMap<String, (GroupVersion, Wanted)> {
        let mut wanted = BTreeMap::new();
        for group in set.groups() {
            for version in group.versions().iter().map(|version| version.version()) {
                let priority = self.services.built_in().get(version);
                let of = match (group.origin(), priority) {
                    (Origin::Custom, _) => Wanted { priority: CUSTOM, managed: Managed::Always },
                    (Origin::BuiltIn, Some(priority)) => {
                        Wanted { priority: *priority, managed: Managed::OnStart }
                    }
                    // The group of APIServices itself has none.
                    (Origin::BuiltIn, None) => continue,
                };
                wanted.insert(name(version), (version.clone(), of));
            }
        }
        wanted
    }

    async fn take(&self, step: &Step) -> Result<(), Status> {
        let Some(resource) = resource(&self.apis) else { return Ok(()) };
        let outcome = match step {
            Step::Create(version, wanted) => self.create(&resource, version, *wanted).await,
            Step::Update(version, wanted) => self.update(&resource, version, *wanted).await,
            Step::Delete { name, uid } => self.delete(&resource, name, uid).await,
            Step::Tell(name) => tell(&self.registry, &resource, name, &Condition::local()).await,
        };
        match outcome {
            // Another server of the fleet was faster, or it was changed meanwhile: then it is seen again.
            Err(status)
                if [Reason::ALREADY_EXISTS, Reason::CONFLICT, Reason::NOT_FOUND].contains(&status.reason) =>
            {
                Ok(())
            }
            outcome => outcome,
        }
    }

    async fn create(
        &self,
        resource: &Resource,
        version: &GroupVersion,
        wanted: Wanted,
    ) -> Result<(), Status> {
        let object = json!({
            "kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1",
            "metadata": {"name": name(version), "labels": {MANAGED: wanted.managed.label()}},
            "spec": spec(version, wanted.priority),
        });
        let bytes = concord_codec::encode(&object);
        let body = Body { bytes: &bytes, media_type: MediaType::Json, validation: FieldValidation::Ignore };
        let context = context();
        let object = resource.decode(body, &context)?;
        Box::pin(self.registry.create(&context, resource, "", object)).await.map(drop)
    }

    async fn update(
        &self,
        resource: &Resource,
        version: &GroupVersion,
        wanted: Wanted,
    ) -> Result<(), Status> {
        let name = name(version);
        let name = ObjectName { namespace: "", name: &name };
        let snapshot = self.registry.replica().newest().map_err(Status::internal_error)?;
        let stored = resource.storage().and_then(|storage| snapshot.get(&storage.key(name)));
        let Some(stored) = stored else { return Ok(()) };
        let mut object = resource.object(&Item::from(stored))?;
        object.insert("spec".to_owned(), spec(version, wanted.priority));
        let request = UpdateRequest { name, part: Part::Main, object };
        Box::pin(self.registry.update(&context(), resource, request)).await.map(drop)
    }

    async fn delete(&self, resource: &Resource, name: &str, uid: &str) -> Result<(), Status> {
        let preconditions = Preconditions { uid: Some(uid.to_owned()), ..Preconditions::default() };
        let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
        let name = ObjectName { namespace: "", name };
        Box::pin(self.registry.delete(&context(), resource, name, &options)).await.map(drop)
    }
}

impl Progress {
    fn learn_all(&mut self, snapshot: &Snapshot, scope: &Scope) {
        let entries = snapshot.scan(&scope.range());
        let read = entries.filter_map(|entry| ApiService::read(&entry.value));
        self.known = read.map(|service| (service.name.clone(), service)).collect();
    }

    fn learn(&mut self, batch: &Batch, scope: &Scope) {
        let length = scope.range().start.len();
        for event in batch.iter() {
            let name = String::from_utf8_lossy(&event.key()[length..]).into_owned();
            match event.current().and_then(|entry| ApiService::read(&entry.value)) {
                Some(service) => drop(self.known.insert(name, service)),
                None => drop(self.known.remove(&name)),
            }
        }
    }

    /// What is to be done, by upstream's rules:
    ///
    /// | there is | not wanted | wanted on start | wanted always |
    /// |---|---|---|---|
    /// | nothing | | create once | create |
    /// | one that nobody manages | | | |
    /// | one managed on start, made since | | | |
    /// | one managed on start, from before | delete once | update once | update once |
    /// | one managed always | delete | update once | update |
    fn steps(
        &self,
        wanted: &BTreeMap<String, (GroupVersion, Wanted)>,
        customs_are_known: bool,
        shared_store: bool,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        for (name, (version, of)) in wanted {
            let is_over = self.started.contains(name);
            let (version, of) = (version.clone(), *of);
            match self.known.get(name) {
                _ if of.managed == Managed::OnStart && is_over => {}
                None => steps.push(Step::Create(version, of)),
                Some(there) if there.priority == of.priority && there.backend.is_none() => {}
                Some(there) if self.is_due(there) => steps.push(Step::Update(version, of)),
                Some(_) => {}
            }
        }
        let superfluous = self.known.values().filter(|there| !wanted.contains_key(&there.name));
        let superfluous = superfluous.filter(|there| match there.managed {
            Managed::ByHand => false,
            // It may be another server's.
            Managed::OnStart => !shared_store && self.is_due(there),
            Managed::Always => customs_are_known,
        });
        let delete = |there: &ApiService| Step::Delete { name: there.name.clone(), uid: there.uid.clone() };
        steps.extend(superfluous.map(delete));
        let became = self.known.values().filter(|there| there.backend.is_none() && !there.is_told_local);
        steps.extend(became.map(|there| Step::Tell(there.name.clone())));
        steps
    }

    fn is_due(&self, there: &ApiService) -> bool {
        match there.managed {
            Managed::ByHand => false,
            Managed::OnStart => self.at_start.contains(&there.name) && !self.started.contains(&there.name),
            Managed::Always => true,
        }
    }
}

impl Step {
    fn name(&self) -> String {
        match self {
            Self::Create(version, _) | Self::Update(version, _) => name(version),
            Self::Delete { name, .. } | Self::Tell(name) => name.clone(),
        }
    }
}

/// The name of the APIService of a version.
fn name(version: &GroupVersion) -> String {
    format!("{}.{}", version.version, version.group)
}

fn spec(version: &GroupVersion, priority: Priority) -> Value {
    let mut spec = json!({
        "version": version.version, "groupPriorityMinimum": priority.group, "versionPriority": priority.version,
    });
    // The core group's is left out, as Go's encoding does with what is empty.
    if !version.group.is_empty() {
        spec["group"] = version.group.as_str().into();
    }
    spec
}

/// Says in the status of an APIService whether it can be reached, unless it says so already.
///
/// # Errors
///
/// 409 if it was changed meanwhile.
pub(crate) async fn tell(
    registry: &Registry,
    resource: &Resource,
    name: &str,
    condition: &Condition,
) -> Result<(), Status> {
    let name = ObjectName { namespace: "", name };
    let snapshot = registry.replica().newest().map_err(Status::internal_error)?;
    let stored = resource.storage().and_then(|storage| snapshot.get(&storage.key(name)));
    let Some(stored) = stored else { return Ok(()) };
    let mut object = resource.object(&Item::from(stored))?;
    if !condition.tell(&mut object, &now().to_string()) {
        return Ok(());
    }
    let request = UpdateRequest { name, part: Part::Sub("status"), object };
    Box::pin(registry.update(&context(), resource, request)).await.map(drop)
}

/// The resource of APIServices.
pub(crate) fn resource(apis: &Apis) -> Option<Arc<Resource>> {
    apis.find(&GroupVersion::new("apiregistration.k8s.io", "v1"), "apiservices")
}

fn context() -> Context {
    let mut context = Context::of_the_server(now());
    MANAGER.clone_into(&mut context.manager);
    context
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time { unix: i64::try_from(since.as_secs()).unwrap_or(i64::MAX) }
}

#[cfg(test)]
mod tests;
