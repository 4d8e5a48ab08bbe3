//! Pods. How a pod is doing follows from its phase, from conditions and from the states of all its
//! containers; the rules grew over the years and people know their words by heart.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::column::{AGE, NAME};
use crate::duration::since;
use crate::fields::Fields;
use crate::format::{NONE, age};
use crate::printer::BuiltIn;
use crate::{Column, Row, RowCondition};

pub(super) static POD: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Ready", "Ready containers of all containers."),
        Column::string("Status", "How the pod is doing, in a word."),
        Column::string("Restarts", "How often containers were restarted, and when last."),
        AGE,
        Column::wide("IP", "Address of the pod."),
        Column::wide("Node", "Node that runs the pod."),
        Column::wide("Nominated Node", "Node on which room is being made for the pod."),
        Column::wide("Readiness Gates", "Readiness gates that are open, of all."),
    ],
    print: pod,
};

static SUCCEEDED: [RowCondition; 1] = [RowCondition {
    condition_type: "Completed",
    status: "True",
    reason: "Succeeded",
    message: "The pod has completed successfully.",
}];

static FAILED: [RowCondition; 1] = [RowCondition {
    condition_type: "Completed",
    status: "True",
    reason: "Failed",
    message: "The pod failed.",
}];

fn pod(object: Fields<'_>, now: Timestamp) -> Row {
    let (spec, status) = (object.at("spec"), object.at("status"));
    let summary = Summary::of(object);
    let mut row = row![
        object.name(),
        format!("{}/{}", summary.ready, total_containers(spec)),
        summary.reason,
        summary.restarts.cell(now),
        age(object, now),
        ip(status),
        spec.text_or("nodeName", NONE),
        status.text_or("nominatedNodeName", NONE),
        readiness_gates(spec, status),
    ];
    row.conditions = match status.text("phase") {
        "Succeeded" => &SUCCEEDED,
        "Failed" => &FAILED,
        _ => &[],
    };
    row
}

/// Sidecars, which are init containers that keep running, count among the containers.
fn total_containers(spec: Fields<'_>) -> usize {
    let sidecars = spec.items("initContainers").filter(|container| is_sidecar(*container));
    spec.count("containers") + sidecars.count()
}

fn is_sidecar(init_container: Fields<'_>) -> bool {
    init_container.text("restartPolicy") == "Always"
}

/// The older field counts where both are there and differ.
fn ip(status: Fields<'_>) -> &str {
    let first = status.items("podIPs").next().map_or(NONE, |ip| ip.text_or("ip", NONE));
    status.text_or("podIP", first)
}

fn readiness_gates(spec: Fields<'_>, status: Fields<'_>) -> String {
    let gates = spec.items("readinessGates");
    let total = gates.len();
    if total == 0 {
        return NONE.to_owned();
    }
    let open = gates.filter(|gate| is_true(status, gate.text("conditionType"))).count();
    format!("{open}/{total}")
}

fn is_true(status: Fields<'_>, condition_type: &str) -> bool {
    status.condition(condition_type).is_some_and(|condition| condition.text("status") == "True")
}

/// How often containers were restarted, and when last.
#[derive(Default, Clone, Copy)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container: Fields<'_>) {
        self.count = self.count.saturating_add(container.int("restartCount"));
        let ended = container.at("lastState").at("terminated").time("finishedAt");
        self.last = self.last.max(ended);
    }

    fn cell(self, now: Timestamp) -> String {
        match (self.count, self.last) {
            (0, _) | (_, None) => self.count.to_string(),
            (count, last) => format!("{count} ({} ago)", since(last, now)),
        }
    }
}

/// What the containers of a pod come to.
struct Summary {
    reason: String,
    ready: usize,
    restarts: Restarts,
}

impl Summary {
    fn of(object: Fields<'_>) -> Self {
        let status = object.at("status");
        let mut summary = Self { reason: reason(status), ready: 0, restarts: Restarts::default() };
        let (initializing, sidecar_restarts) = summary.add_init_containers(object.at("spec"), status);
        if !initializing || is_true(status, "Initialized") {
            // Restarts during initialization are forgotten when it is over.
            summary.restarts = sidecar_restarts;
            summary.add_containers(status);
        }
        if object.is_deleted() {
            summary.delete(status);
        }
        summary
    }

    /// Whether the pod is still initializing, and the restarts of sidecars. Looks no further than the
    /// first init container that is not done.
    fn add_init_containers(&mut self, spec: Fields<'_>, status: Fields<'_>) -> (bool, Restarts) {
        let sidecars: BTreeMap<&str, bool> = spec
            .items("initContainers")
            .map(|container| (container.text("name"), is_sidecar(container)))
            .collect();
        let mut sidecar_restarts = Restarts::default();
        for (at, container) in status.items("initContainerStatuses").enumerate() {
            let sidecar = sidecars.get(container.text("name")).copied().unwrap_or_default();
            self.restarts.add(container);
            if sidecar {
                sidecar_restarts.add(container);
            }
            let terminated = container.at("state").present("terminated");
            if terminated.is_some_and(|terminated| terminated.int("exitCode") == 0) {
                continue;
            }
            if sidecar && container.flag("started") {
                self.ready += usize::from(container.flag("ready"));
                continue;
            }
            self.reason = init_reason(container)
                .unwrap_or_else(|| format!("Init:{at}/{}", spec.count("initContainers")));
            return (true, sidecar_restarts);
        }
        (false, sidecar_restarts)
    }

    /// The first container in the list has the last word.
    fn add_containers(&mut self, status: Fields<'_>) {
        let (mut running, mut error) = (false, None);
        for container in status.items("containerStatuses").rev() {
            self.restarts.add(container);
            let state = container.at("state");
            let waiting = state.at("waiting").text("reason");
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if let Some(terminated) = state.present("terminated") {
                self.reason = end_reason(terminated);
                if terminated.int("exitCode") != 0 {
                    error = Some(self.reason.clone());
                }
            } else if container.flag("ready") && state.has("running") {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            self.reconsider(running, error, is_true(status, "Ready"));
        }
    }

    /// A pod of which only some containers completed has not.
    fn reconsider(&mut self, running: bool, error: Option<String>, pod_is_ready: bool) {
        if running && pod_is_ready {
            "Running".clone_into(&mut self.reason);
        } else if let Some(error) = error {
            self.reason = error;
        } else if running {
            "NotReady".clone_into(&mut self.reason);
        }
    }

    fn delete(&mut self, status: Fields<'_>) {
        if status.text("reason") == "NodeLost" {
            "Unknown".clone_into(&mut self.reason);
        } else if !matches!(status.text("phase"), "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut self.reason);
        }
    }
}

/// What the pod itself says, before its containers are looked at.
fn reason(status: Fields<'_>) -> String {
    let gated = |condition: Fields<'_>| {
        condition.text("type") == "PodScheduled" && condition.text("reason") == "SchedulingGated"
    };
    match status.items("conditions").any(gated) {
        true => "SchedulingGated".to_owned(),
        false => status.text_or("reason", status.text("phase")).to_owned(),
    }
}

/// Why an init container is not done, if it says so.
fn init_reason(container: Fields<'_>) -> Option<String> {
    let state = container.at("state");
    if let Some(terminated) = state.present("terminated") {
        return Some(format!("Init:{}", end_reason(terminated)));
    }
    match state.at("waiting").text("reason") {
        "" | "PodInitializing" => None,
        reason => Some(format!("Init:{reason}")),
    }
}

/// Why a container ended.
fn end_reason(terminated: Fields<'_>) -> String {
    match (terminated.text("reason"), terminated.int("signal")) {
        ("", 0) => format!("ExitCode:{}", terminated.int("exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
