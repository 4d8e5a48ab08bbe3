//! Where two answers differ.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{expand::Variables, mask, short::short, table::Case, wire::Answer};

/// Headers that say nothing about the request: when, who, how long, and how the bytes were framed.
const OWN_HEADERS: [&str; 8] = [
    "audit-id",
    "content-length",
    "date",
    "etag",
    "last-modified",
    "transfer-encoding",
    "x-kubernetes-pf-flowschema-uid",
    "x-kubernetes-pf-prioritylevel-uid",
];
/// A longer value is cut when it is shown.
const SHOWN: usize = 600;

/// Every difference in headers and body, one line each, apart from what must differ and what the case says may. Answers
/// with different codes differ in everything, and are told in short.
pub fn differences(case: &Case, left: (&Answer, &Variables), right: (&Answer, &Variables)) -> Vec<String> {
    let mut lines = Vec::new();
    let (a, b) = (left.0, right.0);
    if a.code != b.code {
        let [a, b] = [left, right].map(|(answer, variables)| short(answer, variables).replace('\n', "  "));
        difference(&mut lines, "answer", &a, &b);
        return lines;
    }
    difference(&mut lines, "interim answers", &format!("{:?}", a.interim), &format!("{:?}", b.interim));
    let names = a.headers.iter().chain(&b.headers).map(|(name, _)| name.as_str());
    for name in names.collect::<BTreeSet<_>>() {
        if !OWN_HEADERS.contains(&name) && !case.ignored.iter().any(|ignored| ignored == name) {
            let [a, b] = [left, right].map(|(answer, variables)| values(answer, name, variables));
            difference(&mut lines, name, &a, &b);
        }
    }
    bodies(&mut lines, left, right);
    lines.retain(|line| !case.ignored.iter().any(|ignored| line.starts_with(&format!("{ignored}: "))));
    lines
}

fn difference(lines: &mut Vec<String>, what: &str, a: &str, b: &str) {
    if a != b {
        let cut = |text: &str| text.chars().take(SHOWN).collect::<String>();
        lines.push(format!("{what}: {} | {}", cut(a), cut(b)));
    }
}

/// All values of a header, whose order means nothing.
fn values(answer: &Answer, name: &str, variables: &Variables) -> String {
    let mut values: Vec<String> = answer
        .headers
        .iter()
        .filter(|(found, _)| found == name)
        .map(|(_, value)| mask::text(value, variables))
        .collect();
    values.sort();
    if values.is_empty() { "(none)".to_owned() } else { values.join(" ; ") }
}

fn bodies(lines: &mut Vec<String>, left: (&Answer, &Variables), right: (&Answer, &Variables)) {
    let [a, b] = [left, right].map(|(answer, variables)| parse(&answer.body, variables));
    match (a, b) {
        (Some(a), Some(b)) => documents(lines, "", &a, &b),
        _ => {
            let [a, b] = [left, right]
                .map(|(answer, variables)| mask::text(&String::from_utf8_lossy(&answer.body), variables));
            difference(lines, "body", &format!("{a:?}"), &format!("{b:?}"));
        }
    }
}

/// A JSON document, or several on lines of their own as a watch has them.
fn parse(body: &[u8], variables: &Variables) -> Option<Value> {
    let documents = serde_json::Deserializer::from_slice(body).into_iter::<Value>();
    let documents: Vec<Value> = documents.collect::<Result<_, _>>().ok()?;
    Some(mask::value(&Value::Array(documents), variables))
}

fn documents(lines: &mut Vec<String>, at: &str, a: &Value, b: &Value) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                let at = format!("{at}/{key}");
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => documents(lines, &at, a, b),
                    (a, b) => difference(lines, &at, &shown(a), &shown(b)),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                documents(lines, &format!("{at}/{index}"), a, b);
            }
        }
        (a, b) => difference(lines, at, &a.to_string(), &b.to_string()),
    }
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "(none)".to_owned(), Value::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, header: &str, body: &str) -> Answer {
        let headers = vec![("x".to_owned(), header.to_owned()), ("date".to_owned(), body.to_owned())];
        Answer { code, headers, body: body.into(), interim: Vec::new() }
    }

    fn compare(ignored: &[&str], a: &Answer, b: &Answer) -> Vec<String> {
        let case = Case { ignored: ignored.iter().map(|&name| name.to_owned()).collect(), ..Case::default() };
        let variables = Variables::default();
        differences(&case, (a, &variables), (b, &variables))
    }

    #[test]
    fn every_difference_has_its_place() {
        let a = answer(200, "1", r#"{"a":{"b":[1,2]},"uid":"x"}"#);
        assert_eq!(
            compare(&[], &a, &answer(200, "1", r#"{"uid":"y","a":{"b":[1,2]}}"#)),
            Vec::<String>::new()
        );
        let b = answer(200, "2", r#"{"a":{"b":[1,3]},"c":null}"#);
        let all = ["x: 1 | 2", "/0/a/b/1: 2 | 3", "/0/c: (none) | null", "/0/uid: \"<some uid>\" | (none)"];
        assert_eq!(compare(&[], &a, &b), all);
        assert_eq!(compare(&["x", "/0/a/b/1"], &a, &b), [all[2], all[3]]);
        assert_eq!(compare(&[], &a, &answer(404, "2", "no")), ["answer: 200 | 404  no"]);
        assert_eq!(compare(&[], &answer(200, "1", "a"), &answer(200, "1", "b")), ["body: \"a\" | \"b\""]);
    }
}
