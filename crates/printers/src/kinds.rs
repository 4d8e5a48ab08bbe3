//! The printers of the built-in kinds, by area.

mod admission;
mod apiserver;
mod autoscaling;
mod batch;
mod certificates;
mod coordination;
mod core;
mod events;
mod fallback;
mod flowcontrol;
mod networking;
mod nodes;
mod pods;
mod rbac;
mod resource;
mod scheduling;
mod services;
mod storage;
mod workloads;

use crate::Printer;

/// What prints the objects of a kind. Kinds that upstream has no printer for, and kinds that nobody
/// knows, get one that shows name and creation time.
#[must_use]
pub fn printer(group: &str, version: &str, kind: &str) -> &'static dyn Printer {
    built_in(group, version, kind).unwrap_or(&fallback::FALLBACK)
}

fn built_in(group: &str, version: &str, kind: &str) -> Option<&'static dyn Printer> {
    match group {
        "" => core_printer(kind),
        "admissionregistration.k8s.io" => admission::printer(kind),
        "apiregistration.k8s.io" | "internal.apiserver.k8s.io" | "storagemigration.k8s.io" => {
            apiserver::printer(kind)
        }
        "apps" => workloads::printer(kind),
        "autoscaling" => autoscaling::printer(version, kind),
        "batch" => batch::printer(kind),
        "certificates.k8s.io" => certificates::printer(kind),
        "coordination.k8s.io" => coordination::printer(kind),
        "discovery.k8s.io" => services::printer(kind),
        "events.k8s.io" => events::printer(kind),
        "flowcontrol.apiserver.k8s.io" => flowcontrol::printer(kind),
        "networking.k8s.io" => networking::printer(kind),
        "node.k8s.io" => nodes::printer(kind),
        "policy" => workloads::policy_printer(kind),
        "rbac.authorization.k8s.io" => rbac::printer(kind),
        "resource.k8s.io" => resource::printer(kind),
        "scheduling.k8s.io" => scheduling::printer(kind),
        "storage.k8s.io" => storage::printer(kind),
        _ => None,
    }
}

fn core_printer(kind: &str) -> Option<&'static dyn Printer> {
    match kind {
        "Pod" => Some(&pods::POD),
        "Event" => Some(&events::CORE_EVENT),
        "Node" => Some(&nodes::NODE),
        "Service" => Some(&services::SERVICE),
        "Endpoints" => Some(&services::ENDPOINTS),
        "ReplicationController" => Some(&workloads::REPLICATION_CONTROLLER),
        "PodTemplate" => Some(&workloads::POD_TEMPLATE),
        "PersistentVolume" => Some(&storage::PERSISTENT_VOLUME),
        "PersistentVolumeClaim" => Some(&storage::PERSISTENT_VOLUME_CLAIM),
        _ => core::printer(kind),
    }
}

#[cfg(test)]
#[path = "kinds/tests/mod.rs"]
mod tests;
