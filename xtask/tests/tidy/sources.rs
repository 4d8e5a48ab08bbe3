//! Files that a person can read, and that say nothing about the machine they were written on.

use std::process::Command;

use crate::{assert_clean, packages, read, root};

/// A file above this needs a reason that a reader accepts; generated ones are not read.
const MAX_LINES: usize = 1000;

fn too_long(path: &str, text: &str) -> Option<String> {
    let lines = text.lines().count();
    let readable = path.ends_with(".rs") && !path.contains("/generated/");
    (readable && lines >= MAX_LINES).then(|| format!("{path} has {lines} lines: split it"))
}

fn undocumented(path: &str, text: &str) -> Option<String> {
    (!text.starts_with("//! ")).then(|| format!("{path} does not begin with what the crate does"))
}

/// The places are put together here so that this file does not name them itself.
fn names_a_machine(path: &str, text: &str) -> Option<String> {
    let places = ["work", "root", "home"].map(|place| format!("/{place}/"));
    let starts =
        |text: &str, at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || "._-~}/$".contains(c));
    let found = places.iter().find(|place| text.match_indices(*place).any(|(at, _)| starts(text, at)));
    found.map(|place| format!("{path} names a path of somebody's machine ({place})"))
}

/// Tests that a table names and nobody has.
fn missing_tests(path: &str, table: &str, sources: &str) -> Vec<String> {
    let is_test = |word: &&str| {
        word.matches('_').count() > 1
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let named = table.split('`').filter(is_test);
    let missing = named.filter(|name| !sources.contains(&format!("fn {name}(")));
    missing.map(|name| format!("{path} names {name}, which is no test")).collect()
}

/// Cases that a table names, as `# name`, and that no table of requests and answers has.
fn missing_cases(path: &str, table: &str, data: &str) -> Vec<String> {
    let quoted = table.split('`').skip(1).step_by(2);
    let named = quoted.filter_map(|word| word.strip_prefix("# "));
    let is_there = |case: &str| {
        data.contains(&format!("### {case}\n")) || data.contains(&format!("{{\"case\": \"{case}\","))
    };
    let missing = named.filter(|case| !is_there(case));
    missing.map(|case| format!("{path} names the case {case}, which there is not")).collect()
}

#[test]
fn the_tests_that_tables_name_exist() {
    let files = tracked();
    let texts = |endings: &[&str]| -> String {
        let wanted = files.iter().filter(|(path, _)| endings.iter().any(|ending| path.ends_with(ending)));
        wanted.map(|(_, text)| text.as_str()).collect()
    };
    let (sources, data) = (texts(&[".rs"]), texts(&[".txt", ".jsonl"]));
    for path in [
        "docs/access-tests.md",
        "docs/builtin-tests.md",
        "docs/custom-resource-tests.md",
        "docs/fleet-tests.md",
        "docs/migration-tests.md",
        "docs/server-tests.md",
    ] {
        let table = read(path);
        assert_clean(&missing_tests(path, &table, &sources));
        assert_clean(&missing_cases(path, &table, &data));
    }
}

#[test]
fn a_test_that_nobody_has_is_found() {
    let table = "| 1 | `a_test_that_is_there`, `a_test_that_is_not` | `Some.words` and `kube-system` |";
    let found = missing_tests("t.md", table, "fn a_test_that_is_there() {}");
    assert_eq!(found, ["t.md names a_test_that_is_not, which is no test"]);
}

#[test]
fn a_case_that_no_table_has_is_found() {
    let data = "### a: case\nGET /\n{\"case\": \"b\", \"change\": {}}\n";
    let found = missing_cases("t.md", "# Title\n| `# a: case`, `# b`, `# a` | `a_test` |", data);
    assert_eq!(found, ["t.md names the case a, which there is not"]);
}

/// Every text file under version control.
pub(crate) fn tracked() -> Vec<(String, String)> {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output().expect("git runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).expect("paths are text");
    let names = names.split_terminator('\0').map(|name| (name, std::fs::read(root().join(name))));
    // A file may be deleted and the deletion not committed yet.
    let texts =
        names.filter_map(|(name, bytes)| Some((name.to_owned(), String::from_utf8(bytes.ok()?).ok()?)));
    texts.collect()
}

#[test]
fn the_sources_are_in_order() {
    let files = tracked();
    assert!(files.len() > 20, "git should list the repository");
    let complain = |(path, text): &(String, String)| [too_long(path, text), names_a_machine(path, text)];
    assert_clean(&files.iter().flat_map(complain).flatten().collect::<Vec<_>>());
}

#[test]
fn every_crate_says_what_it_does() {
    let mut complaints = Vec::new();
    for package in packages() {
        for target in package["targets"].as_array().expect("a list") {
            let kind = target["kind"][0].as_str().expect("a kind");
            if ["lib", "cdylib", "bin"].contains(&kind) {
                let path = target["src_path"].as_str().expect("a path");
                complaints.extend(undocumented(path, &read(path)));
            }
        }
    }
    assert_clean(&complaints);
}

#[test]
fn a_file_that_is_too_long_is_found() {
    let long = "\n".repeat(MAX_LINES);
    assert!(too_long("src/lib.rs", &long).is_some());
    assert!(too_long("src/generated/rpc.rs", &long).is_none());
    assert!(too_long("Cargo.lock", &long).is_none());
    assert!(too_long("src/lib.rs", &long[1..]).is_none());
}

#[test]
fn a_crate_without_a_description_is_found() {
    assert!(undocumented("lib.rs", "mod a;\n").is_some());
    assert!(undocumented("lib.rs", "//! Does things.\n").is_none());
}

#[test]
fn a_path_of_a_machine_is_found() {
    for place in ["work", "root", "home"] {
        assert!(names_a_machine("a", &format!("see /{place}/me/x")).is_some());
    }
    for fine in ["https://example.org/work/", "target/home/", "~/work/", "/usr/share", "frame/work"] {
        assert!(names_a_machine("a", fine).is_none(), "{fine}");
    }
}
