//! Pods and their templates.

pub(crate) mod affinity;
mod annotations;
mod containers;
mod env;
mod level;
mod mounts;
mod network;
mod options;
mod os;
mod overlaps;
mod probes;
mod projected;
mod resize;
mod scheduling;
mod security;
pub(crate) mod sources;
mod status;
mod update;
mod volumes;
mod warnings;

use concord_meta::names;
use serde_json::Value;

pub(crate) use self::{
    affinity::{has_invalid_values, node_selector},
    options::Options,
    scheduling::{taint_effect, tolerations_with},
    status::status_warnings,
    warnings::{new_pod_warnings as warnings, node_label, node_term, template_warnings},
};
use self::{os::all_containers, volumes::Volumes};
use crate::{
    gates::Gate,
    labels,
    node::{Node, Root},
    resources,
    rules::{MAX_INT32, env_name, range, strict_env_name},
};

/// What the rules about a pod's parts need to know about the whole.
pub(super) struct Pod<'v> {
    spec: Node<'v>,
    options: Options<'v>,
    /// The volumes that containers can mount.
    volumes: Volumes<'v>,
    /// The names of the pod's claims for resources.
    claims: Vec<&'v str>,
    grace: Option<i64>,
}

impl<'v> Pod<'v> {
    fn os(&self) -> Option<&'v str> {
        self.spec.raw("os").map(|os| os.get("name").and_then(Value::as_str).unwrap_or_default())
    }

    /// Whether variables may be called anything: so may they as soon as one of them was already.
    fn takes_any_variable(&self) -> bool {
        let was_taken = |name: &&str| {
            self.options.old_variables.contains(name)
                && !strict_env_name(name).is_empty()
                && env_name(name).is_empty()
        };
        self.spec.gate(Gate::RelaxedEnvironmentVariableValidation)
            || !self.options.old_variables.is_empty() && options::variables(self.spec).iter().any(was_taken)
    }

    fn uses_host_users(&self) -> bool {
        self.spec.option("hostUsers").unwrap_or(true)
    }
}

/// A new pod.
pub(crate) fn create(root: Root<'_>) {
    let options = Options { resource_is_pod: true, ..Options::default() };
    metadata_and_spec(root, &options);
    let spec = root.get("spec");
    if !spec.get("ephemeralContainers").is_empty() {
        spec.child("ephemeralContainers").forbidden("cannot be set on create");
    }
    if !spec.str("nodeName").is_empty() && !spec.get("schedulingGates").is_empty() {
        spec.child("nodeName").forbidden("cannot be set until all schedulingGates have been cleared");
    }
    annotations::match_fields(root.metadata(), spec);
}

pub(crate) use update::update;

fn metadata_and_spec<'v>(root: Root<'v>, options: &Options<'v>) {
    let spec = root.get("spec");
    let metadata = root.metadata();
    annotations::pod_specific(metadata.get("annotations"), spec, options);
    let is_mirror = root.annotation(annotations::MIRROR).is_some();
    pod_spec(spec, Some(root.name()).filter(|name| !name.is_empty()), is_mirror, options);
    if spec.str("serviceAccountName").is_empty() {
        no_tokens(spec);
    }
    for list in ["containers", "initContainers"] {
        spec.get(list).items().for_each(containers::trimmed_image);
    }
}

/// Tokens are those of a service account.
fn no_tokens(spec: Node<'_>) {
    for volume in spec.get("volumes").items().filter(|volume| volume.has("projected")) {
        for source in volume.get2("projected", "sources").items() {
            if source.has("serviceAccountToken") {
                source
                    .child("serviceAccountToken")
                    .forbidden("must not be specified when serviceAccountName is not set");
            }
        }
    }
}

/// The template of pods that a workload makes. Errors about its labels and annotations leave out `metadata`.
pub(crate) fn template<'v>(template: Node<'v>, options: &Options<'v>) {
    let metadata = template.get("metadata");
    let at = |name: &'static str| template.child(name).holding(metadata.raw(name));
    labels::labels(at("labels"));
    labels::annotations(at("annotations"));
    let spec = template.get("spec");
    annotations::pod_specific(at("annotations"), spec, options);
    pod_spec(spec, None, false, options);
    annotations::match_fields(metadata, spec);
    if !spec.get("ephemeralContainers").is_empty() {
        spec.child("ephemeralContainers").forbidden("ephemeral containers not allowed in pod template");
    }
}

/// What a template's labels and annotations have to hold besides.
pub(crate) fn template_metadata<'v>(template: Node<'v>, options: &Options<'v>) {
    let metadata = template.get("metadata");
    let at = |name: &'static str| template.child(name).holding(metadata.raw(name));
    labels::labels(at("labels"));
    labels::annotations(at("annotations"));
    annotations::pod_specific(at("annotations"), template.get("spec"), options);
}

fn pod_spec<'v>(spec: Node<'v>, name: Option<&str>, is_mirror: bool, options: &Options<'v>) {
    let grace = spec.get("terminationGracePeriodSeconds");
    if !grace.is_set() {
        grace.required("");
    }
    let volumes = volumes::volumes(spec.get("volumes"), name, options);
    let claims = spec.get("resourceClaims");
    volumes::resource_claims(claims, is_mirror);
    let claims =
        claims.list().iter().filter_map(|claim| claim.get("name")?.as_str()).filter(|name| !name.is_empty());
    let pod = Pod { spec, options: options.clone(), volumes, claims: claims.collect(), grace: grace.int() };
    let (regular, init) = (spec.get("containers"), spec.get("initContainers"));
    containers::containers(regular, &pod);
    containers::init_containers(init, regular, &pod);
    containers::ephemeral_containers(spec.get("ephemeralContainers"), regular, init, &pod);
    level::pod_resources(&pod);
    network::host_network(&pod);
    spec.get("restartPolicy").required_one_of(&["Always", "OnFailure", "Never"]);
    spec.get("dnsPolicy").required_one_of(&["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
    labels::labels(spec.get("nodeSelector"));
    security::pod_security_context(spec.get("securityContext"), &pod);
    affinity::affinity(spec.get("affinity"), options);
    network::dns_config(spec.get("dnsConfig"), spec.str("dnsPolicy"), options);
    scheduling::readiness_gates(spec.get("readinessGates"));
    scheduling::scheduling_gates(spec.get("schedulingGates"));
    scheduling::topology_spread(spec.get("topologySpreadConstraints"), options);
    os::host_process(&pod);
    host_users(&pod);
    network::hostname_override(spec);
    names_and_numbers(spec, options);
    scheduling::tolerations(spec.get("tolerations"), options.comparing_tolerations);
    network::host_aliases(spec.get("hostAliases"));
    classes(spec, options);
    os::operating_system(&pod);
    scheduling::group(spec.get("schedulingGroup"));
    scheduling::workload(spec.get("workloadRef"));
    file_key_volumes(spec);
}

fn names_and_numbers(spec: Node<'_>, options: &Options<'_>) {
    spec.get("serviceAccountName").optional_and(names::dns1123_subdomain);
    spec.get("nodeName").optional_and(names::dns1123_subdomain);
    let deadline = spec.get("activeDeadlineSeconds");
    if let Some(seconds) = deadline.int()
        && !(1..=MAX_INT32).contains(&seconds)
    {
        deadline.invalid(seconds, range(1, MAX_INT32));
    }
    if !options.without_hostname {
        spec.get("hostname").optional_and(names::dns1123_label);
        spec.get("subdomain").optional_and(names::dns1123_label);
    }
}

fn classes(spec: Node<'_>, options: &Options<'_>) {
    spec.get("priorityClassName").optional_and(names::dns1123_subdomain);
    let runtime = spec.get("runtimeClassName");
    if runtime.is_set() {
        runtime.check(names::dns1123_subdomain);
    }
    let preemption = spec.get("preemptionPolicy");
    if preemption.is_set() {
        preemption.required_one_of(&["PreemptLowerPriority", "Never"]);
    }
    if spec.has("overhead") {
        let overhead = spec.get("overhead");
        resources::overhead(overhead, options.indivisible_hugepages);
    }
}

/// Pods with users of their own cannot share the host's other namespaces. Two of the names are upstream's slips.
fn host_users(pod: &Pod<'_>) {
    const DETAIL: &str = "when `hostUsers` is false";
    let spec = pod.spec;
    if pod.uses_host_users() {
        return;
    }
    let with_host_network =
        pod.options.user_namespaces_with_host_network || spec.gate(Gate::UserNamespacesHostNetworkSupport);
    if !with_host_network && spec.flag("hostNetwork") {
        spec.child("hostNetwork").forbidden(DETAIL);
    }
    for (flag, called) in [("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.flag(flag) {
            spec.child(called).forbidden(DETAIL);
        }
    }
    if !pod.options.user_namespaces_with_devices {
        for container in all_containers(spec).filter(|container| !container.get("volumeDevices").is_empty()) {
            container.child("volumeDevices").forbidden(DETAIL);
        }
    }
}

/// Variables are read from files of volumes that containers can write.
fn file_key_volumes(spec: Node<'_>) {
    let volumes = spec.raw("volumes").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for container in all_containers(spec).filter(|container| container.has("env")) {
        for (index, variable) in container.get("env").list().iter().enumerate() {
            let Some(reference) = variable.get("valueFrom").and_then(|from| from.get("fileKeyRef")) else {
                continue;
            };
            let name = reference.get("volumeName").and_then(Value::as_str).unwrap_or_default();
            let at =
                container.child("env").at(index).child("valueFrom").child("fileKeyRef").child("volumeName");
            match volumes.iter().rfind(|volume| volume.get("name").is_some_and(|known| known == name)) {
                None => at.not_found(name),
                Some(volume) if volume.get("emptyDir").is_none_or(Value::is_null) => {
                    at.invalid(name, "referenced volume must be of type emptyDir");
                }
                Some(_) => {}
            }
        }
    }
}
