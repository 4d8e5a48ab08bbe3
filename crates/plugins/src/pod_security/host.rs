//! What pods share with the machine that they run on.

use serde_json::Value;

use super::check::{Container, Pod, Values, Violation, containers, plural, quoted, setters, violation};

pub(super) fn namespaces(pod: Pod<'_>) -> Option<Violation> {
    let is_shared = |name: &&&str| pod.spec.get(**name) == Some(&Value::Bool(true));
    let shared = ["hostNetwork", "hostPID", "hostIPC"];
    let shared: Vec<String> = shared.iter().filter(is_shared).map(|name| format!("{name}=true")).collect();
    if shared.is_empty() {
        return None;
    }
    violation("host namespaces", shared.join(", "))
}

pub(super) fn paths(pod: Pod<'_>) -> Option<Violation> {
    let on_host = pod.list("volumes").filter(|volume| volume.contains_key("hostPath"));
    let names: Vec<&str> = on_host.filter_map(|volume| volume.get("name")?.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    let volumes = plural("volume", "volumes", names.len());
    violation("hostPath volumes", format!("{volumes} {}", quoted(names)))
}

pub(super) fn ports(pod: Pod<'_>) -> Option<Violation> {
    let (mut names, mut used) = (Vec::new(), std::collections::BTreeSet::new());
    for container in pod.containers() {
        let ports = container.0.get("ports").and_then(Value::as_array).into_iter().flatten();
        let on_host = ports.filter_map(|port| port.get("hostPort")?.as_i64()).filter(|port| *port != 0);
        let on_host: Vec<String> = on_host.map(|port| port.to_string()).collect();
        if !on_host.is_empty() {
            names.push(container.name());
            used.extend(on_host);
        }
    }
    if names.is_empty() {
        return None;
    }
    let (uses, ports) = (plural("uses", "use", names.len()), plural("hostPort", "hostPorts", used.len()));
    let used: Vec<String> = used.into_iter().collect();
    violation("hostPort", format!("{} {uses} {ports} {}", containers(&names), used.join(", ")))
}

/// The hosts that the probes and hooks of a container ask.
fn hosts(container: Container<'_>) -> impl Iterator<Item = &str> {
    let member = |path: &'static str| container.0.get(path);
    let hook = move |name: &'static str| member("lifecycle").and_then(|hooks| hooks.get(name));
    let handlers = [
        member("livenessProbe"),
        member("readinessProbe"),
        member("startupProbe"),
        hook("postStart"),
        hook("preStop"),
    ];
    let asked =
        handlers.into_iter().flatten().flat_map(|handler| [handler.get("httpGet"), handler.get("tcpSocket")]);
    asked.flatten().filter_map(|how| how.get("host")?.as_str()).filter(|host| !host.is_empty())
}

pub(super) fn probes(pod: Pod<'_>) -> Option<Violation> {
    let (mut names, mut forbidden) = (Values::new(), Values::new());
    for container in pod.containers() {
        for host in hosts(container) {
            names.insert(container.name());
            forbidden.insert(host);
        }
    }
    if names.is_empty() {
        return None;
    }
    let names: Vec<&str> = names.into_iter().collect();
    let uses = plural("uses", "use", names.len());
    let what = plural("probe or lifecycle host", "probe or lifecycle hosts", forbidden.len());
    violation(
        "probe or lifecycle host",
        format!("{} {uses} {what} {}", containers(&names), quoted(forbidden)),
    )
}

pub(super) fn windows_process(pod: Pod<'_>) -> Option<Violation> {
    let is_set = |options: Option<&Value>| options.is_some_and(|options| options["hostProcess"] == true);
    let all = pod.containers().filter(|container| is_set(container.security("windowsOptions")));
    let names: Vec<&str> = all.map(Container::name).collect();
    let setters = setters(is_set(pod.security("windowsOptions")), &names)?;
    violation(
        "hostProcess",
        format!("{setters} must not set securityContext.windowsOptions.hostProcess=true"),
    )
}
