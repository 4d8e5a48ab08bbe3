//! Says in the status of admission policies what does not fit in their expressions.

use std::{
    collections::BTreeSet,
    sync::{Arc, Weak},
};

use concord_admission::expression_warnings;
use concord_codec::{FieldValidation, PatchType};
use concord_meta::{Reason, Status};
use concord_registry::{
    Item, Object, ObjectName, Part, PatchRequest, Registry, Resource, Resources, metadata,
};
use concord_replica::{Event, EventKind, Scope, Snapshot};
use concord_store::KeyRange;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    Error,
    own::{context, required},
    queue::{self, Sync},
};

/// Who owns what it writes.
const MANAGER: &str = "validatingadmissionpolicy-status";

/// Keeps the status of ValidatingAdmissionPolicies: upstream a controller of kube-controller-manager.
pub struct PolicyStatus {
    registry: Arc<Registry>,
    policies: Arc<Resource>,
    resources: Weak<dyn Resources>,
}

impl PolicyStatus {
    /// For the policies that are among the resources.
    ///
    /// # Errors
    ///
    /// [`Error::NotServed`] if there are none.
    pub fn new(registry: Arc<Registry>, resources: &Arc<dyn Resources>) -> Result<Self, Error> {
        let group = "admissionregistration.k8s.io";
        let policies = required(resources.as_ref(), group, "v1", "validatingadmissionpolicies")?;
        Ok(Self { registry, policies, resources: Arc::downgrade(resources) })
    }

    /// Goes on until it is cancelled or the replica ends.
    pub async fn run(self: Arc<Self>, cancel: CancellationToken) {
        let scopes = [Scope::prefix(self.range().start)];
        cancel.run_until_cancelled(queue::run(self.as_ref(), &self.registry, &scopes)).await;
    }

    fn range(&self) -> KeyRange {
        let storage = self.policies.storage().expect("a required resource is stored");
        KeyRange::prefix(storage.prefix.clone())
    }

    fn name(&self, key: &[u8]) -> Option<String> {
        Some(self.policies.storage()?.object_name(key)?.name.to_owned())
    }

    async fn write(&self, name: &str, status: Value) -> Result<(), Status> {
        let body = json!({
            "apiVersion": self.policies.version.to_string(),
            "kind": self.policies.names.kind,
            "metadata": {"name": name},
            "status": status,
        });
        let body = body.to_string();
        let request = PatchRequest {
            name: ObjectName { namespace: "", name },
            part: Part::Sub("status"),
            patch_type: PatchType::Apply,
            body: body.as_bytes(),
            force: true,
            validation: FieldValidation::Strict,
        };
        match Box::pin(self.registry.patch(&context(MANAGER), &self.policies, request)).await {
            Err(status) if status.reason != Reason::NOT_FOUND => Err(status),
            _ => Ok(()),
        }
    }
}

impl Sync for PolicyStatus {
    type Item = String;
    const QUEUE: &str = "validatingadmissionpolicy-status";

    fn all(&self, snapshot: &Snapshot, items: &mut BTreeSet<String>) {
        items.extend(snapshot.scan(&self.range()).filter_map(|entry| self.name(&entry.key)));
    }

    fn changed(&self, _: usize, event: &Event, items: &mut BTreeSet<String>) {
        if !matches!(event.kind, EventKind::Deleted { .. }) {
            items.extend(self.name(event.key()));
        }
    }

    async fn sync(&self, name: &String) -> Result<(), Status> {
        let snapshot = self.registry.replica().newest().map_err(Status::internal_error)?;
        let storage = self.policies.storage().expect("a required resource is stored");
        let entry = snapshot.get(&storage.key(ObjectName { namespace: "", name }));
        let (Some(entry), Some(resources)) = (entry, self.resources.upgrade()) else { return Ok(()) };
        let policy = self.policies.object(&Item::from(entry))?;
        let (generation, observed) = generations(&policy);
        if generation <= observed {
            return Ok(());
        }
        let warnings = expression_warnings(&policy, resources.as_ref());
        let warnings =
            warnings.into_iter().map(|of| json!({"fieldRef": of.field_ref, "warning": of.warning}));
        let warnings: Vec<Value> = warnings.collect();
        let found = if warnings.is_empty() { json!({}) } else { json!({"expressionWarnings": warnings}) };
        self.write(name, json!({"observedGeneration": generation, "typeChecking": found})).await
    }
}

/// Which generation a policy is of, and which one its status is about.
fn generations(policy: &Object) -> (i64, i64) {
    let number = |value: Option<&Value>| value.and_then(Value::as_i64).unwrap_or_default();
    let observed = policy.get("status").and_then(|status| status.get("observedGeneration"));
    (number(metadata(policy).get("generation")), number(observed))
}
