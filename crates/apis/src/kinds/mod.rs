//! What kinds do beyond what the table of facts can say.

mod api_services;
mod autoscalers;
mod certificates;
mod daemon_sets;
mod definitions;
mod deployments;
mod devices;
mod drivers;
mod endpoint_slices;
mod image_volumes;
mod ip_addresses;
mod jobs;
mod namespaces;
mod nodes;
mod pods;
mod priority_classes;
mod quality_of_service;
mod secrets;
mod service_accounts;
mod services;
mod stateful_sets;
mod storage_versions;
mod volumes;

use concord_builtins::FeatureGates;
use concord_meta::{field, options::DeleteOptions};
use concord_registry::{Context, Object, Part};

pub(crate) use self::pods::set_pod_condition;

type ValidateCreate = fn(&FeatureGates, &Object) -> Vec<field::Error>;
type ValidateUpdate = fn(&FeatureGates, Part<'_>, &Object, &Object) -> Vec<field::Error>;
type Warnings = fn(&FeatureGates, &Object, Option<&Object>) -> Vec<String>;

/// What one kind does.
#[derive(Clone, Copy)]
pub(crate) struct Hooks {
    /// Before the defaults: why an object cannot be read.
    pub(crate) unreadable: Option<fn(&Object) -> Option<String>>,
    /// After the defaults: what is never stored as a client says it.
    pub(crate) default: Option<fn(&mut Object)>,
    /// Before a create or an update is prepared, with what was there before: what belongs to features that are off, where a
    /// table of fields cannot say it.
    pub(crate) drop: Option<fn(&FeatureGates, &mut Object, Option<&Object>)>,
    /// After the common preparation of a create.
    pub(crate) create: Option<fn(&Context, &mut Object)>,
    /// After the common preparation of an update.
    pub(crate) update: Option<fn(&Context, Part<'_>, &mut Object, &Object)>,
    /// Whether the metadata of a new object is looked at only if nothing else is wrong with it.
    pub(crate) metadata_comes_last: bool,
    /// What is wrong with a new object, beyond what is wrong with every kind.
    pub(crate) validate_create: Option<ValidateCreate>,
    /// What is wrong with a changed one.
    pub(crate) validate_update: Option<ValidateUpdate>,
    /// What to tell who wrote one.
    pub(crate) warnings: Option<Warnings>,
    /// What to tell who deletes one without saying what becomes of its dependents.
    pub(crate) deletion_warning: Option<&'static str>,
    /// How long a deletion takes.
    pub(crate) graceful_deletion: Option<fn(&Object, &DeleteOptions) -> i64>,
    /// Whether something keeps an object from going away.
    pub(crate) is_held: Option<fn(&Object) -> bool>,
    /// When a deletion begins that is the kind's own affair.
    pub(crate) begin_deletion: Option<fn(&mut Object)>,
    /// Whether an object without a name gets one that nobody has.
    pub(crate) names_itself: bool,
    /// Why an object may not be deleted.
    pub(crate) forbid_delete: Option<fn(&str) -> Option<&'static str>>,
}

impl Hooks {
    /// Nothing.
    const NONE: Self = Self {
        unreadable: None,
        default: None,
        drop: None,
        create: None,
        update: None,
        metadata_comes_last: false,
        validate_create: None,
        validate_update: None,
        warnings: None,
        deletion_warning: None,
        graceful_deletion: None,
        is_held: None,
        begin_deletion: None,
        names_itself: false,
        forbid_delete: None,
    };
}

/// The hooks of a resource.
pub(crate) fn hooks(group: &str, plural: &str) -> Hooks {
    match (group, plural) {
        ("", "namespaces") => namespaces::HOOKS,
        ("" | "events.k8s.io", "events") => Hooks { metadata_comes_last: true, ..Hooks::NONE },
        ("", "limitranges") => Hooks { names_itself: true, ..Hooks::NONE },
        ("", "nodes") => nodes::HOOKS,
        ("", "persistentvolumeclaims") => volumes::CLAIMS,
        ("", "persistentvolumes") => volumes::VOLUMES,
        ("", "pods") => pods::HOOKS,
        ("", "podtemplates" | "replicationcontrollers") | ("apps", "replicasets") | ("batch", "cronjobs") => {
            image_volumes::TEMPLATES
        }
        ("", "secrets") => secrets::HOOKS,
        ("", "serviceaccounts") => service_accounts::HOOKS,
        ("", "services") => services::HOOKS,
        ("apiextensions.k8s.io", "customresourcedefinitions") => definitions::HOOKS,
        ("apiregistration.k8s.io", "apiservices") => api_services::HOOKS,
        ("apps", "daemonsets") => daemon_sets::HOOKS,
        ("apps", "deployments") => deployments::HOOKS,
        ("apps", "statefulsets") => stateful_sets::HOOKS,
        ("autoscaling", "horizontalpodautoscalers") => autoscalers::HOOKS,
        ("batch", "jobs") => jobs::HOOKS,
        ("certificates.k8s.io", "certificatesigningrequests") => certificates::HOOKS,
        ("discovery.k8s.io", "endpointslices") => endpoint_slices::HOOKS,
        ("internal.apiserver.k8s.io", "storageversions") => storage_versions::HOOKS,
        ("networking.k8s.io", "ipaddresses") => ip_addresses::HOOKS,
        ("resource.k8s.io", "resourceclaims") => devices::CLAIMS,
        ("resource.k8s.io", "devicetaintrules" | "resourceslices") => devices::HOOKS,
        ("resource.k8s.io", "resourcepoolstatusrequests") => devices::REQUESTS,
        ("scheduling.k8s.io", "priorityclasses") => priority_classes::HOOKS,
        ("storage.k8s.io", "csidrivers") => drivers::HOOKS,
        _ => Hooks::NONE,
    }
}

/// The object at a member, made if it is missing.
pub(crate) fn member<'a>(object: &'a mut Object, name: &str) -> &'a mut Object {
    let slot = object.entry(name).or_insert_with(|| serde_json::Value::Object(Object::new()));
    if !slot.is_object() {
        *slot = serde_json::Value::Object(Object::new());
    }
    slot.as_object_mut().expect("made an object above")
}

/// Sets a member to what it is in another object, or removes it if it is not there.
pub(crate) fn keep(new: &mut Object, old: &Object, name: &str) {
    match old.get(name) {
        Some(value) => drop(new.insert(name.to_owned(), value.clone())),
        None => drop(new.remove(name)),
    }
}
