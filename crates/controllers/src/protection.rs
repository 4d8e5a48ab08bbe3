//! Lets storage go that is not in use any more.
//!
//! Upstream these are three controllers of kube-controller-manager. They take away the finalizers that the admission plugin
//! StorageObjectInUseProtection gives.

use std::{collections::BTreeSet, sync::Arc};

use concord_meta::{Reason, Status};
use concord_registry::{
    Item, Object, ObjectName, Part, Registry, Resource, Resources, UpdateRequest, metadata, metadata_mut,
};
use concord_replica::{Event, EventKind, Scope, Snapshot};
use concord_store::KeyRange;
use memchr::memmem;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    Error,
    lifecycle::terminating,
    own::{consistent, context, required, served},
    queue::{self, Sync},
};

const MANAGER: &str = "kube-controller-manager";

/// What is protected, in the order of the scopes that are followed; pods come after them.
const CLAIMS: usize = 0;
const VOLUMES: usize = 1;
const CLASSES: usize = 2;
const FINALIZERS: [&str; 3] =
    ["kubernetes.io/pvc-protection", "kubernetes.io/pv-protection", "kubernetes.io/vac-protection"];

/// Takes the finalizers of what is being deleted and not in use.
pub struct StorageProtection {
    registry: Arc<Registry>,
    /// Claims, volumes, and classes of volume attributes if they are served.
    protected: Vec<Arc<Resource>>,
    pods: Arc<Resource>,
}

/// Which of the protected kinds, the namespace and the name.
type Work = (usize, String, String);

impl StorageProtection {
    /// For the claims and volumes among the resources.
    ///
    /// # Errors
    ///
    /// [`Error::NotServed`] if there are none.
    pub fn new(registry: Arc<Registry>, resources: &dyn Resources) -> Result<Self, Error> {
        let mut protected = vec![
            required(resources, "", "v1", "persistentvolumeclaims")?,
            required(resources, "", "v1", "persistentvolumes")?,
        ];
        let versions = ["v1", "v1beta1"];
        let classes = |version| served(resources, "storage.k8s.io", version, "volumeattributesclasses");
        protected.extend(versions.into_iter().find_map(classes));
        Ok(Self { registry, protected, pods: required(resources, "", "v1", "pods")? })
    }

    /// Goes on until it is cancelled or the replica ends.
    pub async fn run(self: Arc<Self>, cancel: CancellationToken) {
        let followed = self.protected.iter().chain([&self.pods]);
        let scopes = followed.filter_map(|resource| Some(Scope::prefix(resource.storage()?.prefix.clone())));
        let scopes: Vec<Scope> = scopes.collect();
        cancel.run_until_cancelled(queue::run(self.as_ref(), &self.registry, &scopes)).await;
    }

    /// All of one kind that is being deleted, in one namespace or in all.
    fn leaving(
        &self,
        snapshot: &Snapshot,
        which: usize,
        namespace: Option<&str>,
        items: &mut BTreeSet<Work>,
    ) {
        let Some(storage) = self.protected.get(which).and_then(|resource| resource.storage()) else { return };
        let entries = snapshot.scan(&KeyRange::prefix(storage.key_prefix(namespace)));
        let leaving = entries.filter(|entry| terminating(storage, entry).is_some());
        let names = leaving.filter_map(|entry| storage.object_name(&entry.key));
        items.extend(names.map(|at| (which, at.namespace.to_owned(), at.name.to_owned())));
    }

    /// Whether something uses the object, in this state.
    fn is_used(&self, snapshot: &Snapshot, which: usize, object: &Object) -> Result<bool, Status> {
        let name = metadata(object).name();
        let uses = |resource: &Resource, namespace: Option<&str>, uses: &dyn Fn(&Object) -> bool| {
            let Some(storage) = resource.storage() else { return Ok(false) };
            let range = KeyRange::prefix(storage.key_prefix(namespace));
            let naming =
                snapshot.scan(&range).filter(|entry| memmem::find(&entry.value, name.as_bytes()).is_some());
            for entry in naming {
                if uses(&storage.object(&Item::from(entry))?) {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        match which {
            CLAIMS => uses(&self.pods, Some(metadata(object).namespace()), &|pod| uses_claim(pod, object)),
            VOLUMES => Ok(text(object, &["status", "phase"]) == "Bound"),
            _ => Ok(uses(&self.protected[CLAIMS], None, &|claim| claim_has_class(claim, name))?
                || uses(&self.protected[VOLUMES], None, &|volume| {
                    text(volume, &["spec", "volumeAttributesClassName"]) == name
                })?),
        }
    }
}

impl Sync for StorageProtection {
    type Item = Work;
    const QUEUE: &str = "pvcprotection";

    fn all(&self, snapshot: &Snapshot, items: &mut BTreeSet<Work>) {
        (0..self.protected.len()).for_each(|which| self.leaving(snapshot, which, None, items));
    }

    fn changed(&self, scope: usize, event: &Event, items: &mut BTreeSet<Work>) {
        let gone = matches!(event.kind, EventKind::Deleted { .. });
        if let Some(storage) = self.protected.get(scope).and_then(|resource| resource.storage())
            && let Some(at) = storage.object_name(event.key())
            && let EventKind::Created(entry) | EventKind::Modified { current: entry, .. } = &event.kind
            && terminating(storage, entry).is_some()
        {
            items.insert((scope, at.namespace.to_owned(), at.name.to_owned()));
        }
        // Whatever used something may do so no longer. A pod uses claims of its own namespace, of which there are few.
        let pod = || self.pods.storage().and_then(|storage| storage.object_name(event.key()));
        let freed = match scope {
            // Where no classes are served, pods have their place among the scopes.
            pods if pods == self.protected.len() => {
                pod().filter(|_| gone).map(|pod| (CLAIMS, Some(pod.namespace)))
            }
            CLAIMS | VOLUMES => Some((CLASSES, None)),
            _ => None,
        };
        if let Some((which, namespace)) = freed
            && let Ok(snapshot) = self.registry.replica().newest()
        {
            self.leaving(&snapshot, which, namespace, items);
        }
    }

    async fn sync(&self, (which, namespace, name): &Work) -> Result<(), Status> {
        let resource = &self.protected[*which];
        let at = ObjectName { namespace, name };
        // Nothing is let go for a state that may be old.
        let snapshot = consistent(&self.registry).await?;
        let entry = resource.storage().and_then(|storage| snapshot.get(&storage.key(at)));
        let Some(entry) = entry else { return Ok(()) };
        let mut object = resource.object(&Item::from(entry))?;
        let protected = metadata(&object).finalizers().contains(&FINALIZERS[*which]);
        let leaving = metadata(&object).is_terminating();
        if !protected || !leaving || self.is_used(&snapshot, *which, &object)? {
            return Ok(());
        }
        if let Some(finalizers) =
            metadata_mut(&mut object).get_mut("finalizers").and_then(Value::as_array_mut)
        {
            finalizers.retain(|finalizer| finalizer != FINALIZERS[*which]);
        }
        let request = UpdateRequest { name: at, part: Part::Main, object };
        match Box::pin(self.registry.update(&context(MANAGER), resource, request)).await {
            Err(status) if status.reason != Reason::NOT_FOUND => Err(status),
            _ => Ok(()),
        }
    }
}

fn text<'a>(object: &'a Object, path: &[&str]) -> &'a str {
    let found = path.split_first().and_then(|(first, rest)| {
        rest.iter().try_fold(object.get(*first)?, |value: &Value, name| value.get(name))?.as_str()
    });
    found.unwrap_or_default()
}

/// Whether a pod that runs on a node has a volume of the claim.
fn uses_claim(pod: &Object, claim: &Object) -> bool {
    if text(pod, &["spec", "nodeName"]).is_empty() {
        return false;
    }
    let (pod_name, name) = (metadata(pod).name(), metadata(claim).name());
    let is_shut_down = metadata(pod).is_terminating() && metadata(pod).deletion_grace_period() == Some(0);
    let owners = metadata(claim).get("ownerReferences").and_then(Value::as_array).into_iter().flatten();
    let is_own =
        || owners.clone().any(|owner| owner["controller"] == true && owner["uid"] == metadata(pod).uid());
    let volumes = pod.get("spec").and_then(|spec| spec.get("volumes")?.as_array()).into_iter().flatten();
    volumes.into_iter().any(|volume| {
        let ephemeral = || format!("{pod_name}-{}", volume["name"].as_str().unwrap_or_default()) == name;
        volume["persistentVolumeClaim"]["claimName"] == name
            || (volume["ephemeral"].is_object() && !is_shut_down && ephemeral() && is_own())
    })
}

fn claim_has_class(claim: &Object, name: &str) -> bool {
    let paths: [&[&str]; 3] = [
        &["spec", "volumeAttributesClassName"],
        &["status", "currentVolumeAttributesClassName"],
        &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"],
    ];
    paths.iter().any(|path| text(claim, path) == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: &Value) -> Object {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn pods_on_nodes_use_their_claims() {
        let claim = object(
            &json!({"metadata": {"name": "web-data", "ownerReferences": [{"uid": "u", "controller": true}]}}),
        );
        let pod = |spec: Value| object(&json!({"metadata": {"name": "web", "uid": "u"}, "spec": spec}));
        let by_name = json!([{"name": "x", "persistentVolumeClaim": {"claimName": "web-data"}}]);
        let by_pod = json!([{"name": "data", "ephemeral": {}}]);
        assert!(uses_claim(&pod(json!({"nodeName": "n", "volumes": by_name})), &claim));
        assert!(!uses_claim(&pod(json!({"volumes": by_name})), &claim), "no node has seen it");
        assert!(uses_claim(&pod(json!({"nodeName": "n", "volumes": by_pod})), &claim));
        let mut other = pod(json!({"nodeName": "n", "volumes": by_pod}));
        other["metadata"]["uid"] = "v".into();
        assert!(!uses_claim(&other, &claim), "a claim of another pod of that name");
        assert!(claim_has_class(
            &object(&json!({"status": {"currentVolumeAttributesClassName": "gold"}})),
            "gold"
        ));
    }
}
