//! What kube-apiserver 1.36 answers: compiled or not and with which words, the type, the estimated cost, the value or
//! the error, the measured cost.
//!
//! Each table is a list of JSON lines. A line without `expr` sets the schema and the value of `self` for the lines
//! after it; without a schema, `self` is dynamic.

use std::sync::Arc;

use concord_cel::{Activation, Budget, CompileError, Decl, Env, Program, Val, Version};
use serde_json::Value;

/// A value in the form of the tables.
fn show(value: &Val<'_>) -> String {
    match value {
        Val::Null => "null".to_owned(),
        Val::Bool(value) => format!("bool {value}"),
        Val::Int(value) => format!("int {value}"),
        Val::Uint(value) => format!("uint {value}"),
        Val::Double(value) if value.is_infinite() => {
            format!("double {}Inf", if *value > 0.0 { '+' } else { '-' })
        }
        Val::Double(value) => format!("double {value}"),
        Val::String(text) => format!("string {}", serde_json::to_string(&**text).expect("text")),
        Val::Bytes(bytes) => {
            format!("bytes {}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
        Val::Timestamp(at) => format!("timestamp {at}"),
        Val::Duration(nanoseconds) => format!("duration {}s", *nanoseconds as f64 / 1e9),
        Val::Optional(None) => "optional.none".to_owned(),
        Val::Optional(Some(inner)) => format!("optional({})", show(inner)),
        Val::Type(named) => format!("type {}", type_name(&named.to_string())),
        Val::List(list) => format!("[{}]", list.to_vec().iter().map(show).collect::<Vec<_>>().join(", ")),
        other => other.type_name(),
    }
}

/// Upstream shows types by the name without what is inside.
fn type_name(text: &str) -> &str {
    match text.split('(').next().unwrap_or(text) {
        "null" => "null_type",
        "timestamp" => "google.protobuf.Timestamp",
        "duration" => "google.protobuf.Duration",
        name => name,
    }
}

fn text<'r>(row: &'r Value, key: &str) -> &'r str {
    row.get(key).and_then(Value::as_str).unwrap_or("")
}

/// What this crate answers, as the fields of a row.
fn answer(row: &Value, schema: Option<&Value>, data: Option<&Value>) -> Vec<(&'static str, String)> {
    let version = text(row, "version").split_once('.').map_or(Version::CURRENT, |(major, minor)| {
        Version::new(major.parse().expect("a number"), minor.parse().expect("a number"))
    });
    let decl = match schema {
        Some(schema) => Decl::from_schema(schema, "selfType", false).expect("a schema that can be seen"),
        None => Decl::dynamic(),
    };
    let decl = Arc::new(decl);
    let env = Env::new(version).variable("self", Arc::clone(&decl)).variable("oldSelf", decl);
    match env.compile(text(row, "expr")) {
        Err(CompileError::Issues(issues)) => vec![("issues", issues.to_string())],
        Err(CompileError::Instantiation(error)) => vec![("program", error)],
        Ok(program) => evaluate(&program, data),
    }
}

fn evaluate(program: &Program, data: Option<&Value>) -> Vec<(&'static str, String)> {
    let estimate = program.cost_estimate();
    let mut answer = vec![
        ("type", program.output_type().to_string()),
        ("min", estimate.min.to_string()),
        ("max", estimate.max.to_string()),
    ];
    let activation = data.map_or_else(Activation::new, |data| Activation::new().json("self", data));
    let mut budget = Budget::new(u64::MAX);
    answer.push(match program.eval(&activation, &mut budget) {
        Ok(value) => ("result", show(&value)),
        Err(error) => ("error", error.to_string()),
    });
    answer.push(("cost", (u64::MAX - budget.remaining()).to_string()));
    answer
}

fn check(table: &str) {
    let (mut schema, mut data) = (None, None);
    let mut wrong = Vec::new();
    for line in table.lines() {
        let row: Value = serde_json::from_str(line).expect("a row");
        if row.get("expr").is_none() {
            schema = row.get("schema").cloned();
            data = row.get("self").cloned();
            continue;
        }
        for (field, got) in answer(&row, schema.as_ref(), data.as_ref()) {
            let expect =
                row.get(field).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            if expect.as_deref() != Some(&got) {
                wrong.push(format!(
                    "{} {field}\n  upstream: {expect:?}\n  here:     {got:?}",
                    text(&row, "expr")
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn syntax() {
    check(include_str!("upstream/syntax.jsonl"));
}

#[test]
fn types() {
    check(include_str!("upstream/types.jsonl"));
}

#[test]
fn evaluation() {
    check(include_str!("upstream/evaluation.jsonl"));
}

#[test]
fn dynamic() {
    check(include_str!("upstream/dynamic.jsonl"));
}

#[test]
fn strings() {
    check(include_str!("upstream/strings.jsonl"));
}

#[test]
fn conversions() {
    check(include_str!("upstream/conversions.jsonl"));
}

#[test]
fn lists() {
    check(include_str!("upstream/lists.jsonl"));
}

#[test]
fn kubernetes() {
    check(include_str!("upstream/kubernetes.jsonl"));
}

#[test]
fn versions() {
    check(include_str!("upstream/versions.jsonl"));
}

#[test]
fn schemas() {
    check(include_str!("upstream/schemas.jsonl"));
}
