//! The table `go.jsonl`: what Go 1.26 answers. Its first line is the list of inputs; every other line is a pattern
//! with Go's error, or with the leftmost match in each input that has one, as `input:start-end`.

use std::fmt::Write as _;

const TABLE: &str = include_str!("go.jsonl");

/// What this crate answers, in the form of the table.
fn answer(pattern: &str, inputs: &[String]) -> (&'static str, String) {
    let regex = match concord_re2::compile(pattern) {
        Ok(regex) => regex,
        Err(error) => return ("error", error.to_string()),
    };
    let mut matches = String::new();
    for (i, input) in inputs.iter().enumerate() {
        if let Some((start, end)) = regex.find_at(input, 0) {
            let space = if matches.is_empty() { "" } else { " " };
            write!(matches, "{space}{i}:{start}-{end}").expect("writing to a string");
        }
    }
    ("match", matches)
}

#[test]
fn every_pattern_of_the_table_answers_as_go_does() {
    let mut lines = TABLE.lines();
    let inputs: Vec<String> = serde_json::from_str(lines.next().expect("inputs")).expect("a list of inputs");
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in lines {
        let [pattern, kind, expect]: [String; 3] = serde_json::from_str(line).expect("a row");
        let (got_kind, got) = answer(&pattern, &inputs);
        count += 1;
        if got_kind != kind || got != expect {
            wrong.push(format!("{pattern:?}\n  Go:  {kind} {expect}\n  got: {got_kind} {got}"));
        }
    }
    assert!(count > 150, "the table is too short: {count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
