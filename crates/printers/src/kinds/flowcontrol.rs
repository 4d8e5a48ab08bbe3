//! Which requests the server answers first.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::column::{AGE, NAME};
use crate::fields::Fields;
use crate::format::{NONE, age};
use crate::printer::BuiltIn;
use crate::{Column, Printer, Row};

pub(super) fn printer(kind: &str) -> Option<&'static dyn Printer> {
    match kind {
        "FlowSchema" => Some(&FLOW_SCHEMA),
        "PriorityLevelConfiguration" => Some(&PRIORITY_LEVEL),
        _ => None,
    }
}

/// The one kind whose list is shown in an order of its own: that in which the schemas are tried.
struct FlowSchema;

static FLOW_SCHEMA: FlowSchema = FlowSchema;

static FLOW_SCHEMA_COLUMNS: [Column; 6] = [
    NAME,
    Column::string("PriorityLevel", "Priority level of the requests."),
    Column::string("MatchingPrecedence", "How early the schema is tried; the least first."),
    Column::string("DistinguisherMethod", "What makes requests one flow."),
    AGE,
    Column::string("MissingPL", "Whether the priority level is missing."),
];

impl Printer for FlowSchema {
    fn columns(&self) -> &[Column] {
        &FLOW_SCHEMA_COLUMNS
    }

    fn row(&self, object: &Map<String, Value>, now: Timestamp) -> Row {
        let object = Fields::new(object);
        let spec = object.at("spec");
        let dangling = object.at("status").condition("Dangling");
        row![
            object.name(),
            spec.at("priorityLevelConfiguration").text("name"),
            precedence(object),
            spec.present("distinguisherMethod").map_or(NONE, |method| method.text("type")),
            age(object, now),
            dangling.map_or("?", |condition| condition.text("status")),
        ]
    }

    fn place(&self, object: &Map<String, Value>) -> Option<(i64, String)> {
        let object = Fields::new(object);
        Some((precedence(object), object.name().to_owned()))
    }
}

fn precedence(flow_schema: Fields<'_>) -> i64 {
    positive(flow_schema.at("spec"), "matchingPrecedence", 1000)
}

/// A number for which zero means the default.
fn positive(object: Fields<'_>, field: &str, default: i64) -> i64 {
    object.optional_int(field).filter(|number| *number != 0).unwrap_or(default)
}

static PRIORITY_LEVEL: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Type", "Whether the level has limits."),
        Column::string("NominalConcurrencyShares", "Share of the server it gets."),
        Column::string("Queues", "Number of queues."),
        Column::string("HandSize", "Queues among which a flow may choose."),
        Column::string("QueueLengthLimit", "Requests that may wait in a queue."),
        AGE,
    ],
    print: priority_level,
};

fn priority_level(object: Fields<'_>, now: Timestamp) -> Row {
    let spec = object.at("spec");
    let limited = spec.present("limited");
    let queuing = limited.and_then(|limited| limited.at("limitResponse").present("queuing"));
    let shares = limited.map(|limited| limited.optional_int("nominalConcurrencyShares").unwrap_or(30));
    let queue = |field, default| cell(queuing.map(|queuing| positive(queuing, field, default)));
    row![
        object.name(),
        spec.text("type"),
        cell(shares),
        queue("queues", 64),
        queue("handSize", 8),
        queue("queueLengthLimit", 50),
        age(object, now),
    ]
}

fn cell(number: Option<i64>) -> Value {
    number.map_or_else(|| NONE.into(), Value::from)
}
