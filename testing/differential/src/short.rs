//! An answer in a few lines that a person reads.

use serde_json::Value;

use crate::{expand::Variables, mask, wire::Answer};

/// How much of an answer that is not a Status is written down.
const LONGEST_TEXT: usize = 300;
/// More of one character in a row is not written out.
const MOST_IN_A_ROW: usize = 40;

/// Code and reason; the message; the details; what clients are warned of. Of answers that are no failure only the
/// code and the warnings.
pub fn short(answer: &Answer, variables: &Variables) -> String {
    if answer.code == 0 {
        return "closed".to_owned();
    }
    let mut code = answer.code.to_string();
    let mut lines = Vec::new();
    match status(answer) {
        Some(status) => {
            if let Some(reason) = status["reason"].as_str() {
                code = format!("{code} {reason}");
            }
            lines.push(one_line(status["message"].as_str().unwrap_or_default()));
            let details = &status["details"];
            if details.as_object().is_some_and(|details| !details.is_empty()) {
                lines.push(mask::value(details, variables).to_string());
            }
        }
        None if answer.code >= 300 => {
            let text: String = String::from_utf8_lossy(&answer.body).chars().take(LONGEST_TEXT).collect();
            lines.push(one_line(&text));
        }
        None => {}
    }
    lines.retain(|line| !line.is_empty());
    let masked = |line: &str| mask::text(&collapse(line), variables);
    let told = lines.iter().map(|line| masked(line));
    let warnings = answer.headers.iter().filter(|(name, _)| name == "warning").map(|(_, value)| {
        let (number, text) = value.split_once(' ').unwrap_or(("", value));
        format!("warning: {number} {}", masked(text))
    });
    // Codes are what they are, also when a revision is the same number.
    let all: Vec<String> = std::iter::once(code).chain(told).chain(warnings).collect();
    all.join("\n")
}

/// A character that comes very often in a row is written once, as tables write it.
fn collapse(text: &str) -> String {
    let mut collapsed = String::with_capacity(text.len().min(1024));
    let mut rest = text.chars().peekable();
    while let Some(first) = rest.next() {
        let mut count = 1;
        while rest.next_if_eq(&first).is_some() {
            count += 1;
        }
        match count > MOST_IN_A_ROW {
            true => collapsed.push_str(&format!("<repeat {count} {first}>")),
            false => collapsed.extend(std::iter::repeat_n(first, count)),
        }
    }
    collapsed
}

/// The failure that an answer tells of.
fn status(answer: &Answer) -> Option<Value> {
    let value: Value = serde_json::from_slice(&answer.body).ok()?;
    (value["kind"] == "Status" && value["status"] == "Failure").then_some(value)
}

fn one_line(text: &str) -> String {
    text.trim_end().replace('\n', "\\n").replace('\r', "\\r")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, body: &str) -> String {
        let headers = vec![("warning".to_owned(), "299 - \"w\"".to_owned())];
        let answer = Answer { code, headers, body: body.into(), interim: Vec::new() };
        short(&answer, &Variables::default())
    }

    #[test]
    fn an_answer_is_a_few_lines() {
        let status = r#"{"kind":"Status","status":"Failure","message":"a\nb","reason":"Invalid","details":{"name":"x"}}"#;
        assert_eq!(answer(422, status), "422 Invalid\na\\nb\n{\"name\":\"x\"}\nwarning: 299 - \"w\"");
        assert_eq!(answer(200, "{}"), "200\nwarning: 299 - \"w\"");
        assert_eq!(answer(404, "404 page not found\n"), "404\n404 page not found\nwarning: 299 - \"w\"");
        assert_eq!(answer(0, ""), "closed");
        let mut variables = Variables::default();
        variables.set("rv", "201");
        variables.set("other", "299");
        let headers = vec![("warning".to_owned(), "299 - \"at 201\"".to_owned())];
        let created = Answer { code: 201, headers, body: "{}".into(), interim: Vec::new() };
        assert_eq!(short(&created, &variables), "201\nwarning: 299 - \"at <rv>\"");
        assert_eq!(collapse(&format!("aab{}c", "x".repeat(41))), "aab<repeat 41 x>c");
    }
}
