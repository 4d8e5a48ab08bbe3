//! Which pods come first, and together.

use jiff::Timestamp;

use super::core::name_and_age;
use crate::column::{AGE, NAME};
use crate::fields::Fields;
use crate::format::{NONE, age};
use crate::printer::BuiltIn;
use crate::{Column, Printer, Row};

pub(super) fn printer(kind: &str) -> Option<&'static dyn Printer> {
    match kind {
        "PriorityClass" => Some(&PRIORITY_CLASS),
        "Workload" => Some(&WORKLOAD),
        "PodGroup" => Some(&POD_GROUP),
        _ => None,
    }
}

static PRIORITY_CLASS: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::integer("Value", "Priority of the pods of this class."),
        Column::boolean("Global-Default", "Whether pods without a class get this one."),
        AGE,
        Column::string("PreemptionPolicy", "Whether its pods may drive out others."),
    ],
    print: priority_class,
};

fn priority_class(object: Fields<'_>, now: Timestamp) -> Row {
    row![
        object.name(),
        object.int("value"),
        object.flag("globalDefault"),
        age(object, now),
        object.optional_text("preemptionPolicy").unwrap_or("PreemptLowerPriority"),
    ]
}

static WORKLOAD: BuiltIn = BuiltIn { columns: &[NAME, AGE], print: name_and_age };

static POD_GROUP: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Policy", "How its pods are scheduled."),
        Column::string("Workload", "Workload it was made for."),
        Column::string("Status", "Whether it found a place."),
        AGE,
    ],
    print: pod_group,
};

fn pod_group(object: Fields<'_>, now: Timestamp) -> Row {
    let spec = object.at("spec");
    let workload =
        spec.present("podGroupTemplateRef").map(|template| template.at("workload").text("workloadName"));
    row![
        object.name(),
        if spec.at("schedulingPolicy").has("gang") { "Gang" } else { "Basic" },
        workload.unwrap_or(NONE),
        pod_group_status(object.at("status")),
        age(object, now),
    ]
}

fn pod_group_status(status: Fields<'_>) -> &str {
    if let Some(target) = status.last_condition("DisruptionTarget") {
        return target.text("reason");
    }
    match status.last_condition("PodGroupScheduled") {
        None => "Pending",
        Some(scheduled) if scheduled.text("status") == "True" => "Scheduled",
        Some(_) => "Unschedulable",
    }
}
