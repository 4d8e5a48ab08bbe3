//! The objects that every cluster has.

mod authentication;
mod dangling;
mod endpoints;
mod flowcontrol;
mod objects;
mod writer;

use std::{sync::Arc, time::Duration};

use concord_meta::{Reason, Status};
use concord_registry::{Object, Registry, Resources};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use self::authentication::ClusterAuthentication;
use self::writer::{Found, Wanted, Writer};
pub(crate) use self::{
    authentication::ClusterAuthenticationTrust, dangling::Dangling, endpoints::ServerAddresses,
};
use crate::{Config, backoff::Backoff, own::now};

/// How often the objects are looked after, as upstream does.
const AGAIN: Duration = Duration::from_secs(60);

/// How long to wait for the replica in one go.
const LOADING: Duration = Duration::from_secs(5);

/// Puts the objects in place that every cluster has, and keeps them there.
///
/// What users changed about them stays as they want it, except where upstream resets it too: the ports and the type of
/// the Service `default/kubernetes` when a server starts, and the specs of flow control objects that say that they want
/// to be kept up to date.
pub struct Bootstrap {
    writer: Writer,
    config: Config,
}

impl Bootstrap {
    /// Writes nothing yet.
    pub fn new(registry: Arc<Registry>, resources: Arc<dyn Resources>, config: Config) -> Self {
        Self { writer: Writer { registry, resources }, config }
    }

    /// Returns once the namespaces are there that clients take for granted: a server is not ready before. Goes on trying
    /// while the store is not available.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: what is missing is found again.
    pub async fn ensure_essentials(&self) {
        let mut backoff = Backoff::new();
        loop {
            match self.make_namespaces().await {
                Ok(()) => return,
                Err(error) => tracing::warn!(%error, "The default namespaces could not be made."),
            }
            backoff.pause().await;
        }
    }

    async fn make_namespaces(&self) -> Result<(), Status> {
        // Nothing is missing from a store that has not been read yet.
        let loaded = self.writer.registry.replica().not_older_than(0, LOADING).await;
        loaded.map_err(Status::internal_error)?;
        let made = join_all(objects::namespaces().iter().map(|wanted| self.keep(wanted))).await;
        made.into_iter().collect()
    }

    /// Looks after all objects until it is cancelled.
    pub(crate) async fn run(self, cancel: CancellationToken, essentials: watch::Sender<bool>) {
        cancel.run_until_cancelled(self.look_after(essentials)).await;
    }

    async fn look_after(&self, essentials: watch::Sender<bool>) {
        let mut backoff = Backoff::new();
        let mut starting = true;
        loop {
            self.ensure_essentials().await;
            essentials.send_replace(true);
            match Box::pin(self.ensure_rest(starting)).await {
                Ok(()) => {
                    starting = false;
                    backoff.reset();
                    tokio::time::sleep(AGAIN).await;
                }
                Err(error) => {
                    // Somebody else changed an object at the same moment: that is not worth a word.
                    if error.reason != Reason::CONFLICT {
                        tracing::warn!(%error, "A default object could not be put in place.");
                    }
                    backoff.pause().await;
                }
            }
        }
    }

    /// Everything at once: the store commits in groups. All are tried; the first error is told.
    async fn ensure_rest(&self, starting: bool) -> Result<(), Status> {
        let Config { service_cluster_ip_range: range, secure_port, .. } = &self.config;
        let kept = objects::priority_classes();
        let kept = join_all(kept.iter().map(|wanted| self.keep(wanted)));
        let levels = flowcontrol::priority_levels();
        let levels = join_all(levels.iter().map(|wanted| self.keep_spec(wanted)));
        let schemas = flowcontrol::flow_schemas();
        let schemas = join_all(schemas.iter().map(|wanted| self.keep_spec(wanted)));
        let (kept, levels, schemas, cidr, service) = futures_util::join!(
            kept,
            levels,
            schemas,
            self.keep_cidr(objects::service_cidr(range)),
            self.keep_service(objects::service(range, *secure_port), starting),
        );
        kept.into_iter().chain(levels).chain(schemas).chain([cidr, service]).collect()
    }

    /// Makes an object that is missing, and leaves it alone afterwards.
    async fn keep(&self, wanted: &Wanted) -> Result<(), Status> {
        self.writer.ensure(wanted).await.map(drop)
    }

    async fn keep_cidr(&self, wanted: Wanted) -> Result<(), Status> {
        let Some(found) = self.writer.ensure(&wanted).await? else { return Ok(()) };
        if found.current.as_ref().is_some_and(|cidr| condition(cidr, "Ready").is_some()) {
            return Ok(());
        }
        let ready = json!({"conditions": [{
            "type": "Ready", "status": "True", "lastTransitionTime": now().to_string(),
            "message": "Kubernetes default Service CIDR is ready",
        }]});
        let manager = "kubernetes-service-cidr-controller";
        self.writer.apply_status(&found.resource, &wanted.name, manager, &ready).await
    }

    /// The port of the server may be another one than that of the last start.
    async fn keep_service(&self, wanted: Wanted, starting: bool) -> Result<(), Status> {
        let Some(found) = self.writer.ensure(&wanted).await? else { return Ok(()) };
        let Found { resource, wanted: to_be, current: Some(mut service) } = found else { return Ok(()) };
        let spec =
            |object: &'_ Object, name: &str| object.get("spec").and_then(|spec| spec.get(name)).cloned();
        let differs = |name: &&str| spec(&service, name) != spec(&to_be, name);
        let differing: Vec<&str> = ["ports", "type"].into_iter().filter(differs).collect();
        if !starting || differing.is_empty() {
            return Ok(());
        }
        for name in differing {
            if let (Some(spec), Some(value)) =
                (service.get_mut("spec").and_then(Value::as_object_mut), spec(&to_be, name))
            {
                spec.insert(name.to_owned(), value);
            }
        }
        self.writer.replace(&wanted, &resource, service).await
    }

    /// Keeps the spec of a flow control object as it is meant to be, unless a user took that over.
    async fn keep_spec(&self, wanted: &Wanted) -> Result<(), Status> {
        let Some(found) = self.writer.ensure(wanted).await? else { return Ok(()) };
        let current = found.current.as_ref();
        if let Some(revised) =
            current.and_then(|current| flowcontrol::revised(&wanted.name, current, &found.wanted))
        {
            self.writer.replace(wanted, &found.resource, revised).await?;
        }
        Ok(())
    }
}

/// A condition in the status of an object.
fn condition<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    let conditions = object.get("status")?.get("conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == name)
}
