//! What all of admission looks things up in.

use std::{
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use arc_swap::ArcSwap;
use concord_codec::{Options, decode};
use concord_meta::{GroupResource, GroupVersionKind, Status};
use concord_registry::{Object, Resource, Resources};
use concord_replica::{Replica, Snapshot};
use concord_server::{Authorizer, Metrics};
use concord_webhook::Client;

use crate::view::Configured;

/// How long to wait for the newest state, if what is at hand does not have what it should.
const WAIT: Duration = Duration::from_secs(5);

/// What all of admission looks things up in.
pub(crate) struct Shared {
    pub(crate) replica: Arc<Replica>,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) client: Client,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) configured: Arc<ArcSwap<Configured>>,
    /// Weak, because what serves the resources has admission, too.
    pub(crate) resources: OnceLock<Weak<dyn Resources>>,
    /// Where namespaces are, with a slash at the end.
    pub(crate) namespaces: String,
    /// Whether MutatingAdmissionPolicies have an effect.
    pub(crate) mutating_policies: bool,
    /// Whether mutating webhooks are asked.
    pub(crate) mutating_webhooks: bool,
}

impl Shared {
    /// All resources that are served.
    pub(crate) fn resources(&self) -> Vec<Arc<Resource>> {
        let resources = self.resources.get().and_then(Weak::upgrade);
        resources.map(|resources| resources.all()).unwrap_or_default()
    }

    /// The resource whose objects are of a kind.
    pub(crate) fn resource_of_kind(&self, kind: &GroupVersionKind) -> Option<Arc<Resource>> {
        let mut all = self.resources().into_iter();
        all.find(|resource| resource.kind() == *kind && resource.storage().is_some())
    }

    pub(crate) fn snapshot(&self) -> Result<Snapshot, Status> {
        self.replica.newest().map_err(Status::internal_error)
    }

    /// A namespace.
    ///
    /// # Errors
    ///
    /// 404, when it is certain that there is none.
    pub(crate) async fn namespace(&self, name: &str) -> Result<Object, Status> {
        let key = format!("{}{name}", self.namespaces);
        let read = |snapshot: &Snapshot| {
            let entry = snapshot.get(key.as_bytes())?;
            let decoded = decode(&entry.value, &Options::default()).ok()?;
            Some(decoded.object)
        };
        if let Some(found) = self.snapshot().ok().as_ref().and_then(read) {
            return Ok(found);
        }
        let newest = self.replica.consistent(WAIT).await.map_err(Status::internal_error)?;
        read(&newest).ok_or_else(|| Status::not_found(&GroupResource::new("", "namespaces"), name))
    }
}
