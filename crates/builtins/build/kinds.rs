//! The kinds whose schemas are wanted.

use k8s_openapi::{Resource, schemars};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};

/// A kind and the name of its type's definition.
pub(crate) struct Kind {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) definition: String,
}

/// All kinds, and the definitions of all types they use.
pub(crate) struct Kinds {
    pub(crate) kinds: Vec<Kind>,
    pub(crate) definitions: Map<String, Value>,
}

struct Collector {
    generator: SchemaGenerator,
    kinds: Vec<Kind>,
}

impl Collector {
    fn kind<K: Resource + JsonSchema>(&mut self) {
        self.add::<K>(K::GROUP, K::VERSION, K::KIND);
    }

    /// The types of answers that are no kinds of any resource, for what is said about them.
    fn shared(&mut self) {
        use k8s_openapi::apimachinery::pkg::{
            apis::meta::v1::{
                APIGroup, APIGroupList, APIResourceList, APIVersions, ListMeta, Patch, WatchEvent,
            },
            runtime::RawExtension,
            version::Info,
        };
        let generator = &mut self.generator;
        generator.subschema_for::<APIGroup>();
        generator.subschema_for::<APIGroupList>();
        generator.subschema_for::<APIResourceList>();
        generator.subschema_for::<APIVersions>();
        generator.subschema_for::<Info>();
        generator.subschema_for::<ListMeta>();
        generator.subschema_for::<Patch>();
        generator.subschema_for::<WatchEvent<RawExtension>>();
    }

    fn add<K: JsonSchema>(&mut self, group: &'static str, version: &'static str, kind: &'static str) {
        self.generator.subschema_for::<K>();
        let definition = K::schema_name().into_owned();
        self.kinds.push(Kind { group, version, kind, definition });
    }
}

macro_rules! kinds {
    ($collector:ident; $($($module:ident)::+: $($kind:ident)+;)+) => {
        $({
            use k8s_openapi::$($module)::+::{$($kind),+};
            $($collector.kind::<$kind>();)+
        })+
    };
}

/// Every kind that a request may have as its body.
pub(crate) fn kinds() -> Kinds {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut collector = Collector { generator, kinds: Vec::new() };
    kinds! { collector;
        api::admissionregistration::v1: MutatingAdmissionPolicy MutatingAdmissionPolicyBinding
            MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
            ValidatingWebhookConfiguration;
        api::admissionregistration::v1alpha1: MutatingAdmissionPolicy MutatingAdmissionPolicyBinding;
        api::admissionregistration::v1beta1: MutatingAdmissionPolicy MutatingAdmissionPolicyBinding;
        api::apiserverinternal::v1alpha1: StorageVersion;
        api::apps::v1: ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet;
        api::authentication::v1: SelfSubjectReview TokenRequest TokenReview;
        api::authorization::v1: LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview
            SubjectAccessReview;
        api::autoscaling::v1: HorizontalPodAutoscaler Scale;
        api::autoscaling::v2: HorizontalPodAutoscaler;
        api::batch::v1: CronJob Job;
        api::certificates::v1: CertificateSigningRequest;
        api::certificates::v1alpha1: ClusterTrustBundle;
        api::certificates::v1beta1: ClusterTrustBundle PodCertificateRequest;
        api::coordination::v1: Lease;
        api::coordination::v1alpha2: LeaseCandidate;
        api::coordination::v1beta1: LeaseCandidate;
        api::core::v1: Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node
            PersistentVolume PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret
            Service ServiceAccount;
        api::discovery::v1: EndpointSlice;
        api::events::v1: Event;
        api::flowcontrol::v1: FlowSchema PriorityLevelConfiguration;
        api::networking::v1: IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR;
        api::networking::v1beta1: IPAddress ServiceCIDR;
        api::node::v1: RuntimeClass;
        api::policy::v1: Eviction PodDisruptionBudget;
        api::rbac::v1: ClusterRole ClusterRoleBinding Role RoleBinding;
        api::resource::v1: DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice;
        api::resource::v1alpha3: DeviceTaintRule ResourcePoolStatusRequest;
        api::resource::v1beta1: DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice;
        api::resource::v1beta2: DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourceSlice;
        api::scheduling::v1: PriorityClass;
        api::scheduling::v1alpha2: PodGroup Workload;
        api::storage::v1: CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment
            VolumeAttributesClass;
        api::storage::v1beta1: VolumeAttributesClass;
        api::storagemigration::v1beta1: StorageVersionMigration;
        apiextensions_apiserver::pkg::apis::apiextensions::v1: CustomResourceDefinition;
        apimachinery::pkg::apis::meta::v1: Status;
        kube_aggregator::pkg::apis::apiregistration::v1: APIService;
    }
    // The crate does not count it as a resource: it is known in every group and version.
    collector.add::<k8s_openapi::apimachinery::pkg::apis::meta::v1::DeleteOptions>("", "v1", "DeleteOptions");
    collector.shared();
    let Collector { mut generator, kinds } = collector;
    Kinds { kinds, definitions: generator.take_definitions(false) }
}
