//! Kinds without a printer of their own.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::column::NAME;
use crate::fields::Fields;
use crate::{Column, Printer, Row};

/// Shows name and creation time, not age: upstream's default leaves the arithmetic to the client.
pub(super) struct Fallback;

pub(super) static FALLBACK: Fallback = Fallback;

static COLUMNS: [Column; 2] = [NAME, Column::date("Created At", "Time the object was created.")];

/// How Go writes the zero time.
const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

impl Printer for Fallback {
    fn columns(&self) -> &[Column] {
        &COLUMNS
    }

    fn row(&self, object: &Map<String, Value>, _now: Timestamp) -> Row {
        let object = Fields::new(object);
        let created = object.metadata().time("creationTimestamp");
        let created = created.and_then(|time| Timestamp::from_second(time.as_second()).ok());
        row![object.name(), created.map_or_else(|| ZERO_TIME.to_owned(), |time| time.to_string())]
    }

    fn null_when_empty(&self) -> bool {
        true
    }
}
