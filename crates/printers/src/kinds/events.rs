//! Events, which are one kind in two groups with different names for the same fields.

use jiff::Timestamp;

use crate::column::NAME;
use crate::duration::since;
use crate::fields::Fields;
use crate::format::lower;
use crate::printer::BuiltIn;
use crate::{Column, Printer, Row};

pub(super) fn printer(kind: &str) -> Option<&'static dyn Printer> {
    match kind {
        "Event" => Some(&EVENT),
        _ => None,
    }
}

pub(super) static CORE_EVENT: BuiltIn =
    BuiltIn { columns: COLUMNS, print: |object, now| event(object, &CORE_NAMES, now) };

static EVENT: BuiltIn = BuiltIn { columns: COLUMNS, print: |object, now| event(object, &NAMES, now) };

static COLUMNS: &[Column] = &[
    Column::string("Last Seen", "Time since it happened last."),
    Column::string("Type", "Whether it is normal or a warning."),
    Column::string("Reason", "Why, in a word for programs."),
    Column::string("Object", "Object it happened to."),
    Column::wide("Subobject", "Part of the object it happened to."),
    Column::wide("Source", "Who reports it."),
    Column::string("Message", "What happened."),
    Column::wide("First Seen", "Time since it happened first."),
    Column::wide("Count", "How often it happened."),
    NAME.with_priority(1),
];

/// What the fields are called that differ between the groups.
struct Names {
    object: &'static str,
    message: &'static str,
    source: &'static str,
    first: &'static str,
    last: &'static str,
    count: &'static str,
    controller: &'static str,
}

static CORE_NAMES: Names = Names {
    object: "involvedObject",
    message: "message",
    source: "source",
    first: "firstTimestamp",
    last: "lastTimestamp",
    count: "count",
    controller: "reportingComponent",
};

static NAMES: Names = Names {
    object: "regarding",
    message: "note",
    source: "deprecatedSource",
    first: "deprecatedFirstTimestamp",
    last: "deprecatedLastTimestamp",
    count: "deprecatedCount",
    controller: "reportingController",
};

fn event(event: Fields<'_>, names: &Names, now: Timestamp) -> Row {
    let object = event.at(names.object);
    let first = event.time(names.first).or_else(|| event.time("eventTime"));
    let (last, count) = match event.present("series") {
        Some(series) => (series.time("lastObservedTime"), series.int("count")),
        // The newer API does not count what happened once.
        None => (
            event.time(names.last).or(first),
            event.optional_int(names.count).filter(|n| *n != 0).unwrap_or(1),
        ),
    };
    row![
        since(last, now),
        event.text("type"),
        event.text("reason"),
        target(object),
        object.text("fieldPath"),
        source(event, names),
        event.text(names.message).trim(),
        since(first, now),
        count,
        event.name(),
    ]
}

fn target(object: Fields<'_>) -> String {
    let kind = lower(object.text("kind"));
    match object.text("name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(event: Fields<'_>, names: &Names) -> String {
    let source = event.at(names.source);
    let component = source.text_or("component", event.text(names.controller));
    match source.text_or("host", event.text("reportingInstance")) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}
