//! Work that ends.

use jiff::Timestamp;

use crate::column::{AGE, CONTAINERS, IMAGES, NAME};
use crate::duration::{human_duration, since};
use crate::fields::Fields;
use crate::format::{NONE, age, containers, selector_or_none};
use crate::printer::BuiltIn;
use crate::{Column, Printer, Row};

pub(super) fn printer(kind: &str) -> Option<&'static dyn Printer> {
    match kind {
        "Job" => Some(&JOB),
        "CronJob" => Some(&CRON_JOB),
        _ => None,
    }
}

const SELECTOR: Column = Column::wide("Selector", "Labels of the pods that belong to the job.");

static JOB: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Status", "How far the job is."),
        Column::string("Completions", "Pods that succeeded of those that should."),
        Column::string("Duration", "How long the job ran, or runs."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    print: job,
};

fn job(object: Fields<'_>, now: Timestamp) -> Row {
    let spec = object.at("spec");
    let (names, images) = containers(spec.at("template").at("spec"));
    row![
        object.name(),
        job_status(object),
        completions(object),
        job_duration(object.at("status"), now),
        age(object, now),
        names,
        images,
        selector_or_none(spec, "selector"),
    ]
}

/// The conditions that say how far a job is, those that outweigh others first.
fn job_status(object: Fields<'_>) -> &'static str {
    let holds = |condition_type| {
        let condition = object.at("status").condition(condition_type);
        condition.is_some_and(|condition| condition.text("status") == "True")
    };
    let found = |names: [&'static str; 2]| names.into_iter().find(|name| holds(name));
    if let Some(ended) = found(["Complete", "Failed"]) {
        return ended;
    }
    if object.is_deleted() {
        return "Terminating";
    }
    if holds("Suspended") {
        return "Suspended";
    }
    found(["FailureTarget", "SuccessCriteriaMet"]).unwrap_or("Running")
}

/// Without a number of completions one success is enough, however many pods try.
fn completions(object: Fields<'_>) -> String {
    let (spec, succeeded) = (object.at("spec"), object.at("status").int("succeeded"));
    match (spec.optional_int("completions"), spec.int("parallelism")) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn job_duration(status: Fields<'_>, now: Timestamp) -> String {
    let Some(start) = status.time("startTime") else { return String::new() };
    let end = status.time("completionTime").unwrap_or(now);
    human_duration(end.duration_since(start))
}

static CRON_JOB: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Schedule", "When jobs start, in cron's words."),
        Column::string("Timezone", "Where the schedule's clock hangs."),
        Column::boolean("Suspend", "Whether no more jobs start."),
        Column::integer("Active", "Number of running jobs."),
        Column::string("Last Schedule", "Time since a job was started."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    print: cron_job,
};

fn cron_job(object: Fields<'_>, now: Timestamp) -> Row {
    let (spec, status) = (object.at("spec"), object.at("status"));
    let job = spec.at("jobTemplate").at("spec");
    let (names, images) = containers(job.at("template").at("spec"));
    let scheduled = status.value("lastScheduleTime").map(|_| since(status.time("lastScheduleTime"), now));
    row![
        object.name(),
        spec.text("schedule"),
        spec.optional_text("timeZone").unwrap_or(NONE),
        if spec.flag("suspend") { "True" } else { "False" },
        status.count("active"),
        scheduled.unwrap_or_else(|| NONE.to_owned()),
        age(object, now),
        names,
        images,
        selector_or_none(job, "selector"),
    ]
}
