//! What pods of one operating system cannot have.

use super::Pod;
use crate::node::Node;

const NOT_ON_WINDOWS: &str = "cannot be set for a windows pod";

/// Members of a pod that mean something on Linux only, in upstream's order; the first part says where they are.
const LINUX_POD: [(bool, &str); 15] = [
    (true, "appArmorProfile"),
    (true, "seLinuxOptions"),
    (false, "hostUsers"),
    (false, "hostPID"),
    (false, "hostIPC"),
    (true, "seccompProfile"),
    (true, "fsGroup"),
    (true, "fsGroupChangePolicy"),
    (true, "sysctls"),
    (false, "shareProcessNamespace"),
    (true, "runAsUser"),
    (true, "runAsGroup"),
    (true, "supplementalGroups"),
    (true, "supplementalGroupsPolicy"),
    (true, "seLinuxChangePolicy"),
];

const LINUX_CONTAINER: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// All containers, in the order in which upstream visits them.
pub(super) fn all_containers<'v>(spec: Node<'v>) -> impl Iterator<Item = Node<'v>> {
    ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(move |name| spec.get(name).items())
}

pub(super) fn operating_system(pod: &Pod<'_>) {
    let spec = pod.spec;
    if !spec.has("os") {
        return;
    }
    let os = spec.get("os");
    match os.str("name") {
        "" => os.child("name").required(""),
        "linux" => linux(spec),
        "windows" => windows(spec),
        _ => os.holding(os.raw("name")).one_of(&["linux", "windows"]),
    }
}

fn linux(spec: Node<'_>) {
    let contexts = std::iter::once(spec).chain(all_containers(spec)).map(|of| of.get("securityContext"));
    for context in contexts.filter(|context| context.has("windowsOptions")) {
        context.child("windowsOptions").forbidden("windows options cannot be set for a linux pod");
    }
}

fn windows(spec: Node<'_>) {
    let context = spec.get("securityContext");
    for (in_context, name) in LINUX_POD {
        let node = if in_context { context.get(name) } else { spec.get(name) };
        // Of the booleans two are no pointers in Go: false is absent.
        let is_set = match name {
            "hostPID" | "hostIPC" => spec.flag(name),
            "sysctls" => !node.is_empty(),
            _ => node.is_set(),
        };
        if is_set {
            node.forbidden(NOT_ON_WINDOWS);
        }
    }
    for container in all_containers(spec).filter(|container| container.has("securityContext")) {
        let context = container.get("securityContext");
        for name in LINUX_CONTAINER.into_iter().filter(|name| context.has(name)) {
            context.child(name).forbidden(NOT_ON_WINDOWS);
        }
    }
}

/// Either all containers run in the host's namespaces on Windows, or none does.
pub(super) fn host_process(pod: &Pod<'_>) {
    let spec = pod.spec;
    let of_pod = spec.get2("securityContext", "windowsOptions").option("hostProcess");
    let (mut count, mut host_process) = (0, 0);
    for container in all_containers(spec) {
        count += 1;
        let of_container = container
            .raw("securityContext")
            .and_then(|context| context.get("windowsOptions")?.get("hostProcess")?.as_bool());
        if let (Some(pod), Some(own)) = (of_pod, of_container)
            && pod != own
        {
            let detail = format!("pod hostProcess value must be identical if both are specified, was {pod}");
            container.get("securityContext").get2("windowsOptions", "hostProcess").invalid(own, detail);
        }
        host_process += usize::from(of_container.or(of_pod) == Some(true));
    }
    if host_process > 0 {
        if host_process != count {
            let detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
            spec.invalid("", detail);
        }
        if !spec.flag("hostNetwork") {
            let detail = "hostNetwork must be true if pod contains any hostProcess containers";
            spec.child("hostNetwork").invalid(false, detail);
        }
    }
}
