//! What every namespace has for the sake of its pods, and the tokens in Secrets.
//!
//! Upstream these are three controllers of kube-controller-manager: serviceaccount, root-ca-certificate-publisher and
//! serviceaccount-token. What is done is written under the name of its field manager.

mod namespaces;
mod tokens;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use concord_codec::{FieldValidation, MediaType};
use concord_meta::{CauseType, Reason, Status};
use concord_registry::{Body, Object, ObjectName, Part, Registry, Resource, Resources, UpdateRequest};
use concord_serviceaccounts::TokenGenerator;
use parking_lot::Mutex;
use serde_json::Value;

pub(crate) use self::{namespaces::Namespaces, tokens::Tokens};
use crate::{
    Error,
    own::{context, required},
};

/// Who owns the fields of what these controllers write.
const MANAGER: &str = "kube-controller-manager";

/// An object that was just put right is left alone for this long. If somebody insists on something else, such as a
/// controller with another idea of the authority, the two of them do not fill the log.
const LEAVE_ALONE: Duration = Duration::from_secs(10);

/// What the controllers of service accounts need.
#[derive(Debug, Clone)]
pub struct ServiceAccountsConfig {
    /// Signs the tokens in Secrets.
    pub generator: Arc<TokenGenerator>,
    /// The authorities that pods trust the server by, PEM.
    pub root_ca: String,
}

/// What both controllers use.
struct Common {
    registry: Arc<Registry>,
    accounts: Arc<Resource>,
    config: ServiceAccountsConfig,
    recent: Mutex<HashMap<String, Instant>>,
}

impl Common {
    fn new(
        registry: Arc<Registry>,
        resources: &dyn Resources,
        config: ServiceAccountsConfig,
    ) -> Result<Self, Error> {
        let accounts = required(resources, "", "v1", "serviceaccounts")?;
        Ok(Self { registry, accounts, config, recent: Mutex::default() })
    }

    /// Whether this was put right a moment ago. If not, it is now.
    fn too_soon(&self, what: String) -> bool {
        let now = Instant::now();
        let mut recent = self.recent.lock();
        recent.retain(|_, since| now.duration_since(*since) < LEAVE_ALONE);
        if recent.contains_key(&what) {
            return true;
        }
        recent.insert(what, now);
        false
    }

    async fn create(&self, resource: &Resource, namespace: &str, object: &Value) -> Result<(), Status> {
        let context = context(MANAGER);
        let bytes = concord_codec::encode(object);
        let body = Body { bytes: &bytes, media_type: MediaType::Json, validation: FieldValidation::Ignore };
        let object = resource.decode(body, &context)?;
        let created = Box::pin(self.registry.create(&context, resource, namespace, object)).await;
        match created {
            Err(status) if !is_settled(&status) => Err(status),
            _ => Ok(()),
        }
    }

    /// Replaces an object that was read before; if it is another one by now, that will be looked at in its turn.
    async fn replace(&self, resource: &Resource, at: ObjectName<'_>, object: Object) -> Result<(), Status> {
        let request = UpdateRequest { name: at, part: Part::Main, object };
        match Box::pin(self.registry.update(&context(MANAGER), resource, request)).await {
            Err(status) if ![Reason::CONFLICT, Reason::NOT_FOUND].contains(&status.reason) => Err(status),
            _ => Ok(()),
        }
    }
}

/// Whether there is nothing left to make: another server was faster, or the namespace is going or gone.
fn is_settled(status: &Status) -> bool {
    [Reason::ALREADY_EXISTS, Reason::NOT_FOUND].contains(&status.reason)
        || status.has_cause(&CauseType::NAMESPACE_TERMINATING)
}
