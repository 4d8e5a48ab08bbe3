//! What `kubectl get` shows of custom objects.

use concord_printers::{Column, ColumnType, Printer, Row, human_duration};
use concord_registry::{Object, metadata};
use concord_structural::{JsonPath, print_json_path_value};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Prints objects by the columns of their definition.
pub(crate) struct CustomColumns {
    columns: Vec<Column>,
    /// Where the cells are, of all columns but the first.
    cells: Vec<(ColumnType, Option<JsonPath>)>,
}

impl CustomColumns {
    /// With the columns that a definition adds; with the age of the object if it adds none.
    pub(crate) fn new(definitions: &[Value]) -> Self {
        let age = [json!({
            "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
            "description": AGE,
        })];
        let definitions = if definitions.is_empty() { &age } else { definitions };
        let mut columns = vec![concord_printers::printer("", "", "").columns()[0].clone()];
        columns.extend(definitions.iter().map(column));
        let cells = definitions.iter().map(|definition| {
            let path = definition["jsonPath"].as_str().unwrap_or_default();
            (data_type(definition), JsonPath::parse(path).ok())
        });
        Self { columns, cells: cells.collect() }
    }
}

const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not \
guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is \
represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: \
https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

fn text(definition: &Value, name: &str) -> String {
    definition[name].as_str().unwrap_or_default().to_owned()
}

fn data_type(definition: &Value) -> ColumnType {
    match definition["type"].as_str() {
        Some("integer") => ColumnType::Integer,
        Some("number") => ColumnType::Number,
        Some("boolean") => ColumnType::Boolean,
        Some("date") => ColumnType::Date,
        _ => ColumnType::String,
    }
}

fn column(definition: &Value) -> Column {
    let told = text(definition, "description");
    let path = text(definition, "jsonPath");
    let description = match told.is_empty() {
        true => format!("Custom resource definition column (in JSONPath format): {path}"),
        false => told,
    };
    Column {
        name: text(definition, "name").into(),
        data_type: data_type(definition),
        format: text(definition, "format").into(),
        description: description.into(),
        priority: definition["priority"].as_i64().and_then(|number| i32::try_from(number).ok()).unwrap_or(0),
    }
}

impl Printer for CustomColumns {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn row(&self, object: &Object, now: Timestamp) -> Row {
        let cell = |(data_type, path): &(ColumnType, Option<JsonPath>)| {
            let found = path.as_ref().and_then(|path| path.first(object));
            found.map_or(Value::Null, |value| cell(*data_type, value, now))
        };
        let name = Value::from(metadata(object).name());
        Row::new(std::iter::once(name).chain(self.cells.iter().map(cell)).collect())
    }
}

fn cell(data_type: ColumnType, value: &Value, now: Timestamp) -> Value {
    match (data_type, value) {
        (ColumnType::String, value) => print_json_path_value(value).into(),
        (ColumnType::Integer, Value::Number(number)) => whole(number),
        (ColumnType::Number, Value::Number(number)) => number.as_f64().map_or(Value::Null, Value::from),
        (ColumnType::Boolean, Value::Bool(_)) => value.clone(),
        (ColumnType::Date, Value::String(text)) => age(text, now).into(),
        _ => Value::Null,
    }
}

/// As Go converts: what is behind the point is cut off.
fn whole(number: &serde_json::Number) -> Value {
    #[allow(clippy::cast_possible_truncation, reason = "what does not fit is as near as can be")]
    let cut = || number.as_f64().map(|number| number as i64);
    number.as_i64().or_else(cut).map_or(Value::Null, Value::from)
}

fn age(text: &str, now: Timestamp) -> String {
    match text.parse::<Timestamp>() {
        Ok(time) => human_duration(now.duration_since(time)),
        Err(_) if text.is_empty() || text == "null" => "<unknown>".to_owned(),
        Err(_) => "<invalid>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(object: &Value) -> Object {
        object.as_object().expect("an object").clone()
    }

    #[test]
    fn cells_have_the_types_of_their_columns() {
        let columns = CustomColumns::new(&[
            json!({"name": "Size", "type": "integer", "jsonPath": ".spec.size"}),
            json!({"name": "Ratio", "type": "number", "jsonPath": ".spec.size"}),
            json!({"name": "On", "type": "boolean", "jsonPath": ".spec.on", "priority": 1}),
            json!({"name": "Map", "type": "string", "jsonPath": ".spec.map"}),
            json!({"name": "Missing", "type": "string", "jsonPath": ".spec.missing", "description": "d"}),
            json!({"name": "Since", "type": "date", "jsonPath": ".spec.since"}),
            json!({"name": "Null", "type": "string", "jsonPath": ".spec.null"}),
            json!({"name": "NoDate", "type": "date", "jsonPath": ".spec.null"}),
        ]);
        assert_eq!(
            columns.columns()[1].description,
            "Custom resource definition column (in JSONPath format): .spec.size"
        );
        assert_eq!((columns.columns()[3].priority, &*columns.columns()[5].description), (1, "d"));
        let spec =
            json!({"size": 3.7, "on": true, "map": {"a": 1}, "since": "2026-01-01T00:00:00Z", "null": null});
        let row = columns.row(
            &object(&json!({"metadata": {"name": "a"}, "spec": spec})),
            "2026-01-01T00:01:30Z".parse().expect("a time"),
        );
        assert_eq!(
            Value::from(row.cells),
            json!(["a", 3, 3.7, true, "{\"a\":1}", null, "90s", "<no value>", null])
        );
    }

    #[test]
    fn without_columns_there_is_the_age() {
        let columns = CustomColumns::new(&[]);
        let names: Vec<&str> = columns.columns().iter().map(|column| &*column.name).collect();
        assert_eq!(names, ["Name", "Age"]);
        let metadata = json!({"name": "a", "creationTimestamp": "nonsense"});
        let row = columns.row(&object(&json!({"metadata": metadata})), Timestamp::UNIX_EPOCH);
        assert_eq!(row.cells[1], "<invalid>");
    }
}
