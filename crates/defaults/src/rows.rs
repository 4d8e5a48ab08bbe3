//! Every default, shown on an object.
//!
//! A line of `rows.txt` is what an object says, and what it has then. Each rule of the tables must have a line that fails
//! without it, so nothing stands in the tables that no line shows.

use std::sync::Arc;

use concord_builtins::schema;
use concord_schema::Schema;
use serde_json::{Value, json};

use crate::{
    Object, TABLE,
    apply::apply,
    parse,
    table::{Action, Table},
};

struct Row {
    line: &'static str,
    api_version: &'static str,
    kind: &'static str,
    given: Vec<(Vec<Step>, Value)>,
    expected: Vec<(Vec<Step>, Option<Value>)>,
}

#[derive(Debug, Clone)]
enum Step {
    Field(String),
    Item(usize),
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut of = ("", "");
    for line in
        include_str!("rows/rows.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if let Some(header) = line.strip_prefix('[') {
            of = header.trim_end_matches(']').split_once(' ').expect("a version and a kind");
            continue;
        }
        let (given, expected) = line.split_once("=>").expect(line);
        let pairs = |text: &'static str| text.split(';').map(str::trim).filter(|text| !text.is_empty());
        let pair = |text: &'static str| {
            let (path, value) = text.split_once('=').expect(line);
            (steps(path.trim()), (value.trim() != "nothing").then(|| json_of(value)))
        };
        let given = pairs(given).map(pair).map(|(path, value)| (path, value.expect("a value")));
        let expected = pairs(expected).map(pair).collect();
        rows.push(Row { line, api_version: of.0, kind: of.1, given: given.collect(), expected });
    }
    rows
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// `spec.ports[0].port`; names with dots in quotes.
fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for (index, part) in path.split('"').enumerate() {
        if index % 2 == 1 {
            steps.push(Step::Field(part.to_owned()));
            continue;
        }
        for name in part.split(['.', '[']).filter(|name| !name.is_empty()) {
            steps.push(match name.strip_suffix(']') {
                Some(number) => Step::Item(number.parse().expect("a number")),
                None => Step::Field(name.to_owned()),
            });
        }
    }
    steps
}

fn put(value: &mut Value, path: &[Step], new: Value) {
    match path.split_first() {
        None => *value = new,
        Some((Step::Field(name), rest)) => {
            if !value.is_object() {
                *value = json!({});
            }
            put(&mut value[name], rest, new);
        }
        Some((Step::Item(index), rest)) => {
            if !value.is_array() {
                *value = json!([]);
            }
            let items = value.as_array_mut().expect("a list");
            items.resize(items.len().max(index + 1), json!({}));
            put(&mut items[*index], rest, new);
        }
    }
}

fn get<'a>(value: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Field(name) => value.get(name),
        Step::Item(index) => value.get(index),
    })
}

impl Row {
    fn schema(&self) -> Arc<Schema> {
        let (group, version) = self.api_version.rsplit_once('/').unwrap_or(("", self.api_version));
        schema(group, version, self.kind).expect("a kind with a schema")
    }

    fn object(&self) -> Object {
        let mut object = json!({"apiVersion": self.api_version, "kind": self.kind, "metadata": {}});
        for (path, value) in &self.given {
            put(&mut object, path, value.clone());
        }
        let Value::Object(mut object) = object else { unreachable!("made as an object") };
        let unknown = self.schema().normalize_strict(&mut object).expect(self.line);
        assert!(unknown.is_empty(), "{}: {unknown:?}", self.line);
        object
    }

    /// What is not as the row says; the given object is normal.
    fn complaint(&self, table: &Table, given: &Object) -> Option<String> {
        let id = table.kind(self.api_version, self.kind)?;
        let mut object = given.clone();
        apply(table, id, &mut object);
        let first = Value::Object(object.clone());
        apply(table, id, &mut object);
        if Value::Object(object) != first {
            return Some("another time changes it again".to_owned());
        }
        let wrong = self.expected.iter().find(|(path, value)| get(&first, path) != value.as_ref());
        wrong.map(|(path, _)| format!("{}\n{path:?} is {:?}", self.line, get(&first, path)))
    }
}

#[test]
fn defaults_are_as_the_rows_say() {
    let complaints: Vec<String> =
        rows().iter().filter_map(|row| row.complaint(&TABLE, &row.object())).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_rule_has_a_row_that_fails_without_it() {
    let rows = rows();
    let given: Vec<Object> = rows.iter().map(Row::object).collect();
    let mut unshown = Vec::new();
    let counts: Vec<usize> = TABLE.types.iter().map(|rules| rules.len()).collect();
    for (id, count) in counts.into_iter().enumerate() {
        for index in 0..count {
            let mut table = parse::table(&crate::TEXTS).expect("well formed");
            let mut rules = std::mem::take(&mut table.types[id]).into_vec();
            let rule = rules.remove(index);
            table.types[id] = rules.into();
            if !rows.iter().zip(&given).any(|(row, given)| row.complaint(&table, given).is_some()) {
                unshown.push(format!("{rule:?}"));
            }
        }
    }
    assert!(unshown.is_empty(), "{} rules without a row:\n{}", unshown.len(), unshown.join("\n"));
}

/// Calls with the value after each of its parts, itself included, has been something else for once.
fn with_each_part_replaced(value: &mut Value, path: &[Step], check: &mut dyn FnMut(&Value)) {
    let part = get(value, path).cloned().unwrap_or_default();
    for odd in [json!(null), json!(7), json!(""), json!([1, {}]), json!({"a": 1})] {
        put(value, path, odd);
        check(value);
    }
    put(value, path, part.clone());
    let below: Vec<Step> = match &part {
        Value::Object(fields) => fields.keys().cloned().map(Step::Field).collect(),
        Value::Array(items) => (0..items.len()).map(Step::Item).collect(),
        _ => Vec::new(),
    };
    for step in below {
        with_each_part_replaced(value, &[path, &[step]].concat(), check);
    }
}

#[test]
fn objects_of_any_shape_are_survived() {
    let mut survived = 0;
    for row in rows() {
        let id = TABLE.kind(row.api_version, row.kind).expect(row.kind);
        let mut object = Value::Object(row.object());
        with_each_part_replaced(&mut object, &[], &mut |mutant| {
            if let Value::Object(mutant) = mutant {
                apply(&TABLE, id, &mut mutant.clone());
                survived += 1;
            }
        });
    }
    assert!(survived > 10_000, "{survived}");
}

#[test]
fn objects_with_defaults_are_in_normal_form() {
    for row in rows() {
        let mut object = row.object();
        apply(&TABLE, TABLE.kind(row.api_version, row.kind).expect(row.kind), &mut object);
        let before = object.clone();
        row.schema().normalize(&mut object).expect(row.line);
        assert_eq!(object, before, "{}", row.line);
    }
}

#[test]
fn types_do_not_lead_back_to_themselves() {
    fn visit(id: usize, above: &mut Vec<usize>) {
        assert!(!above.contains(&id), "type {id} leads to itself: {above:?}");
        above.push(id);
        for rule in &TABLE.types[id] {
            if let Action::Visit(_, next) | Action::Like(next) = &rule.action {
                visit(usize::from(next.0), above);
            }
        }
        above.pop();
    }
    (0..TABLE.types.len()).for_each(|id| visit(id, &mut Vec::new()));
}

#[test]
fn every_kind_of_the_tables_is_one_of_the_catalog() {
    for kind in &TABLE.kinds {
        let (group, version) = kind.api_version.rsplit_once('/').unwrap_or(("", &kind.api_version));
        assert!(schema(group, version, kind.name).is_some(), "{} {}", kind.api_version, kind.name);
    }
}
