//! Which feature gates something depends on.

use std::collections::BTreeSet;

use crate::{assert_clean, read, sources::tracked};

/// The texts in quotes that look like names of gates, without those of tests.
fn quoted(source: &str) -> impl Iterator<Item = &str> {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or(source);
    let is_name = |text: &&str| {
        text.starts_with(|c: char| c.is_ascii_uppercase()) && text.chars().all(|c| c.is_ascii_alphanumeric())
    };
    code.split('"').filter(is_name)
}

/// What is said of each gate: its name, and whether it is said to be used.
fn said(table: &str) -> impl Iterator<Item = (&str, bool)> {
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| (line.split(' ').next().unwrap_or(line), line.split(' ').any(|word| word == "here=used")))
}

fn complaints(table: &str, used: &BTreeSet<String>) -> Vec<String> {
    let wrong = said(table).filter(|(name, said)| *said != used.contains(*name));
    wrong.map(|(name, said)| format!("{name}: features.txt says {said}, and the code does not")).collect()
}

#[test]
fn gates_are_said_to_be_used_if_they_are() {
    let mut used = BTreeSet::new();
    let is_code = |path: &str| {
        let of_server = path.starts_with("crates/") || path.starts_with("bin/concord/");
        of_server && path.contains("/src/") && path.ends_with(".rs") && !path.contains("tests")
    };
    for (_, source) in tracked().iter().filter(|(path, _)| is_code(path)) {
        used.extend(quoted(source).map(str::to_owned));
    }
    let rules = read("crates/validation/src/gates.rs");
    let rules = rules.lines().filter_map(|line| line.strip_prefix("    ")?.split_once(" = "));
    used.extend(rules.map(|(name, _)| name.to_owned()));
    let gated = read("crates/builtins/facts/gated.txt");
    let gated = gated.split_whitespace().filter_map(|word| word.split_once('=')).map(|(gates, _)| gates);
    used.extend(gated.flat_map(|gates| gates.split('+')).map(str::to_owned));
    assert_clean(&complaints(&read("crates/builtins/facts/features.txt"), &used));
}

#[test]
fn a_gate_that_is_not_as_it_is_said_is_found() {
    let used = BTreeSet::from(["A".to_owned(), "B".to_owned()]);
    let found = complaints("A 1.33=beta/on here=used\nB 1.33=beta/on\nC 1.33=beta/on here=used\n", &used);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(quoted(r#"f("Abc", "a-b")"#).collect::<Vec<_>>(), ["Abc"]);
}
