//! What nodes may write.

mod labels;
mod mirror;

use async_trait::async_trait;
use concord_meta::{Status, UserInfo};
use concord_registry::{Admission, Attributes, Object, Operation, metadata};
use serde_json::Value;

use self::{labels::forbidden_labels, mirror::reference};
use crate::{Objects, at, forbidden, subjects::common_name};

const USER: &str = "system:node:";
const GROUP: &str = "system:nodes";
const LEASES: &str = "kube-node-lease";
const MIRROR: &str = "kubernetes.io/config.mirror";
const SIGNERS: [&str; 2] = ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"];

/// Lets nodes write only what concerns themselves: their Node, their pods, their leases. Not on by default.
pub struct NodeRestriction {
    pods: Objects,
    nodes: Objects,
}

impl NodeRestriction {
    /// By what these pods and nodes are.
    pub fn new(pods: Objects, nodes: Objects) -> Self {
        Self { pods, nodes }
    }

    async fn check(
        &self,
        attributes: &Attributes<'_>,
        node: &str,
        object: Option<&Object>,
    ) -> Result<(), Why> {
        let resource = attributes.resource;
        let about = (resource.version.group.as_str(), resource.names.plural.as_str());
        match (about, attributes.subresource) {
            (("", "pods"), "") => self.pod(attributes, node, object).await,
            (("", "pods"), "status") => pod_status(attributes, node, object),
            (("", "pods"), "eviction") => self.eviction(attributes, node).await,
            (("", "pods"), other) => refuse(format!(
                "unexpected pod subresource {other:?}, only 'status' and 'eviction' are allowed"
            )),
            (("", "nodes"), _) => own_node(attributes, node, object),
            (("", "persistentvolumeclaims"), "status") => claim_status(attributes, node, object),
            (("", "persistentvolumeclaims"), _) => refuse("may only update PVC status"),
            (("", "serviceaccounts"), "token") => self.token(attributes, node, object).await,
            (("coordination.k8s.io", "leases"), _) => lease(attributes, node),
            (("storage.k8s.io", "csinodes"), _) if attributes.name != node => {
                refuse("can only access CSINode with the same name as the requesting node")
            }
            (("resource.k8s.io", "resourceslices"), _) => slice(attributes, node, object),
            (("certificates.k8s.io", "certificatesigningrequests"), "") => request(attributes, node, object),
            _ => Ok(()),
        }
    }

    async fn pod(&self, attributes: &Attributes<'_>, node: &str, object: Option<&Object>) -> Result<(), Why> {
        match (attributes.operation, object) {
            (Operation::Create, Some(pod)) => self.mirror_pod(node, pod).await,
            (Operation::Delete, _) => {
                let found = self.find_pod(attributes, attributes.name).await?;
                let why = || format!("node {node:?} can only delete pods with spec.nodeName set to itself");
                demand(text(&found, &["spec", "nodeName"]) == node, why)
            }
            (operation, _) => {
                let operation = verb(operation);
                refuse(format!(
                    "unexpected operation {operation:?}, node {node:?} can only create and delete mirror pods"
                ))
            }
        }
    }

    async fn find_pod(&self, attributes: &Attributes<'_>, name: &str) -> Result<Object, Why> {
        let found = self.pods.find_in(attributes.namespace, name).await?;
        found.ok_or_else(|| Why::Status(Status::not_found(&self.pods.resource(), name)))
    }

    async fn mirror_pod(&self, node: &str, pod: &Object) -> Result<(), Why> {
        let annotations = metadata(pod).get("annotations");
        demand(annotations.is_some_and(|all| all.get(MIRROR).is_some()), || {
            format!("pod does not have {MIRROR:?} annotation, node {node:?} can only create mirror pods")
        })?;
        demand(text(pod, &["spec", "nodeName"]) == node, || {
            format!("node {node:?} can only create pods with spec.nodeName set to itself")
        })?;
        let owners =
            metadata(pod).get("ownerReferences").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        demand(owners.len() < 2, || {
            format!("node {node:?} can only create pods with a single owner reference set to itself")
        })?;
        let owner = owners
            .first()
            .filter(|owner| owner["apiVersion"] == "v1" && owner["kind"] == "Node" && owner["name"] == node);
        let Some(owner) = owner else {
            return refuse(format!(
                "node {node:?} can only create pods with an owner reference set to itself"
            ));
        };
        demand(owner["controller"] == true, || {
            format!("node {node:?} can only create pods with a controller owner reference set to itself")
        })?;
        demand(owner["blockOwnerDeletion"] != true, || {
            format!("node {node:?} must not set blockOwnerDeletion on an owner reference")
        })?;
        let found = self.nodes.find(node).await?;
        let found = found.ok_or_else(|| Why::Status(Status::not_found(&self.nodes.resource(), node)))?;
        let (said, uid) = (owner["uid"].as_str().unwrap_or_default(), metadata(&found).uid());
        demand(said == uid, || format!("node {node} UID mismatch: expected {said} got {uid}"))?;
        match reference(pod) {
            None => Ok(()),
            Some(what) => refuse(format!("node {node:?} can not create pods that reference {what}")),
        }
    }

    async fn eviction(&self, attributes: &Attributes<'_>, node: &str) -> Result<(), Why> {
        if attributes.operation != Operation::Create {
            return refuse(format!("unexpected operation {}", verb(attributes.operation)));
        }
        let found = self.find_pod(attributes, attributes.name).await?;
        demand(text(&found, &["spec", "nodeName"]) == node, || {
            format!("node {node} can only evict pods with spec.nodeName set to itself")
        })
    }

    async fn token(
        &self,
        attributes: &Attributes<'_>,
        node: &str,
        object: Option<&Object>,
    ) -> Result<(), Why> {
        let Some(request) = object.filter(|_| attributes.operation == Operation::Create) else {
            return Ok(());
        };
        let said = |field: &str| text(request, &["spec", "boundObjectRef", field]);
        demand(said("apiVersion") == "v1" && said("kind") == "Pod" && !said("name").is_empty(), || {
            "node requested token not bound to a pod".to_owned()
        })?;
        let uid = said("uid");
        demand(!uid.is_empty(), || "node requested token with a pod binding without a uid".to_owned())?;
        let pod = self.find_pod(attributes, said("name")).await?;
        demand(metadata(&pod).uid() == uid, || {
            format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have \
                 been deleted and then recreated"
            )
        })?;
        demand(text(&pod, &["spec", "nodeName"]) == node, || {
            "node requested token bound to a pod scheduled on a different node".to_owned()
        })
    }
}

#[async_trait]
impl Admission for NodeRestriction {
    fn name(&self) -> &'static str {
        "NodeRestriction"
    }

    async fn admit(&self, attributes: &Attributes<'_>, object: Option<&mut Object>) -> Result<(), Status> {
        let Some(node) = node(&attributes.context.user) else { return Ok(()) };
        let checked = match node {
            "" => refuse(format!("could not determine node from user {:?}", attributes.context.user.name)),
            node => self.check(attributes, node, object.as_deref()).await,
        };
        checked.map_err(|why| match why {
            Why::Forbidden(why) => forbidden(attributes, &why),
            Why::Status(status) => status,
        })
    }
}

/// Why a node may not do something.
#[derive(Debug, PartialEq)]
enum Why {
    Forbidden(String),
    Status(Status),
}

impl From<Status> for Why {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

fn refuse<T>(why: impl Into<String>) -> Result<T, Why> {
    Err(Why::Forbidden(why.into()))
}

fn demand(holds: bool, why: impl FnOnce() -> String) -> Result<(), Why> {
    if holds { Ok(()) } else { refuse(why()) }
}

/// The name of the node that a user is.
fn node(user: &UserInfo) -> Option<&str> {
    user.name.strip_prefix(USER).filter(|_| user.groups.iter().any(|group| group == GROUP))
}

fn verb(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
        Operation::Connect => "CONNECT",
    }
}

fn text<'a>(object: &'a Object, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

fn pod_status(attributes: &Attributes<'_>, node: &str, object: Option<&Object>) -> Result<(), Why> {
    let (Operation::Update, Some(new), Some(old)) = (attributes.operation, object, attributes.old) else {
        return refuse(format!("unexpected operation {:?}", verb(attributes.operation)));
    };
    demand(text(old, &["spec", "nodeName"]) == node, || {
        format!("node {node:?} can only update pod status for pods with spec.nodeName set to itself")
    })?;
    let is_same = |path: &[&str]| at(old, path) == at(new, path);
    demand(is_same(&["metadata", "labels"]), || {
        format!("node {node:?} cannot update labels through pod status")
    })?;
    demand(is_same(&["status", "resourceClaimStatuses"]), || {
        format!("node {node:?} cannot update resource claim statues")
    })?;
    demand(is_same(&["status", "extendedResourceClaimStatus"]), || {
        format!("node {node:?} cannot update extended resource claim status")
    })
}

fn own_node(attributes: &Attributes<'_>, node: &str, object: Option<&Object>) -> Result<(), Why> {
    let name = attributes.name;
    demand(name == node, || format!("node {node:?} is not allowed to modify node {name:?}"))?;
    let Some(new) = object else { return Ok(()) };
    let source = at(new, &["spec", "configSource"]);
    match (attributes.operation, attributes.old) {
        (Operation::Create, _) => {
            demand(source.is_none(), || {
                format!("node {node:?} is not allowed to create pods with a non-nil configSource")
            })?;
            let labels = forbidden_labels(metadata(new).labels(), None).join(", ");
            demand(labels.is_empty(), || {
                format!("node {node:?} is not allowed to set the following labels: {labels}")
            })
        }
        (Operation::Update, Some(old)) => {
            let is_same = |path: &[&str]| at(old, path) == at(new, path);
            demand(source.is_none() || is_same(&["spec", "configSource"]), || {
                format!("node {node:?} is not allowed to update configSource to a new non-nil configSource")
            })?;
            demand(is_same(&["spec", "taints"]), || {
                format!("node {node:?} is not allowed to modify taints")
            })?;
            demand(is_same(&["metadata", "ownerReferences"]), || {
                format!("node {node:?} is not allowed to modify ownerReferences")
            })?;
            let labels = forbidden_labels(metadata(new).labels(), metadata(old).labels()).join(", ");
            demand(labels.is_empty(), || format!("is not allowed to modify labels: {labels}"))
        }
        _ => Ok(()),
    }
}

/// What a node found out about a volume, and nothing else.
fn claim_status(attributes: &Attributes<'_>, node: &str, object: Option<&Object>) -> Result<(), Why> {
    let (Operation::Update, Some(new), Some(old)) = (attributes.operation, object, attributes.old) else {
        return refuse(format!("unexpected operation {:?}", verb(attributes.operation)));
    };
    let rest = |claim: &Object| {
        let mut claim = claim.clone();
        let fields = ["capacity", "conditions", "allocatedResources", "allocatedResourceStatuses"];
        for (member, fields) in [("status", &fields[..]), ("metadata", &["resourceVersion", "managedFields"])]
        {
            if let Some(Value::Object(member)) = claim.get_mut(member) {
                fields.iter().for_each(|field| drop(member.remove(*field)));
            }
        }
        claim
    };
    demand(rest(old) == rest(new), || {
        format!(
            "node {node:?} is not allowed to update fields other than status.quantity and status.conditions"
        )
    })
}

fn lease(attributes: &Attributes<'_>, node: &str) -> Result<(), Why> {
    demand(attributes.namespace == LEASES, || {
        format!("can only access leases in the {LEASES:?} system namespace")
    })?;
    demand(attributes.name == node, || {
        "can only access node lease with the same name as the requesting node".to_owned()
    })
}

fn slice(attributes: &Attributes<'_>, node: &str, object: Option<&Object>) -> Result<(), Why> {
    let (slice, what) = match attributes.operation {
        Operation::Create => (object, "create"),
        Operation::Delete => (attributes.old, "delete"),
        Operation::Update | Operation::Connect => return Ok(()),
    };
    demand(slice.is_some_and(|slice| text(slice, &["spec", "nodeName"]) == node), || {
        format!("can only {what} ResourceSlice with the same NodeName as the requesting node")
    })
}

fn request(attributes: &Attributes<'_>, node: &str, object: Option<&Object>) -> Result<(), Why> {
    let request = object.filter(|request| {
        attributes.operation == Operation::Create && SIGNERS.contains(&text(request, &["spec", "signerName"]))
    });
    let Some(request) = request else { return Ok(()) };
    let name = common_name(text(request, &["spec", "request"]));
    let name = name.map_err(|why| Why::Forbidden(format!("unable to parse csr: {why}")))?;
    demand(name == format!("{USER}{node}"), || format!("can only create a node CSR with CN={USER}{node}"))
}

#[cfg(test)]
mod tests;
