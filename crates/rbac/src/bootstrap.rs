use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use concord_codec::{FieldValidation, MediaType, encode};
use concord_meta::{GroupResource, Reason, Status, options::DeleteOptions};
use concord_registry::{Body, Object, ObjectName, Part, Registry, Resource, Resources, UpdateRequest};
use concord_server::{HealthCheck, Unhealthy, check_fn};
use futures_util::future::join_all;

use crate::{
    own::{Backoff, context, current, newest, served},
    reconcile::{self, Step},
    table::{Wanted, wanted},
};

/// Who owns the fields of what the server makes for itself.
const MANAGER: &str = "kube-apiserver";

/// How long to wait for the replica in one go.
const LOADING: Duration = Duration::from_secs(5);

/// Upstream's default roles and bindings, put in place at every start.
///
/// What is missing of their rules, subjects, labels and annotations is added; what users added stays. An object with the
/// annotation `rbac.authorization.kubernetes.io/autoupdate: "false"` is left alone.
pub struct Bootstrap {
    registry: Arc<Registry>,
    resources: Arc<dyn Resources>,
    done: Arc<AtomicBool>,
}

/// Whether the default roles are in place.
#[derive(Clone, Default)]
pub struct Bootstrapped(Arc<AtomicBool>);

impl Bootstrapped {
    /// The check by upstream's name. A server is not ready before: nobody has any right until the roles are there.
    pub fn check(&self) -> impl HealthCheck + use<> {
        let done = self.0.clone();
        check_fn("poststarthook/rbac/bootstrap-roles", move || {
            let result = match done.load(Ordering::Relaxed) {
                true => Ok(()),
                false => Err(Unhealthy("not finished".to_owned())),
            };
            std::future::ready(result)
        })
    }
}

impl Bootstrap {
    /// Writes nothing yet; `done` will be told.
    pub fn new(registry: Arc<Registry>, resources: Arc<dyn Resources>, done: &Bootstrapped) -> Self {
        Self { registry, resources, done: done.0.clone() }
    }

    /// Returns once everything is in place. Goes on trying while that is not possible.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: what is missing is found again.
    pub async fn run(self) {
        let mut backoff = Backoff::new();
        while let Err(error) = self.ensure().await {
            tracing::warn!(%error, "The default roles could not be put in place.");
            backoff.pause().await;
        }
        self.done.store(true, Ordering::Relaxed);
    }

    /// Roles first: who is bound to one that is not there yet has nothing.
    async fn ensure(&self) -> Result<(), Status> {
        // Nothing is missing from a store that has not been read yet.
        let loaded = self.registry.replica().not_older_than(0, LOADING).await;
        loaded.map_err(Status::internal_error)?;
        let served: BTreeSet<GroupResource> =
            self.resources.all().iter().map(|resource| resource.group_resource()).collect();
        let is_due = |wanted: &Wanted| wanted.when.as_ref().is_none_or(|needed| served.contains(needed));
        let (bindings, roles): (Vec<_>, Vec<_>) =
            wanted().into_iter().filter(is_due).partition(Wanted::is_binding);
        for objects in [roles, bindings] {
            // All at once: the store commits in groups.
            let kept = join_all(objects.iter().map(|wanted| self.keep(wanted))).await;
            kept.into_iter().collect::<Result<(), Status>>()?;
        }
        Ok(())
    }

    /// Looks after one object. Somebody else, another server of the fleet perhaps, may do so at the same moment.
    async fn keep(&self, wanted: &Wanted) -> Result<(), Status> {
        let mut left = 5;
        loop {
            match self.reconcile(wanted).await {
                Err(status) if left > 0 && is_race(&status) => left -= 1,
                outcome => return outcome,
            }
            // What the others did has to arrive here first.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn reconcile(&self, wanted: &Wanted) -> Result<(), Status> {
        let Some(resource) = served(self.resources.as_ref(), wanted.plural) else { return Ok(()) };
        let expected = complete(&resource, wanted)?;
        let name = ObjectName { namespace: &wanted.namespace, name: &wanted.name };
        let Some(existing) = current(&newest(&self.registry)?, &resource, name)? else {
            return self.create(wanted, &resource, expected).await;
        };
        let step = match wanted.is_binding() {
            true => reconcile::binding(&existing, &expected),
            false => reconcile::role(&existing, &expected),
        };
        match step {
            Step::Keep => Ok(()),
            Step::Protected => {
                let Wanted { plural, namespace, name, .. } = wanted;
                tracing::warn!(
                    plural,
                    namespace,
                    name,
                    "A default object lacks something and is left as it is."
                );
                Ok(())
            }
            Step::Update(object) => {
                let request = UpdateRequest { name, part: Part::Main, object };
                Box::pin(self.registry.update(&context(MANAGER), &resource, request)).await.map(drop)
            }
            Step::Recreate => {
                let options = DeleteOptions::default();
                Box::pin(self.registry.delete(&context(MANAGER), &resource, name, &options)).await?;
                self.create(wanted, &resource, expected).await
            }
        }
    }

    async fn create(&self, wanted: &Wanted, resource: &Resource, object: Object) -> Result<(), Status> {
        let context = context(MANAGER);
        let create = self.registry.create(&context, resource, &wanted.namespace, object);
        Box::pin(create).await.map(drop)
    }
}

/// Whether another attempt is worth it right away.
fn is_race(status: &Status) -> bool {
    [Reason::ALREADY_EXISTS, Reason::CONFLICT, Reason::NOT_FOUND].contains(&status.reason)
}

/// The object in the form in which clients' objects are once they are read, with defaults.
fn complete(resource: &Resource, wanted: &Wanted) -> Result<Object, Status> {
    let bytes = encode(&wanted.object);
    let body = Body { bytes: &bytes, media_type: MediaType::Json, validation: FieldValidation::Ignore };
    resource.decode(body, &context(MANAGER))
}
