//! What pods get of service accounts.

mod mount;
mod secrets;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use concord_meta::{GroupResource, Status};
use concord_registry::{Admission, Attributes, Object, ObjectName, Operation, metadata};
use concord_replica::Scope;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::{Objects, objects::Kind};

/// The account of pods that name none.
const DEFAULT: &str = "default";

/// How long to wait for the account that every namespace is given: about as long as upstream tries.
const WAIT_FOR_DEFAULT: Duration = Duration::from_millis(1500);

/// How long to wait for the store to say what its newest state is.
const WAIT_FOR_STORE: Duration = Duration::from_secs(10);

/// The annotation of pods that stand for what a kubelet runs on its own.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// The annotation of accounts whose pods may use no other secrets than those of the account.
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";

/// Gives every pod an account, which must exist, and a volume with a token of it.
pub struct ServiceAccountAdmission {
    objects: Arc<Objects>,
}

impl ServiceAccountAdmission {
    /// For the accounts among these objects.
    pub fn new(objects: Arc<Objects>) -> Self {
        Self { objects }
    }

    /// The account, which may just be coming into being.
    async fn account(&self, namespace: &str, name: &str) -> Result<Object, Status> {
        let at = ObjectName { namespace, name };
        let replica = self.objects.replica();
        if let Ok(snapshot) = replica.newest()
            && let Ok(account) = self.objects.get(&snapshot, Kind::ServiceAccount, at)
        {
            return Ok(account);
        }
        let scope = Scope::key(self.objects.key(Kind::ServiceAccount, at)?);
        let changes = replica.snapshot_and_subscribe(scope);
        let (_, mut changes) = changes.map_err(Status::internal_error)?;
        let snapshot = replica.consistent(WAIT_FOR_STORE).await.map_err(Status::internal_error)?;
        let mut found = self.objects.get(&snapshot, Kind::ServiceAccount, at);
        let deadline = Instant::now() + WAIT_FOR_DEFAULT;
        while found.is_err() && name == DEFAULT {
            let Ok(Ok(batch)) = timeout_at(deadline, changes.next()).await else { break };
            if let Some(entry) = batch.last().and_then(|event| event.current()) {
                found = self.objects.read(Kind::ServiceAccount, entry);
            }
        }
        found.map_err(|_| Status::not_found(&GroupResource::new("", "serviceaccount"), name))
    }

    /// The account of a pod, or why the pod cannot be.
    async fn account_of(&self, attributes: &Attributes<'_>, pod: &Object) -> Result<Object, Status> {
        let namespace = attributes.namespace;
        let name = account_name(pod);
        if name.is_empty() {
            let pod = metadata(pod).name();
            return Err(forbidden(
                attributes,
                &format!("no service account specified for pod {namespace}/{pod}"),
            ));
        }
        let account = self.account(namespace, name).await;
        account.map_err(|status| {
            let why = status.message;
            forbidden(attributes, &format!("error looking up service account {namespace}/{name}: {why}"))
        })
    }
}

#[async_trait]
impl Admission for ServiceAccountAdmission {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    async fn admit(&self, attributes: &Attributes<'_>, object: Option<&mut Object>) -> Result<(), Status> {
        let Some(pod) = object.filter(|_| concerns(attributes)) else { return Ok(()) };
        // A kubelet runs its own pods as they are, and would delete one that looks different.
        if attributes.operation != Operation::Create || is_mirror(pod) {
            return Ok(());
        }
        let name = match account_name(pod) {
            "" => DEFAULT.to_owned(),
            name => name.to_owned(),
        };
        // The older name of the field says the same.
        if let Some(spec) = spec_mut(pod) {
            spec.insert("serviceAccountName".to_owned(), name.as_str().into());
            spec.insert("serviceAccount".to_owned(), name.as_str().into());
        }
        let account = self.account_of(attributes, pod).await?;
        if mounts_token(&account, pod) {
            mount::mount_token(pod);
        }
        add_pull_secrets(&account, pod);
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Object>) -> Result<(), Status> {
        let Some(pod) = object.filter(|_| concerns(attributes)) else { return Ok(()) };
        let ephemeral = attributes.subresource == "ephemeralcontainers";
        match attributes.operation {
            Operation::Create if is_mirror(pod) => {
                return secrets::check_mirror(pod).map_err(|why| forbidden(attributes, why));
            }
            Operation::Create if !ephemeral => {}
            Operation::Update if ephemeral => {}
            _ => return Ok(()),
        }
        let account = self.account_of(attributes, pod).await?;
        if !is_enforced(&account) {
            return Ok(());
        }
        let checked = match ephemeral {
            true => secrets::check_ephemeral(&account, pod),
            false => secrets::check(&account, pod),
        };
        checked.map_err(|why| forbidden(attributes, &why))
    }
}

fn concerns(attributes: &Attributes<'_>) -> bool {
    let resource = attributes.resource;
    resource.version.group.is_empty()
        && resource.names.plural == "pods"
        && ["", "ephemeralcontainers"].contains(&attributes.subresource)
}

fn forbidden(attributes: &Attributes<'_>, why: &str) -> Status {
    Status::forbidden(&attributes.resource.group_resource(), attributes.name, why)
}

fn spec_mut(pod: &mut Object) -> Option<&mut Object> {
    pod.get_mut("spec").and_then(Value::as_object_mut)
}

fn account_name(pod: &Object) -> &str {
    let text = |name: &str| {
        pod.get("spec").and_then(|spec| spec.get(name)?.as_str()).filter(|text| !text.is_empty())
    };
    text("serviceAccountName").or_else(|| text("serviceAccount")).unwrap_or_default()
}

fn annotation<'a>(object: &'a Object, name: &str) -> Option<&'a str> {
    metadata(object).get("annotations").and_then(|annotations| annotations.get(name)?.as_str())
}

fn is_mirror(pod: &Object) -> bool {
    annotation(pod, MIRROR).is_some()
}

/// What Go's `ParseBool` takes for true.
fn is_enforced(account: &Object) -> bool {
    annotation(account, ENFORCE).is_some_and(|value| ["1", "t", "T", "TRUE", "true", "True"].contains(&value))
}

/// What the pod wants, or else the account; by default it does.
fn mounts_token(account: &Object, pod: &Object) -> bool {
    let name = "automountServiceAccountToken";
    let of_pod = pod.get("spec").and_then(|spec| spec.get(name)?.as_bool());
    of_pod.or_else(|| account.get(name).and_then(Value::as_bool)).unwrap_or(true)
}

/// Pods without pull secrets have those of the account.
fn add_pull_secrets(account: &Object, pod: &mut Object) {
    let Some(secrets) = account.get("imagePullSecrets").and_then(Value::as_array) else { return };
    let names: Vec<Value> = secrets.iter().map(|secret| json!({"name": secret["name"]})).collect();
    let Some(spec) = spec_mut(pod).filter(|_| !names.is_empty()) else { return };
    let own = spec.get("imagePullSecrets").and_then(Value::as_array);
    if own.is_none_or(Vec::is_empty) {
        spec.insert("imagePullSecrets".to_owned(), names.into());
    }
}

#[cfg(test)]
mod tests;
