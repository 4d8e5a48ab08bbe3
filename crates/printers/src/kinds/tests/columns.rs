//! The columns of every kind: `!` marks the name of the object, `*` what is only shown when wide.

use super::arbitrary::KINDS;
use super::*;
use crate::{Column, ColumnType};

const COLUMNS: &str = "
ComponentStatus: Name! Status Message Error
ConfigMap: Name! Data Age
Endpoints: Name! Endpoints Age
Event: Last Seen, Type, Reason, Object, Subobject*, Source*, Message, First Seen*, Count*, Name!*
LimitRange: Name!, Created At(date)
Namespace: Name! Status Age
Node: Name! Status Roles Age Version Internal-IP* External-IP* OS-Image* Kernel-Version* Container-Runtime*
PersistentVolume: Name!, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, \
    VolumeAttributesClass, Reason, Age, VolumeMode*
PersistentVolumeClaim: Name!, Status, Volume, Capacity, Access Modes, StorageClass, \
    VolumeAttributesClass, Age, VolumeMode*
Pod: Name!, Ready, Status, Restarts, Age, IP*, Node*, Nominated Node*, Readiness Gates*
PodTemplate: Name!, Containers, Images, Pod Labels
ReplicationController: Name! Desired(integer) Current(integer) Ready(integer) Age Containers* Images* \
    Selector*
ResourceQuota: Name! Request Limit Age
Secret: Name! Type Data Age
Service: Name! Type Cluster-IP External-IP Port(s) Age Selector*
ServiceAccount: Name! Age
MutatingAdmissionPolicy: Name! Mutations(integer) ParamKind Age
MutatingAdmissionPolicyBinding: Name! PolicyName ParamRef Age
MutatingWebhookConfiguration: Name! Webhooks(integer) Age
ValidatingAdmissionPolicy: Name! Validations(integer) ParamKind Age
ValidatingAdmissionPolicyBinding: Name! PolicyName ParamRef Age
ValidatingWebhookConfiguration: Name! Webhooks(integer) Age
APIService: Name! Service Available Age
ControllerRevision: Name! Controller Revision Age
DaemonSet: Name!, Desired(integer), Current(integer), Ready(integer), Up-to-date(integer), \
    Available(integer), Node Selector, Age, Containers*, Images*, Selector*
Deployment: Name! Ready Up-to-date Available Age Containers* Images* Selector*
ReplicaSet: Name! Desired(integer) Current(integer) Ready(integer) Age Containers* Images* Selector*
StatefulSet: Name! Ready Age Containers* Images*
HorizontalPodAutoscaler: Name! Reference Targets MinPods MaxPods Replicas Age
Scale: Name Desired(integer) Available(integer) Age
HorizontalPodAutoscaler: Name! Reference Targets MinPods MaxPods Replicas Age
CronJob: Name!, Schedule, Timezone, Suspend(boolean), Active(integer), Last Schedule, Age, Containers*, \
    Images*, Selector*
Job: Name! Status Completions Duration Age Containers* Images* Selector*
CertificateSigningRequest: Name! Age SignerName Requestor RequestedDuration Condition
ClusterTrustBundle: Name! SignerName
PodCertificateRequest: Name! PodName ServiceAccountName NodeName SignerName State UnverifiedUserAnnotations
Lease: Name! Holder Age
LeaseCandidate: Name! LeaseName BinaryVersion EmulationVersion Age
EndpointSlice: Name! AddressType Ports Endpoints Age
Event: Last Seen, Type, Reason, Object, Subobject*, Source*, Message, First Seen*, Count*, Name!*
FlowSchema: Name! PriorityLevel MatchingPrecedence DistinguisherMethod Age MissingPL
PriorityLevelConfiguration: Name! Type NominalConcurrencyShares Queues HandSize QueueLengthLimit Age
StorageVersion: Name! CommonEncodingVersion StorageVersions Age
IPAddress: Name! ParentRef
Ingress: Name! Class Hosts Address Ports Age
IngressClass: Name! Controller Parameters Age
NetworkPolicy: Name! Pod-Selector Age
ServiceCIDR: Name! CIDRs Age
RuntimeClass: Name! Handler Age
PodDisruptionBudget: Name!, Min Available, Max Unavailable, Allowed Disruptions(integer), Age
ClusterRoleBinding: Name! Role Age Users* Groups* ServiceAccounts*
RoleBinding: Name! Role Age Users* Groups* ServiceAccounts*
DeviceClass: Name! Age
ResourceClaim: Name! State Age
ResourceSlice: Name! Node Driver Pool Age
DeviceTaintRule: Name! Key Value Effect TimeAdded Age
ResourcePoolStatusRequest: Name! Driver Total Available Allocated Unavailable Errors Pools(integer) \
    Status Completed
PriorityClass: Name! Value(integer) Global-Default(boolean) Age PreemptionPolicy
PodGroup: Name! Policy Workload Status Age
Workload: Name! Age
CSIDriver: Name! AttachRequired(boolean) PodInfoOnMount(boolean) StorageCapacity(boolean) TokenRequests \
    RequiresRepublish(boolean) Modes Age
CSINode: Name! Drivers(integer) Age
StorageClass: Name! Provisioner ReclaimPolicy VolumeBindingMode AllowVolumeExpansion Age
VolumeAttachment: Name! Attacher! PV Node Attached(boolean) Age
VolumeAttributesClass: Name! DriverName Age
StorageVersionMigration: Name Resource Status
";

fn described(column: &Column) -> String {
    let data_type = match column.data_type {
        ColumnType::String => "",
        ColumnType::Integer => "(integer)",
        ColumnType::Number => "(number)",
        ColumnType::Boolean => "(boolean)",
        ColumnType::Date => "(date)",
    };
    let format = if column.format == "name" { "!" } else { "" };
    format!(
        "{}{data_type}{format}{}",
        column.name,
        "*".repeat(usize::try_from(column.priority).expect("small"))
    )
}

#[test]
fn every_kind_has_the_columns_of_upstream() {
    let mut lines = COLUMNS.trim().lines();
    for (group, version, kind) in KINDS {
        let (name, expected) =
            lines.next().and_then(|line| line.split_once(": ")).expect("a line for each kind");
        assert_eq!(name, kind);
        let columns = printer(group, version, kind).columns().iter().map(described);
        // Names of columns with blanks in them are separated by commas.
        let separator = if expected.contains(", ") { ", " } else { " " };
        assert_eq!(columns.collect::<Vec<_>>().join(separator), expected, "{kind}");
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn every_column_says_what_it_tells() {
    for (group, version, kind) in KINDS {
        for column in printer(group, version, kind).columns() {
            assert!(column.description.ends_with('.'), "{kind}: {}", column.name);
        }
    }
}
