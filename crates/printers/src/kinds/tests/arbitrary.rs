//! Nothing panics, whatever an object looks like.

use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};

use super::*;
use crate::{ListMeta, TableOptions, Tables};

/// Every kind with a printer, and one without.
pub(super) const KINDS: [Kind; 66] = [
    ("", "v1", "ComponentStatus"),
    ("", "v1", "ConfigMap"),
    ("", "v1", "Endpoints"),
    ("", "v1", "Event"),
    ("", "v1", "LimitRange"),
    ("", "v1", "Namespace"),
    ("", "v1", "Node"),
    ("", "v1", "PersistentVolume"),
    ("", "v1", "PersistentVolumeClaim"),
    ("", "v1", "Pod"),
    ("", "v1", "PodTemplate"),
    ("", "v1", "ReplicationController"),
    ("", "v1", "ResourceQuota"),
    ("", "v1", "Secret"),
    ("", "v1", "Service"),
    ("", "v1", "ServiceAccount"),
    ("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"),
    ("apiregistration.k8s.io", "v1", "APIService"),
    ("apps", "v1", "ControllerRevision"),
    ("apps", "v1", "DaemonSet"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "ReplicaSet"),
    ("apps", "v1", "StatefulSet"),
    ("autoscaling", "v1", "HorizontalPodAutoscaler"),
    ("autoscaling", "v1", "Scale"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler"),
    ("batch", "v1", "CronJob"),
    ("batch", "v1", "Job"),
    ("certificates.k8s.io", "v1", "CertificateSigningRequest"),
    ("certificates.k8s.io", "v1beta1", "ClusterTrustBundle"),
    ("certificates.k8s.io", "v1beta1", "PodCertificateRequest"),
    ("coordination.k8s.io", "v1", "Lease"),
    ("coordination.k8s.io", "v1beta1", "LeaseCandidate"),
    ("discovery.k8s.io", "v1", "EndpointSlice"),
    ("events.k8s.io", "v1", "Event"),
    ("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration"),
    ("internal.apiserver.k8s.io", "v1alpha1", "StorageVersion"),
    ("networking.k8s.io", "v1", "IPAddress"),
    ("networking.k8s.io", "v1", "Ingress"),
    ("networking.k8s.io", "v1", "IngressClass"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    ("networking.k8s.io", "v1", "ServiceCIDR"),
    ("node.k8s.io", "v1", "RuntimeClass"),
    ("policy", "v1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    ("resource.k8s.io", "v1", "DeviceClass"),
    ("resource.k8s.io", "v1", "ResourceClaim"),
    ("resource.k8s.io", "v1", "ResourceSlice"),
    ("resource.k8s.io", "v1beta2", "DeviceTaintRule"),
    ("resource.k8s.io", "v1alpha3", "ResourcePoolStatusRequest"),
    ("scheduling.k8s.io", "v1", "PriorityClass"),
    ("scheduling.k8s.io", "v1alpha2", "PodGroup"),
    ("scheduling.k8s.io", "v1alpha2", "Workload"),
    ("storage.k8s.io", "v1", "CSIDriver"),
    ("storage.k8s.io", "v1", "CSINode"),
    ("storage.k8s.io", "v1", "StorageClass"),
    ("storage.k8s.io", "v1", "VolumeAttachment"),
    ("storage.k8s.io", "v1", "VolumeAttributesClass"),
    ("storagemigration.k8s.io", "v1beta1", "StorageVersionMigration"),
];

/// Names of fields that printers look at, so that arbitrary objects reach deep into them.
const FIELDS: &str = "\
    accessModes addresses allocation annotations autoscaling.alpha.kubernetes.io/current-metrics \
    autoscaling.alpha.kubernetes.io/metrics averageValue backend capacity claimRef clusterIPs conditions \
    containerStatuses containers controller count creationTimestamp current currentAverageUtilization \
    currentMetrics data deletionTimestamp endpoints exitCode external externalIPs finishedAt hard host \
    ingress initContainerStatuses initContainers involvedObject ip items jobTemplate key kind labels \
    lastState lastTimestamp limited loadBalancer matchExpressions matchLabels matchingPrecedence \
    metadata metrics name nodeInfo object operator ownerReferences paramRef parentRef podSelector pods \
    pools port ports readinessGates regarding replicas resource restartCount restartPolicy rules running \
    selector series signal spec startTime state status storage subjects subsets target template \
    terminated tls tokenRequests type used values waiting";

/// Texts that mean something to printers, besides arbitrary ones.
const TEXTS: [&str; 16] = [
    "",
    "True",
    "Always",
    "Resource",
    "External",
    "LoadBalancer",
    "In",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "-009999-01-01T00:00:00Z",
    "2026-01-01T00:00:00.999999999+23:59",
    "1.5Gi",
    "1e99",
    "-",
    "Ready",
    "[{\"type\":\"Pods\",\"pods\":{\"targetAverageValue\":[]}}]",
];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|float| Number::from_f64(float).map_or(Value::Null, Value::Number)),
        proptest::sample::select(TEXTS.as_slice()).prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 96, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            proptest::collection::vec(
                (proptest::sample::select(FIELDS.split(' ').collect::<Vec<_>>()), inner),
                0..8
            )
            .prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    let part = || value().prop_map(|value| if value.is_object() { value } else { json!({"items": value}) });
    (part(), part(), part()).prop_map(|(metadata, spec, status)| {
        let mut object = spec.as_object().cloned().unwrap_or_default();
        object.extend(Map::from_iter([
            ("metadata".to_owned(), metadata),
            ("spec".to_owned(), spec),
            ("status".to_owned(), status),
        ]));
        object
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn every_row_fits_its_columns(object in object(), other in object()) {
        for (group, version, kind) in KINDS {
            let printer = printer(group, version, kind);
            let row = printer.row(&object, now());
            // Upstream shows the age of an IPAddress without a column for it.
            let more = usize::from(kind == "IPAddress");
            prop_assert_eq!(row.cells.len(), printer.columns().len() + more, "{}", kind);
            let tables = Tables { printer, options: TableOptions::default(), now: now() };
            let table = tables.list(&ListMeta::default(), [object.clone(), other.clone()]);
            prop_assert_eq!(table["rows"].as_array().map(Vec::len), Some(2));
        }
    }
}

#[test]
fn an_empty_object_has_a_row() {
    for (group, version, kind) in KINDS {
        let cells = row((group, version, kind), json!({})).cells;
        assert!(cells.iter().all(|cell| !cell.is_null()), "{kind}: {cells:?}");
    }
}
