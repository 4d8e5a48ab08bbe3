use std::{collections::BTreeMap, sync::Arc, time::Duration};

use concord_meta::{
    Reason, Status,
    options::{DeleteOptions, PropagationPolicy},
};
use concord_registry::{Item, Object, ObjectName, Part, UpdateRequest};
use concord_replica::{Closed, Entry, Scope, Snapshot, Subscription};
use futures_util::{FutureExt as _, StreamExt as _, future::select_all, stream};
use rand::seq::SliceRandom as _;
use serde_json::Value;

use super::{
    FINALIZER, NamespaceController, conditions,
    content::{Content, Kind, Totals},
    elsewhere::Left,
    finalizers, uid,
};
use crate::{
    backoff::Backoff,
    own::{consistent, context, now},
};

/// How many objects are deleted at once: enough for the store to commit them in groups.
const AT_ONCE: usize = 32;

/// How long changes may come in before they are looked at: finalizers of a thousand objects go one by one.
const SETTLE: Duration = Duration::from_millis(100);

/// Who writes the status, as upstream's controller does.
const MANAGER: &str = "kube-controller-manager";

/// The deletion of one namespace.
pub(super) struct Cleanup {
    controller: Arc<NamespaceController>,
    name: String,
}

/// How far a pass came.
enum Pass {
    /// The namespace is gone, or no longer waits for this controller.
    Done,
    /// There is more to do at once.
    Again,
    /// What is left is elsewhere, from where nobody tells when it is gone.
    Later,
    /// What is left goes away when others let it; these tell when something happens to it.
    Wait(Vec<Subscription>),
}

impl Cleanup {
    pub(super) fn new(controller: Arc<NamespaceController>, name: String) -> Self {
        Self { controller, name }
    }

    pub(super) async fn run(self) {
        let mut backoff = Backoff::new();
        loop {
            match self.next_pass().await {
                Ok(Pass::Done) => return,
                Ok(Pass::Again) => {}
                Ok(Pass::Later) => backoff.pause().await,
                Ok(Pass::Wait(changes)) => {
                    backoff.reset();
                    if let Err(Closed::Shutdown | Closed::Failed) = any_change(changes).await {
                        return;
                    }
                    tokio::time::sleep(SETTLE).await;
                }
                Err(error) => {
                    tracing::warn!(namespace = self.name, %error, "The content of a namespace could not be deleted.");
                    backoff.pause().await;
                }
            }
        }
    }

    async fn next_pass(&self) -> Result<Pass, Status> {
        let turn = self.controller.passes.acquire().await;
        let passed = Box::pin(self.pass()).await;
        drop(turn);
        match passed {
            // Somebody else changed the namespace or finished the work, such as another server.
            Err(status) if status.reason == Reason::CONFLICT || status.code == 404 => Ok(Pass::Again),
            passed => passed,
        }
    }

    /// Deletes what there is, says how it went, and lets the namespace go if nothing is left.
    async fn pass(&self) -> Result<Pass, Status> {
        let before = consistent(&self.controller.registry).await?;
        if self.namespace(&before).is_none() {
            return Ok(Pass::Done);
        }
        let mut failures = self.delete(&self.content(&before)).await;
        let elsewhere = self.empty_elsewhere().await;
        failures.extend(elsewhere.failures.clone());
        // One look is exact. The state is one in which the namespace is being deleted, and from the revision at which it
        // was marked no create in it can be committed by any server: each compares the namespace with a state in which
        // it was not marked. So what is in it only becomes less, and what is not in this state never comes.
        let after = consistent(&self.controller.registry).await?;
        let Some((item, namespace)) = self.namespace(&after) else { return Ok(Pass::Done) };
        let left = self.content(&after);
        if !self.controller.resources.is_current() {
            // A kind was defined that there may be objects of, which are not seen yet.
            tokio::time::sleep(SETTLE).await;
            return Ok(Pass::Again);
        }
        let mut totals = left.totals();
        totals.add(&elsewhere);
        let item = self.tell(item, namespace, &totals, &failures).await?;
        if left.is_empty() && elsewhere.is_empty() {
            self.finalize(&item).await?;
            return Ok(Pass::Done);
        }
        if let Some(error) = failures.into_values().next() {
            return Err(Status::internal_error(error));
        }
        match left.untouched() {
            0 if !elsewhere.is_empty() => Ok(Pass::Later),
            0 => Ok(self.wait(&after, &left)),
            _ => Ok(Pass::Again),
        }
    }

    fn content(&self, snapshot: &Snapshot) -> Content {
        let NamespaceController { resources, root, .. } = self.controller.as_ref();
        Content::of(resources.as_ref(), snapshot, root, &self.name)
    }

    /// The namespace, while it waits for this controller.
    fn namespace(&self, snapshot: &Snapshot) -> Option<(Item, Object)> {
        let entry = snapshot.get(&self.controller.key(&self.name))?;
        Some((Item::from(entry), self.controller.doomed(entry)?))
    }

    /// Deletes the objects. The answer is what went wrong, by resource.
    async fn delete(&self, content: &Content) -> BTreeMap<String, String> {
        let mut objects: Vec<(&Kind, &Entry)> = Vec::new();
        for kind in content.stage() {
            objects.extend(kind.entries.iter().map(|entry| (kind, entry)));
        }
        // The servers of a fleet all do this at once. In another order each, they share the work instead of doing it
        // several times.
        objects.shuffle(&mut rand::rng());
        let deletions = stream::iter(0..objects.len())
            .map(|index| self.delete_object(objects[index].0, objects[index].1).boxed());
        let mut failures = BTreeMap::new();
        let mut outcomes = deletions.buffer_unordered(AT_ONCE);
        while let Some(outcome) = outcomes.next().await {
            if let Err((kind, status)) = outcome {
                failures.entry(kind.name()).or_insert(status.message);
            }
        }
        failures
    }

    async fn delete_object<'a>(&self, kind: &'a Kind, entry: &Entry) -> Result<(), (&'a Kind, Status)> {
        let registry = &self.controller.registry;
        let gone = registry.replica().newest().is_ok_and(|newest| newest.get(&entry.key).is_none());
        let name = kind.resource.storage().and_then(|storage| storage.object_name(&entry.key));
        let (false, Some(name)) = (gone, name) else { return Ok(()) };
        // Whatever depends on the object is deleted with the namespace or not at all.
        let options = DeleteOptions {
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteOptions::default()
        };
        match registry.delete(&context(MANAGER), &kind.resource, name, &options).await {
            Err(status) if status.code != 404 => Err((kind, status)),
            _ => Ok(()),
        }
    }

    /// Has servers behind this one delete what they have in the namespace.
    async fn empty_elsewhere(&self) -> Left {
        match &self.controller.elsewhere {
            Some(elsewhere) => elsewhere.empty(&self.name).await,
            None => Left::default(),
        }
    }

    /// Puts into the status what is left to do.
    async fn tell(
        &self,
        item: Item,
        mut namespace: Object,
        left: &Totals,
        failures: &BTreeMap<String, String>,
    ) -> Result<Item, Status> {
        let status = namespace.entry("status").or_insert_with(|| Value::Object(Object::new()));
        let Value::Object(status) = status else { return Ok(item) };
        let mut conditions = match status.remove("conditions") {
            Some(Value::Array(conditions)) => conditions,
            _ => Vec::new(),
        };
        if !conditions::update(&mut conditions, left, failures, now()) {
            return Ok(item);
        }
        status.insert("conditions".to_owned(), conditions.into());
        self.update("status", namespace).await
    }

    /// Removes the finalizer of this controller. If it was the last one, the namespace is gone.
    async fn finalize(&self, item: &Item) -> Result<(), Status> {
        let mut namespace = self.controller.namespaces.object(item)?;
        let rest: Vec<String> = finalizers(&namespace)
            .into_iter()
            .filter(|name| *name != FINALIZER)
            .map(ToOwned::to_owned)
            .collect();
        if let Some(spec) = namespace.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("finalizers".to_owned(), rest.into());
        }
        self.update("finalize", namespace).await.map(drop)
    }

    /// Writes the namespace if it is still the one that was looked at: the object says its resource version and its uid.
    async fn update(&self, part: &str, namespace: Object) -> Result<Item, Status> {
        debug_assert!(!uid(&namespace).is_empty());
        let name = ObjectName { namespace: "", name: &self.name };
        let request = UpdateRequest { name, part: Part::Sub(part), object: namespace };
        let NamespaceController { registry, namespaces, .. } = self.controller.as_ref();
        Box::pin(registry.update(&context(MANAGER), namespaces, request)).await.map(|written| written.item)
    }

    /// Everything that can change what is to be done next.
    fn wait(&self, state: &Snapshot, left: &Content) -> Pass {
        let storages = left.kinds.iter().filter_map(|kind| kind.resource.storage());
        let mut scopes: Vec<Scope> =
            storages.map(|storage| Scope::prefix(storage.key_prefix(Some(&self.name)))).collect();
        scopes.extend(left.strangers.places.iter().cloned().map(Scope::prefix));
        scopes.push(Scope::key(self.controller.key(&self.name)));
        let replica = self.controller.registry.replica();
        let changes: Result<Vec<Subscription>, _> =
            scopes.into_iter().map(|scope| replica.subscribe(scope, state.revision())).collect();
        // What cannot be followed from that state on has to be looked at again.
        changes.map_or(Pass::Again, Pass::Wait)
    }
}

/// Waits until anything happens. Subscriptions that break off count: something may have happened.
async fn any_change(mut changes: Vec<Subscription>) -> Result<(), Closed> {
    let next = changes.iter_mut().map(|changes| Box::pin(changes.next()));
    select_all(next).await.0.map(drop)
}
