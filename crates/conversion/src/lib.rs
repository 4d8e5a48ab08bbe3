//! The versions of one built-in kind, each made from another without loss.
//!
//! Most versions of a kind differ in nothing but their name; [`difference`] says so, and whoever holds bytes then has
//! little to do. Where fields differ, [`convert`] does what upstream does: HorizontalPodAutoscalers keep in annotations
//! what v1 has no fields for, Events are one object in two groups, and devices are asked for and described differently
//! in the versions of resource.k8s.io.
//!
//! These are functions of values. They check nothing: what does not look like the kind stays as it is. Whether a field
//! is written that has its zero value is not known here either; the schema of the version decides that afterwards.
//!
//! Start with [`convert`] and [`difference`].

mod autoscaling;
mod events;
mod go_json;
mod migration;
mod resource;

use serde_json::{Map, Value};

type Object = Map<String, Value>;

/// What has to be done to an object for it to be of another version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// Nothing: it is the same version.
    None,
    /// Its `apiVersion` is another one. All other bytes stay.
    Name,
    /// Its fields are others.
    Fields,
}

/// Why an object cannot be had in another version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a {kind} of version {from} cannot be converted to {to}")]
pub struct Error {
    /// The kind of the object.
    pub kind: String,
    /// The version that it has.
    pub from: String,
    /// The version that is wanted.
    pub to: String,
}

/// Kinds whose versions have the same fields.
struct Renamed {
    group: &'static str,
    versions: &'static [&'static str],
    kinds: &'static [&'static str],
}

/// Every kind that some release has in several versions is here or in [`changed`].
const RENAMED: [Renamed; 10] = [
    Renamed {
        group: "admissionregistration.k8s.io",
        versions: &["v1", "v1beta1", "v1alpha1"],
        kinds: &["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"],
    },
    Renamed {
        group: "admissionregistration.k8s.io",
        versions: &["v1", "v1beta1"],
        kinds: &["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"],
    },
    Renamed {
        group: "certificates.k8s.io",
        versions: &["v1beta1", "v1alpha1"],
        kinds: &["ClusterTrustBundle", "PodCertificateRequest"],
    },
    Renamed { group: "coordination.k8s.io", versions: &["v1beta1", "v1alpha2"], kinds: &["LeaseCandidate"] },
    Renamed {
        group: "networking.k8s.io",
        versions: &["v1", "v1beta1"],
        kinds: &["IPAddress", "ServiceCIDR"],
    },
    Renamed {
        group: "resource.k8s.io",
        versions: &["v1", "v1beta2", "v1beta1", "v1alpha3"],
        kinds: &["DeviceClass"],
    },
    Renamed { group: "resource.k8s.io", versions: &["v1beta2", "v1alpha3"], kinds: &["DeviceTaintRule"] },
    Renamed {
        group: "resource.k8s.io",
        versions: &["v1", "v1beta2"],
        kinds: &["ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"],
    },
    Renamed {
        group: "storage.k8s.io",
        versions: &["v1", "v1beta1", "v1alpha1"],
        kinds: &["VolumeAttributesClass"],
    },
    Renamed {
        group: "storagemigration.k8s.io",
        versions: &["v1", "v1beta1"],
        kinds: &["StorageVersionMigration"],
    },
];

/// How the versions of a kind relate; `None` if one cannot be made from the other.
pub fn difference(kind: &str, from: &str, to: &str) -> Option<Difference> {
    if from == to {
        return Some(Difference::None);
    }
    let ((group, from_version), (to_group, to_version)) = (split(from), split(to));
    let renamed = RENAMED.iter().any(|family| {
        let has = |version| family.versions.contains(&version);
        let same_group = family.group == group && group == to_group;
        same_group && family.kinds.contains(&kind) && has(from_version) && has(to_version)
    });
    if renamed {
        return Some(Difference::Name);
    }
    changed(kind, from, to).map(|_| Difference::Fields)
}

/// Makes an object of one `apiVersion` one of another.
///
/// # Errors
///
/// If the versions are not of one kind, or one of them is not known.
pub fn convert(object: &mut Object, from: &str, to: &str) -> Result<(), Error> {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    match difference(kind, from, to) {
        Some(Difference::None) => return Ok(()),
        Some(Difference::Name) => {}
        Some(Difference::Fields) => {
            if let Some(change) = changed(kind, from, to) {
                change(object);
            }
        }
        None => {
            return Err(Error { kind: kind.to_owned(), from: from.to_owned(), to: to.to_owned() });
        }
    }
    object.insert("apiVersion".to_owned(), to.into());
    Ok(())
}

/// Makes an object what upstream makes of it when it reads it, which is by way of a version of its own and back.
///
/// That shows only in HorizontalPodAutoscalers: v1 says which metric it means if it named none, and annotations that keep
/// the fields of another version are gone where they have no meaning.
pub fn settle(object: &mut Object) {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    match (text("kind"), text("apiVersion")) {
        ("HorizontalPodAutoscaler", "autoscaling/v1") => {
            autoscaling::to_v2(object);
            autoscaling::to_v1(object);
        }
        ("HorizontalPodAutoscaler", "autoscaling/v2") => autoscaling::drop_annotations(object),
        _ => {}
    }
}

/// What changes the fields of a kind.
type Change = fn(&mut Object);

fn changed(kind: &str, from: &str, to: &str) -> Option<Change> {
    match (kind, from, to) {
        ("HorizontalPodAutoscaler", "autoscaling/v1", "autoscaling/v2") => Some(autoscaling::to_v2),
        ("HorizontalPodAutoscaler", "autoscaling/v2", "autoscaling/v1") => Some(autoscaling::to_v1),
        ("Event", "v1", "events.k8s.io/v1") => Some(events::from_core),
        ("Event", "events.k8s.io/v1", "v1") => Some(events::to_core),
        ("StorageVersionMigration", "storagemigration.k8s.io/v1alpha1", _) => Some(migration::from_alpha),
        ("StorageVersionMigration", _, "storagemigration.k8s.io/v1alpha1") => Some(migration::to_alpha),
        _ => match (split(from), split(to)) {
            (("resource.k8s.io", from), ("resource.k8s.io", to)) => resource::change(kind, from, to),
            _ => None,
        },
    }
}

/// Group and version.
fn split(api_version: &str) -> (&str, &str) {
    api_version.rsplit_once('/').unwrap_or(("", api_version))
}

/// Takes a field out of an object. One that is null counts as absent.
fn take(object: &mut Object, name: &str) -> Option<Value> {
    object.remove(name).filter(|value| !value.is_null())
}

/// Puts a field into an object, if it is there.
fn put(object: &mut Object, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        object.insert(name.to_owned(), value);
    }
}

/// A member that is an object.
fn member<'a>(object: &'a mut Object, name: &str) -> Option<&'a mut Object> {
    object.get_mut(name).and_then(Value::as_object_mut)
}

/// The objects in a member that is a list.
fn items<'a>(object: &'a mut Object, name: &str) -> impl Iterator<Item = &'a mut Object> {
    let list = object.get_mut(name).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default();
    list.iter_mut().filter_map(Value::as_object_mut)
}
