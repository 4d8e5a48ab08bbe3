//! Putting rows together to a `Table`.

use concord_meta::Status;
use concord_meta::field::{self, BadValue, Path};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{Printer, Row};

/// Marks the bookmark that ends the initial events of a watch. It is shown even without objects: clients
/// wait for it.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// The version of `meta.k8s.io` in which a client wants its table. Both look the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum MetaVersion {
    /// `meta.k8s.io/v1`
    #[default]
    V1,
    /// `meta.k8s.io/v1beta1`
    V1Beta1,
}

impl MetaVersion {
    /// The version by its name, if there are tables in it.
    #[must_use]
    pub fn parse(version: &str) -> Option<Self> {
        match version {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        }
    }

    /// Group and version, as they stand in `apiVersion`.
    #[must_use]
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// What stands beside the cells of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// The object's metadata, as a `PartialObjectMetadata`.
    #[default]
    Metadata,
    /// The object.
    Object,
}

impl IncludeObject {
    /// The value of the `includeObject` parameter; empty means metadata.
    ///
    /// # Errors
    ///
    /// When it is none of upstream's values, with upstream's answer.
    pub fn parse(text: &str) -> Result<Self, Status> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            _ => {
                let detail = "must be 'Metadata', 'Object', 'None', or empty";
                let error = field::Error::invalid(&Path::new("includeObject"), BadValue::named(text), detail);
                Err(Status::bad_request(format!("Unable to convert to Table as requested: {error}")))
            }
        }
    }
}

/// How a client wants its table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableOptions {
    /// The version of the table.
    pub version: MetaVersion,
    /// What stands beside the cells.
    pub include_object: IncludeObject,
    /// Leaves out the columns: for all but the first event of a watch.
    pub no_headers: bool,
}

/// The metadata of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListMeta {
    /// The state the list shows.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// How to get the next page.
    #[serde(rename = "continue", skip_serializing_if = "String::is_empty")]
    pub continue_token: String,
    /// How many objects follow this page, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_item_count: Option<u64>,
}

/// Makes the tables of one request.
///
/// A table is an object like others, to be written in whatever form the client accepts.
///
/// ```
/// use concord_printers::{Tables, TableOptions, printer};
/// use serde_json::json;
/// let tables = Tables {
///     printer: printer("", "v1", "ServiceAccount"),
///     options: TableOptions::default(),
///     now: "2026-01-01T00:02:00Z".parse().unwrap(),
/// };
/// let account = json!({"metadata": {"name": "builder", "creationTimestamp": "2026-01-01T00:00:00Z"}});
/// let table = tables.object(account.as_object().unwrap().clone());
/// assert_eq!(table["rows"][0]["cells"], json!(["builder", "2m"]));
/// ```
#[derive(Clone, Copy)]
pub struct Tables<'a> {
    /// What prints the objects.
    pub printer: &'a dyn Printer,
    /// What the client wants.
    pub options: TableOptions,
    /// Up to when ages are counted.
    pub now: Timestamp,
}

impl Tables<'_> {
    /// The table of a list. Objects are taken one by one and dropped, but for what is shown of them.
    #[must_use]
    pub fn list(
        &self,
        metadata: &ListMeta,
        objects: impl IntoIterator<Item = Map<String, Value>>,
    ) -> Map<String, Value> {
        let placed = |object| (self.printer.place(&object), self.row(object));
        let mut rows: Vec<_> = objects.into_iter().map(placed).collect();
        // Rows without a place keep their order.
        rows.sort_by(|(a, _), (b, _)| a.cmp(b));
        let rows = match rows.is_empty() && self.printer.null_when_empty() {
            true => Value::Null,
            false => rows.into_iter().map(|(_, row)| row).collect(),
        };
        self.table(metadata, rows)
    }

    /// The table of one object, alone or in the event of a watch.
    #[must_use]
    pub fn object(&self, object: Map<String, Value>) -> Map<String, Value> {
        let resource_version = metadata_of(&object).and_then(|metadata| metadata.get("resourceVersion"));
        let resource_version = resource_version.and_then(Value::as_str).unwrap_or_default().to_owned();
        let metadata = ListMeta { resource_version, ..ListMeta::default() };
        self.table(&metadata, Value::Array(vec![self.row(object)]))
    }

    fn table(&self, metadata: &ListMeta, rows: Value) -> Map<String, Value> {
        let columns = (!self.options.no_headers).then(|| self.printer.columns());
        Map::from_iter([
            ("kind".to_owned(), "Table".into()),
            ("apiVersion".to_owned(), self.options.version.api_version().into()),
            ("metadata".to_owned(), json!(metadata)),
            ("columnDefinitions".to_owned(), json!(columns)),
            ("rows".to_owned(), rows),
        ])
    }

    fn row(&self, object: Map<String, Value>) -> Value {
        let Row { cells, conditions } = self.printer.row(&object, self.now);
        let mut row = Map::from_iter([
            ("cells".to_owned(), Value::Array(cells)),
            ("object".to_owned(), self.shown(object)),
        ]);
        if !conditions.is_empty() {
            row.insert("conditions".to_owned(), json!(conditions));
        }
        Value::Object(row)
    }

    fn shown(&self, object: Map<String, Value>) -> Value {
        match self.options.include_object {
            IncludeObject::Object => Value::Object(object),
            IncludeObject::None if !ends_initial_events(&object) => Value::Null,
            IncludeObject::None | IncludeObject::Metadata => self.partial(object),
        }
    }

    fn partial(&self, mut object: Map<String, Value>) -> Value {
        let metadata = object.remove("metadata").filter(Value::is_object);
        json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": self.options.version.api_version(),
            "metadata": metadata.unwrap_or_else(|| Value::Object(Map::new())),
        })
    }
}

fn metadata_of(object: &Map<String, Value>) -> Option<&Map<String, Value>> {
    object.get("metadata")?.as_object()
}

fn ends_initial_events(object: &Map<String, Value>) -> bool {
    let annotations = metadata_of(object).and_then(|metadata| metadata.get("annotations"));
    annotations.and_then(|annotations| annotations.get(INITIAL_EVENTS_END)).is_some_and(|mark| mark == "true")
}

#[cfg(test)]
#[path = "table/tests.rs"]
mod tests;
