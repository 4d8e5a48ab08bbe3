//! Probes and hooks of containers.

use super::Pod;
use crate::{gates::Gate, node::Node, rules::http_header_name};

type Rule = fn(Node<'_>, &Pod<'_>);

const HANDLERS: [(&str, Rule); 5] = [
    ("exec", |node, _| node.need(&["command"])),
    ("httpGet", |node, _| http_get(node)),
    ("tcpSocket", |node, _| node.get("port").port_or_name()),
    ("grpc", |node, _| node.get("port").port()),
    ("sleep", sleep),
];

fn http_get(node: Node<'_>) {
    node.need(&["path"]);
    node.get("port").port_or_name();
    node.get("scheme").one_of(&["HTTP", "HTTPS"]);
    for header in node.get("httpHeaders").list() {
        let name = header.get("name").and_then(serde_json::Value::as_str).unwrap_or_default();
        node.child("httpHeaders").check_text(name, http_header_name);
    }
}

fn sleep(node: Node<'_>, pod: &Pod<'_>) {
    let seconds = node.num("seconds");
    let Some(grace) = pod.grace else { return };
    let may_be_zero = pod.options.zero_sleep || node.gate(Gate::PodLifecycleSleepActionAllowZero);
    let (least, detail) = match may_be_zero {
        true => (0, format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})")),
        false => (
            1,
            format!(
                "must be greater than 0 and less than terminationGracePeriodSeconds ({grace}). Enable \
                 AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep."
            ),
        ),
    };
    if !(least..=grace).contains(&seconds) {
        node.invalid(seconds, detail);
    }
}

fn handler(node: Node<'_>, pod: &Pod<'_>) {
    let mut given = HANDLERS.iter().filter(|(name, _)| node.has(name));
    match given.next() {
        None => node.required("must specify a handler type"),
        Some((name, rule)) => {
            rule(node.get(name), pod);
            given
                .for_each(|(name, _)| node.child(name).forbidden("may not specify more than 1 handler type"));
        }
    }
}

fn probe(probe: Node<'_>, pod: &Pod<'_>) {
    const NUMBERS: [&str; 5] =
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];
    handler(probe, pod);
    for name in NUMBERS {
        probe.get(name).nonnegative();
    }
    let own_grace = probe.get("terminationGracePeriodSeconds");
    if let Some(seconds) = own_grace.int()
        && seconds <= 0
    {
        own_grace.invalid(seconds, "must be greater than 0");
    }
}

fn succeeds_once(probe: Node<'_>) {
    let threshold = probe.get("successThreshold");
    let number = threshold.int().unwrap_or_default();
    if number != 1 {
        threshold.invalid(number, "must be 1");
    }
}

/// The hooks and the three probes of a container that runs along with the pod.
pub(super) fn lifecycle_and_probes(container: Node<'_>, pod: &Pod<'_>) {
    if container.has("lifecycle") {
        lifecycle(container.get("lifecycle"), pod);
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if !container.has(name) {
            continue;
        }
        let node = container.get(name);
        probe(node, pod);
        let grace = node.get("terminationGracePeriodSeconds");
        match name {
            "readinessProbe" if grace.is_set() => grace.wrong("must not be set for readinessProbes"),
            "readinessProbe" => {}
            _ => succeeds_once(node),
        }
    }
}

fn lifecycle(node: Node<'_>, pod: &Pod<'_>) {
    for hook in ["postStart", "preStop"] {
        if node.has(hook) {
            handler(node.get(hook), pod);
        }
    }
    let signal = node.get("stopSignal");
    if signal.is_set() {
        stop_signal(signal, pod.spec.get("os"));
    }
}

/// What a container may be told to stop with, which depends on the system that it runs on.
fn stop_signal(signal: Node<'_>, os: Node<'_>) {
    match os.str("name") {
        _ if !os.is_set() => signal.forbidden("may not be set for containers with empty `spec.os.name`"),
        "windows" => signal.one_of(&["SIGKILL", "SIGTERM"]),
        "linux" => {
            let all = linux_signals();
            signal.one_of(&all.iter().map(String::as_str).collect::<Vec<_>>());
        }
        _ => {}
    }
}

/// The signals of Linux: those with names, and those that count from the first and the last of the others.
fn linux_signals() -> Vec<String> {
    const NAMED: &str = "ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT RTMAX RTMIN SEGV \
        STKFLT STOP SYS TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ";
    let named = NAMED.split(' ').map(|name| format!("SIG{name}"));
    let counted = (1..=14).map(|n| format!("SIGRTMAX-{n}")).chain((1..=15).map(|n| format!("SIGRTMIN+{n}")));
    let mut all: Vec<String> = named.chain(counted).collect();
    all.sort_unstable();
    all
}
