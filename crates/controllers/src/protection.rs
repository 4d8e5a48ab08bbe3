//! Lets storage and groups of pods go that are not in use any more.
//!
//! Upstream these are four controllers of kube-controller-manager. They take away the finalizers that the admission plugins
//! StorageObjectInUseProtection and PodGroupProtection give.

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

/// What is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Claims,
    Volumes,
    Classes,
    Groups,
}

impl Kind {
    fn finalizer(self) -> &'static str {
        match self {
            Self::Claims => "kubernetes.io/pvc-protection",
            Self::Volumes => "kubernetes.io/pv-protection",
            Self::Classes => "kubernetes.io/vac-protection",
            Self::Groups => "scheduling.k8s.io/podgroup-protection",
        }
    }
}

/// Takes the finalizers of what is being deleted and not in use.
pub struct InUseProtection {
    registry: Arc<Registry>,
    /// Claims, volumes, and classes of volume attributes and groups of pods if they are served, in the order of the scopes
    /// that are followed; pods come after them.
    protected: Vec<(Kind, Arc<Resource>)>,
    pods: Arc<Resource>,
}

/// Which of the protected kinds, the namespace and the name.
type Work = (Kind, String, String);

impl InUseProtection {
    /// For the claims and volumes among the resources, and what else there is.
    ///
    /// # Errors
    ///
    /// [`Error::NotServed`] if there are none.
    pub fn new(registry: Arc<Registry>, resources: &dyn Resources) -> Result<Self, Error> {
        let mut protected = vec![
            (Kind::Claims, required(resources, "", "v1", "persistentvolumeclaims")?),
            (Kind::Volumes, required(resources, "", "v1", "persistentvolumes")?),
        ];
        let versions = ["v1", "v1beta1"];
        let classes = |version| served(resources, "storage.k8s.io", version, "volumeattributesclasses");
        protected.extend(versions.into_iter().find_map(classes).map(|classes| (Kind::Classes, classes)));
        let groups = served(resources, "scheduling.k8s.io", "v1alpha2", "podgroups");
        protected.extend(groups.map(|groups| (Kind::Groups, groups)));
        Ok(Self { registry, protected, pods: required(resources, "", "v1", "pods")? })
    }

    /// Goes on until it is cancelled or the replica ends.
    pub async fn run(self: Arc<Self>, cancel: CancellationToken) {
        let followed = self.protected.iter().map(|(_, resource)| resource).chain([&self.pods]);
        let scopes = followed.filter_map(|resource| Some(Scope::prefix(resource.storage()?.prefix.clone())));
        let scopes: Vec<Scope> = scopes.collect();
        cancel.run_until_cancelled(queue::run(self.as_ref(), &self.registry, &scopes)).await;
    }

    fn resource(&self, kind: Kind) -> Option<&Arc<Resource>> {
        self.protected.iter().find(|(other, _)| *other == kind).map(|(_, resource)| resource)
    }

    /// All of one kind that is being deleted, in one namespace or in all.
    fn leaving(&self, snapshot: &Snapshot, kind: Kind, namespace: Option<&str>, items: &mut BTreeSet<Work>) {
        let Some(storage) = self.resource(kind).and_then(|resource| resource.storage()) else { return };
        let entries = snapshot.scan(&KeyRange::prefix(storage.key_prefix(namespace)));
        let leaving = entries.filter(|entry| terminating(storage, entry).is_some());
        let names = leaving.filter_map(|entry| storage.object_name(&entry.key));
        items.extend(names.map(|at| (kind, at.namespace.to_owned(), at.name.to_owned())));
    }

    /// Whether something uses the object, in this state.
    fn is_used(&self, snapshot: &Snapshot, kind: Kind, object: &Object) -> Result<bool, Status> {
        let (name, namespace) = (metadata(object).name(), metadata(object).namespace());
        let uses = |resource: Option<&Arc<Resource>>,
                    namespace: Option<&str>,
                    uses: &dyn Fn(&Object) -> bool| {
            let Some(storage) = resource.and_then(|resource| resource.storage()) else { return Ok(false) };
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
        match kind {
            Kind::Claims => uses(Some(&self.pods), Some(namespace), &|pod| uses_claim(pod, object)),
            Kind::Volumes => Ok(text(object, &["status", "phase"]) == "Bound"),
            Kind::Classes => {
                Ok(uses(self.resource(Kind::Claims), None, &|claim| claim_has_class(claim, name))?
                    || uses(self.resource(Kind::Volumes), None, &|volume| {
                        text(volume, &["spec", "volumeAttributesClassName"]) == name
                    })?)
            }
            Kind::Groups => uses(Some(&self.pods), Some(namespace), &|pod| is_in_group(pod, name)),
        }
    }

    /// What a change of a pod, or its end, may have freed: a pod uses things of its own namespace, of which there are few.
    fn freed_by_pod(&self, event: &Event, items: &mut BTreeSet<Work>) {
        let at = self.pods.storage().and_then(|storage| storage.object_name(event.key()));
        let Some(namespace) = at.map(|at| at.namespace) else { return };
        let ended = match &event.kind {
            EventKind::Deleted { .. } => true,
            EventKind::Created(entry) | EventKind::Modified { current: entry, .. } => {
                let phases: [&[u8]; 2] = [b"\"Succeeded\"", b"\"Failed\""];
                phases.iter().any(|phase| memmem::find(&entry.value, phase).is_some())
            }
        };
        let Some(snapshot) = ended.then(|| self.registry.replica().newest().ok()).flatten() else { return };
        self.leaving(&snapshot, Kind::Groups, Some(namespace), items);
        if matches!(event.kind, EventKind::Deleted { .. }) {
            self.leaving(&snapshot, Kind::Claims, Some(namespace), items);
        }
    }
}

impl Sync for InUseProtection {
    type Item = Work;
    const QUEUE: &str = "pvcprotection";

    fn all(&self, snapshot: &Snapshot, items: &mut BTreeSet<Work>) {
        self.protected.iter().for_each(|(kind, _)| self.leaving(snapshot, *kind, None, items));
    }

    fn changed(&self, scope: usize, event: &Event, items: &mut BTreeSet<Work>) {
        let Some((kind, resource)) = self.protected.get(scope) else {
            return self.freed_by_pod(event, items);
        };
        if let Some(storage) = resource.storage()
            && let Some(at) = storage.object_name(event.key())
            && let EventKind::Created(entry) | EventKind::Modified { current: entry, .. } = &event.kind
            && terminating(storage, entry).is_some()
        {
            items.insert((*kind, at.namespace.to_owned(), at.name.to_owned()));
        }
        // Whatever had a class may have it no longer.
        if matches!(kind, Kind::Claims | Kind::Volumes)
            && let Ok(snapshot) = self.registry.replica().newest()
        {
            self.leaving(&snapshot, Kind::Classes, None, items);
        }
    }

    async fn sync(&self, (kind, namespace, name): &Work) -> Result<(), Status> {
        let Some(resource) = self.resource(*kind) else { return Ok(()) };
        let at = ObjectName { namespace, name };
        // Nothing is let go for a state that may be old.
        let snapshot = consistent(&self.registry).await?;
        let entry = resource.storage().and_then(|storage| snapshot.get(&storage.key(at)));
        let Some(entry) = entry else { return Ok(()) };
        let mut object = resource.object(&Item::from(entry))?;
        let protected = metadata(&object).finalizers().contains(&kind.finalizer());
        let leaving = metadata(&object).is_terminating();
        if !protected || !leaving || self.is_used(&snapshot, *kind, &object)? {
            return Ok(());
        }
        if let Some(finalizers) =
            metadata_mut(&mut object).get_mut("finalizers").and_then(Value::as_array_mut)
        {
            finalizers.retain(|finalizer| finalizer != kind.finalizer());
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

/// Whether a pod that has not ended is one of a group.
fn is_in_group(pod: &Object, group: &str) -> bool {
    text(pod, &["spec", "schedulingGroup", "podGroupName"]) == group
        && !["Succeeded", "Failed"].contains(&text(pod, &["status", "phase"]))
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

    #[test]
    fn pods_that_have_not_ended_use_their_group() {
        let pod = |group: &str, phase: &str| {
            object(&json!({"spec": {"schedulingGroup": {"podGroupName": group}}, "status": {"phase": phase}}))
        };
        assert!(is_in_group(&pod("g", "Pending"), "g"));
        assert!(is_in_group(&pod("g", "Running"), "g"));
        assert!(!is_in_group(&pod("h", "Running"), "g"));
        assert!(!is_in_group(&pod("g", "Succeeded"), "g"));
        assert!(!is_in_group(&pod("g", "Failed"), "g"));
    }
}
