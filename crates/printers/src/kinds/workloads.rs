//! What keeps pods running: the `apps` group and its forerunners.

use concord_meta::GroupVersionKind;
use jiff::Timestamp;
use serde_json::Value;

use crate::column::{AGE, CONTAINERS, IMAGES, NAME};
use crate::fields::Fields;
use crate::format::{NONE, age, containers, labels, lower, selector, selector_or_none, with_group};
use crate::printer::BuiltIn;
use crate::{Column, Printer, Row};

pub(super) fn printer(kind: &str) -> Option<&'static dyn Printer> {
    match kind {
        "Deployment" => Some(&DEPLOYMENT),
        "ReplicaSet" => Some(&REPLICA_SET),
        "StatefulSet" => Some(&STATEFUL_SET),
        "DaemonSet" => Some(&DAEMON_SET),
        "ControllerRevision" => Some(&CONTROLLER_REVISION),
        _ => None,
    }
}

pub(super) fn policy_printer(kind: &str) -> Option<&'static dyn Printer> {
    match kind {
        "PodDisruptionBudget" => Some(&POD_DISRUPTION_BUDGET),
        _ => None,
    }
}

/// Which pods belong to the object.
const SELECTOR: Column = Column::wide("Selector", "Labels of the pods that belong to the object.");

fn pod_spec(object: Fields<'_>) -> Fields<'_> {
    object.at("spec").at("template").at("spec")
}

/// Controllers that were not told otherwise want one pod.
fn desired_replicas(object: Fields<'_>) -> i64 {
    object.at("spec").optional_int("replicas").unwrap_or(1)
}

static DEPLOYMENT: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Ready", "Ready pods of desired pods."),
        Column::string("Up-to-date", "Pods made from the current template."),
        Column::string("Available", "Pods ready for long enough."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    print: deployment,
};

fn deployment(object: Fields<'_>, now: Timestamp) -> Row {
    let status = object.at("status");
    let (names, images) = containers(pod_spec(object));
    row![
        object.name(),
        format!("{}/{}", status.int("readyReplicas"), desired_replicas(object)),
        status.int("updatedReplicas"),
        status.int("availableReplicas"),
        age(object, now),
        names,
        images,
        selector(object.at("spec"), "selector").unwrap_or_else(|| "<invalid>".to_owned()),
    ]
}

static REPLICA_SET: BuiltIn = BuiltIn { columns: REPLICA_COLUMNS, print: replica_set };

pub(super) static REPLICATION_CONTROLLER: BuiltIn =
    BuiltIn { columns: REPLICA_COLUMNS, print: replication_controller };

static REPLICA_COLUMNS: &[Column] = &[
    NAME,
    Column::integer("Desired", "Pods that should exist."),
    Column::integer("Current", "Pods that exist."),
    Column::integer("Ready", "Pods that are ready."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

fn replica_set(object: Fields<'_>, now: Timestamp) -> Row {
    replicas(object, selector_or_none(object.at("spec"), "selector"), now)
}

/// Its selector is a plain map, which defaults to the labels of the template.
fn replication_controller(object: Fields<'_>, now: Timestamp) -> Row {
    let spec = object.at("spec");
    let selector = match spec.count("selector") {
        0 => labels(spec.at("template").metadata(), "labels"),
        _ => labels(spec, "selector"),
    };
    replicas(object, selector, now)
}

fn replicas(object: Fields<'_>, selector: String, now: Timestamp) -> Row {
    let status = object.at("status");
    let (names, images) = containers(pod_spec(object));
    row![
        object.name(),
        desired_replicas(object),
        status.int("replicas"),
        status.int("readyReplicas"),
        age(object, now),
        names,
        images,
        selector,
    ]
}

static STATEFUL_SET: BuiltIn = BuiltIn {
    columns: &[NAME, Column::string("Ready", "Ready pods of desired pods."), AGE, CONTAINERS, IMAGES],
    print: stateful_set,
};

fn stateful_set(object: Fields<'_>, now: Timestamp) -> Row {
    let ready = object.at("status").int("readyReplicas");
    let (names, images) = containers(pod_spec(object));
    row![object.name(), format!("{ready}/{}", desired_replicas(object)), age(object, now), names, images]
}

static DAEMON_SET: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::integer("Desired", "Nodes that should run the pod."),
        Column::integer("Current", "Nodes that should run the pod and do."),
        Column::integer("Ready", "Nodes on which the pod is ready."),
        Column::integer("Up-to-date", "Nodes with a pod made from the current template."),
        Column::integer("Available", "Nodes on which the pod is ready for long enough."),
        Column::string("Node Selector", "Labels of the nodes that should run the pod."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    print: daemon_set,
};

fn daemon_set(object: Fields<'_>, now: Timestamp) -> Row {
    let status = object.at("status");
    let (names, images) = containers(pod_spec(object));
    row![
        object.name(),
        status.int("desiredNumberScheduled"),
        status.int("currentNumberScheduled"),
        status.int("numberReady"),
        status.int("updatedNumberScheduled"),
        status.int("numberAvailable"),
        labels(pod_spec(object), "nodeSelector"),
        age(object, now),
        names,
        images,
        selector_or_none(object.at("spec"), "selector"),
    ]
}

pub(super) static POD_TEMPLATE: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Containers", "Names of the template's containers."),
        Column::string("Images", "Images of the template's containers."),
        Column::string("Pod Labels", "Labels of the template."),
    ],
    print: pod_template,
};

fn pod_template(object: Fields<'_>, _now: Timestamp) -> Row {
    let template = object.at("template");
    let (names, images) = containers(template.at("spec"));
    row![object.name(), names, images, labels(template.metadata(), "labels")]
}

static CONTROLLER_REVISION: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Controller", "Object whose state this is."),
        Column::string("Revision", "Number of the state."),
        AGE,
    ],
    print: controller_revision,
};

fn controller_revision(object: Fields<'_>, now: Timestamp) -> Row {
    let owner = object.metadata().items("ownerReferences").find(|owner| owner.flag("controller"));
    let controller = owner.map_or_else(|| NONE.to_owned(), owner_name);
    row![object.name(), controller, object.int("revision"), age(object, now)]
}

fn owner_name(owner: Fields<'_>) -> String {
    let parsed = GroupVersionKind::from_api_version(owner.text("apiVersion"), owner.text("kind"));
    let kind = parsed.map_or_else(|_| String::new(), |kind| with_group(&kind.kind, &kind.group));
    match kind.as_str() {
        "" => owner.text("name").to_owned(),
        kind => format!("{}/{}", lower(kind), owner.text("name")),
    }
}

static POD_DISRUPTION_BUDGET: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Min Available", "Pods that must stay."),
        Column::string("Max Unavailable", "Pods that may be missing."),
        Column::integer("Allowed Disruptions", "Pods that may be evicted now."),
        AGE,
    ],
    print: pod_disruption_budget,
};

fn pod_disruption_budget(object: Fields<'_>, now: Timestamp) -> Row {
    let spec = object.at("spec");
    row![
        object.name(),
        number_or_percentage(spec.value("minAvailable")),
        number_or_percentage(spec.value("maxUnavailable")),
        object.at("status").int("disruptionsAllowed"),
        age(object, now),
    ]
}

fn number_or_percentage(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => "N/A".to_owned(),
    }
}
