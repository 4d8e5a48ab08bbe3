//! Admission of built-in kinds: what upstream's plugins of the same names do.
//!
//! Each type is one plugin, on by default in kube-apiserver unless it says otherwise. They see objects of other kinds as the replica has them
//! ([`Objects`]), and never write any. In which order they come is said where the server is put together.
//!
//! Start with [`Objects`] and [`LimitRanger`].

pub mod amounts;
mod certificates;
mod claims;
mod classes;
mod limits;
mod node_restriction;
mod nodes;
mod objects;
mod owner_references;
mod pod_resize;
mod pod_security;
mod policies;
mod priority;
mod protection;
mod resize;
mod runtime_class;
mod stern;
mod subjects;
mod tolerations;
mod topology;
mod workloads;

use concord_meta::Status;
use concord_registry::{Attributes, Object};
use serde_json::Value;

pub use certificates::{CertificateApproval, CertificateSigning, ClusterTrustBundleAttest};
pub use claims::ResourceClaimAuthorization;
pub use classes::{DefaultIngressClass, DefaultStorageClass};
pub use limits::LimitRanger;
pub use node_restriction::NodeRestriction;
pub use nodes::TaintNodesByCondition;
pub use objects::{NotServed, Objects};
pub use owner_references::OwnerReferencesPermissionEnforcement;
pub use pod_resize::PodResizeValidator;
pub use pod_security::{PodSecurity, PodSecurityConfig, PodSecurityConfigError};
pub use policies::PolicyParameterAuthorization;
pub use priority::Priority;
pub use protection::{PodGroupProtection, StorageObjectInUseProtection};
pub use resize::PersistentVolumeClaimResize;
pub use runtime_class::RuntimeClass;
pub use stern::{AlwaysDeny, AlwaysPullImages, DenyServiceExternalIPs};
pub use subjects::CertificateSubjectRestriction;
pub use tolerations::DefaultTolerationSeconds;
pub use topology::PodTopologyLabels;
pub use workloads::PodGroupWorkloadExists;

/// Whether a request is about a resource, or a subresource of it.
fn concerns(attributes: &Attributes<'_>, group: &str, plural: &str, subresource: &str) -> bool {
    let resource = attributes.resource;
    resource.version.group == group
        && resource.names.plural == plural
        && attributes.subresource == subresource
}

fn forbidden(attributes: &Attributes<'_>, why: &str) -> Status {
    Status::forbidden(&attributes.resource.group_resource(), attributes.name, why)
}

/// What is at a path of an object.
fn at<'a>(object: &'a Object, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(object.get(*first)?, |value, name| value.get(name)).filter(|value| !value.is_null())
}

/// The object at a member, made if it is missing.
fn member<'a>(object: &'a mut Object, name: &str) -> Option<&'a mut Object> {
    object.entry(name).or_insert_with(|| Value::Object(Object::new())).as_object_mut()
}
