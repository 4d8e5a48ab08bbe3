//! The table of kinds.

use crate::{
    admission, apps, autoscaling, batch, certificates, config, devices, endpoints, event, flow, leases,
    migration, namespace, networking, node::Root, nodes, persistence, pod, policy, quota, rbac, registration,
    scheduling, service, storage, volume,
};

/// The rules of one kind.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    /// For new objects.
    pub(crate) create: for<'v> fn(Root<'v>),
    /// For updates through the object itself or a subresource: the new object, then the old.
    pub(crate) update: for<'v> fn(&str, Root<'v>, Root<'v>),
    /// Whether finalizers without a domain may have names that are not Kubernetes' own.
    pub(crate) any_finalizers: bool,
    /// What to tell the client.
    pub(crate) warnings: Option<for<'v> fn(Root<'v>, Option<Root<'v>>)>,
    /// What to tell who writes the status alone.
    pub(crate) status_warnings: Option<for<'v> fn(Root<'v>, Option<Root<'v>>)>,
}

const fn rules(
    group: &'static str,
    kind: &'static str,
    create: for<'v> fn(Root<'v>),
    update: for<'v> fn(&str, Root<'v>, Root<'v>),
) -> Rules {
    Rules { group, kind, create, update, any_finalizers: false, warnings: None, status_warnings: None }
}

/// The same with any finalizers.
const fn any_finalizers(rules: Rules) -> Rules {
    Rules { any_finalizers: true, ..rules }
}

/// The same with warnings.
const fn warning(rules: Rules, warnings: for<'v> fn(Root<'v>, Option<Root<'v>>)) -> Rules {
    Rules { warnings: Some(warnings), ..rules }
}

/// Kinds of one group together, those first that are written most.
const fn status_warning(rules: Rules, warnings: for<'v> fn(Root<'v>, Option<Root<'v>>)) -> Rules {
    Rules { status_warnings: Some(warnings), ..rules }
}

#[rustfmt::skip]
pub(crate) static KINDS: &[Rules] = &[
    status_warning(warning(rules("", "Pod", pod::create, pod::update), pod::warnings), pod::status_warnings),
    rules("", "ConfigMap", config::config_map, config::config_map_update),
    warning(rules("", "Secret", config::secret, config::secret_update), config::secret_warnings),
    status_warning(warning(rules("", "Service", service::create, service::update), service::warnings), service::status_warnings),
    warning(rules("", "Endpoints", endpoints::endpoints, endpoints::endpoints_update), endpoints::endpoints_warnings),
    any_finalizers(rules("", "Event", event::event, event::event_update)),
    warning(rules("", "Node", nodes::node, nodes::node_update), nodes::warnings),
    rules("", "Namespace", namespace::namespace, namespace::namespace_update),
    warning(rules("", "ServiceAccount", namespace::nothing, namespace::service_account_update), namespace::service_account_warnings),
    warning(rules("", "PersistentVolumeClaim", persistence::claim, persistence::claim_update), persistence::warnings),
    warning(rules("", "PersistentVolume", volume::persistent_volume, volume::persistent_volume_update), volume::warnings),
    warning(rules("", "ReplicationController", apps::replication_controller, apps::replication_controller_update), apps::replication_controller_warnings),
    warning(rules("", "PodTemplate", apps::pod_template, apps::pod_template_update), apps::pod_template_warnings),
    warning(rules("", "ResourceQuota", quota::resource_quota, quota::resource_quota_update), quota::warnings),
    rules("", "LimitRange", quota::limit_range, quota::limit_range_update),
    warning(rules("apps", "Deployment", apps::deployment, apps::deployment_update), apps::workload_warnings),
    warning(rules("apps", "ReplicaSet", apps::replica_set, apps::replica_set_update), apps::workload_warnings),
    warning(rules("apps", "StatefulSet", apps::stateful_set, apps::stateful_set_update), apps::stateful_set_warnings),
    warning(rules("apps", "DaemonSet", apps::daemon_set, apps::daemon_set_update), apps::daemon_set_warnings),
    rules("apps", "ControllerRevision", apps::controller_revision, apps::controller_revision_update),
    warning(rules("batch", "Job", batch::job, batch::job_update), batch::job_warnings),
    warning(rules("batch", "CronJob", batch::cron_job, batch::cron_job_update), batch::cron_job_warnings),
    warning(rules("discovery.k8s.io", "EndpointSlice", endpoints::endpoint_slice, endpoints::endpoint_slice_update), endpoints::endpoint_slice_warnings),
    status_warning(warning(rules("networking.k8s.io", "Ingress", networking::ingress, networking::ingress_update), networking::ingress_warnings), service::status_warnings),
    rules("networking.k8s.io", "IngressClass", networking::ingress_class, networking::ingress_class_update),
    warning(rules("networking.k8s.io", "NetworkPolicy", networking::network_policy, networking::network_policy_update), networking::network_policy_warnings),
    rules("networking.k8s.io", "ServiceCIDR", networking::service_cidr, networking::service_cidr_update),
    rules("networking.k8s.io", "IPAddress", networking::ip_address, networking::ip_address_update),
    warning(rules("storage.k8s.io", "StorageClass", storage::storage_class, storage::storage_class_update), storage::storage_class_warnings),
    rules("storage.k8s.io", "VolumeAttachment", storage::volume_attachment, storage::volume_attachment_update),
    warning(rules("storage.k8s.io", "CSIDriver", storage::csi_driver, storage::csi_driver_update), storage::csi_driver_warnings),
    rules("storage.k8s.io", "CSINode", storage::csi_node, storage::csi_node_update),
    warning(rules("storage.k8s.io", "CSIStorageCapacity", storage::csi_storage_capacity, storage::csi_storage_capacity_update), storage::csi_storage_capacity_warnings),
    rules("storage.k8s.io", "VolumeAttributesClass", storage::volume_attributes_class, storage::volume_attributes_class_update),
    rules("rbac.authorization.k8s.io", "Role", rbac::role, rbac::role_update),
    rules("rbac.authorization.k8s.io", "ClusterRole", rbac::cluster_role, rbac::cluster_role_update),
    rules("rbac.authorization.k8s.io", "RoleBinding", rbac::role_binding, rbac::role_binding_update),
    rules("rbac.authorization.k8s.io", "ClusterRoleBinding", rbac::cluster_role_binding, rbac::cluster_role_binding_update),
    any_finalizers(rules("coordination.k8s.io", "Lease", policy::lease, policy::lease_update)),
    rules("autoscaling", "HorizontalPodAutoscaler", autoscaling::autoscaler, autoscaling::autoscaler_update),
    any_finalizers(rules("policy", "PodDisruptionBudget", policy::pod_disruption_budget, policy::pod_disruption_budget_update)),
    rules("scheduling.k8s.io", "PriorityClass", policy::priority_class, policy::priority_class_update),
    warning(any_finalizers(rules("node.k8s.io", "RuntimeClass", policy::runtime_class, policy::runtime_class_update)), policy::runtime_class_warnings),
    warning(any_finalizers(rules("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", admission::validating_webhooks, admission::validating_webhooks_update)), admission::static_warnings),
    warning(any_finalizers(rules("admissionregistration.k8s.io", "MutatingWebhookConfiguration", admission::mutating_webhooks, admission::mutating_webhooks_update)), admission::static_warnings),
    warning(any_finalizers(rules("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", admission::validating_policy, admission::validating_policy_update)), admission::static_warnings),
    warning(any_finalizers(rules("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", admission::validating_binding, admission::validating_binding_update)), admission::static_warnings),
    warning(any_finalizers(rules("admissionregistration.k8s.io", "MutatingAdmissionPolicy", admission::mutating_policy, admission::mutating_policy_update)), admission::static_warnings),
    warning(any_finalizers(rules("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding", admission::mutating_binding, admission::mutating_binding_update)), admission::static_warnings),
    rules("flowcontrol.apiserver.k8s.io", "FlowSchema", flow::flow_schema, flow::flow_schema_update),
    rules("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", flow::priority_level, flow::priority_level_update),
    rules("storagemigration.k8s.io", "StorageVersionMigration", migration::migration, migration::migration_update),
    rules("certificates.k8s.io", "CertificateSigningRequest", certificates::signing_request, certificates::signing_request_update),
    rules("certificates.k8s.io", "PodCertificateRequest", certificates::pod_request, certificates::pod_request_update),
    rules("scheduling.k8s.io", "PodGroup", scheduling::pod_group, scheduling::pod_group_update),
    rules("scheduling.k8s.io", "Workload", scheduling::workload, scheduling::workload_update),
    rules("resource.k8s.io", "ResourcePoolStatusRequest", devices::pool_request, devices::pool_request_update),
    any_finalizers(rules("coordination.k8s.io", "LeaseCandidate", leases::candidate, leases::candidate_update)),
    rules("certificates.k8s.io", "ClusterTrustBundle", certificates::trust_bundle, certificates::trust_bundle_update),
    rules("resource.k8s.io", "DeviceClass", devices::class, devices::class_update),
    rules("resource.k8s.io", "DeviceTaintRule", devices::taint_rule, devices::taint_rule_update),
    rules("resource.k8s.io", "ResourceClaim", devices::claim, devices::claim_update),
    rules("resource.k8s.io", "ResourceClaimTemplate", devices::claim_template, devices::claim_template_update),
    warning(rules("resource.k8s.io", "ResourceSlice", devices::slice, devices::slice_update), devices::slice_warnings),
    any_finalizers(rules("apiregistration.k8s.io", "APIService", registration::api_service, registration::api_service_update)),
];
