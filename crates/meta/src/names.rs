//! What names, label keys and label values may be.
//!
//! Every check returns what is wrong, one text per problem and none for a good value. Lengths are
//! counted in bytes everywhere; the texts say `characters` or `bytes` as upstream's do.

use std::fmt::Write;

const DNS1123_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS1123_SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS1035_LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED_NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const CONFIG_KEY: &str = "[-._a-zA-Z0-9]+";

const LABEL_TEXT: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
    and must start and end with an alphanumeric character";
const SUBDOMAIN_TEXT: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
    '-' or '.', and must start and end with an alphanumeric character";
const DNS1035_TEXT: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
    with an alphabetic character, and end with an alphanumeric character";
const QUALIFIED_TEXT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const LABEL_VALUE_TEXT: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', \
    '_' or '.', and must start and end with an alphanumeric character";
const CONFIG_KEY_TEXT: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";

/// The longest DNS label, qualified name or label value.
pub const MAX_LABEL_BYTES: usize = 63;
/// The longest DNS subdomain.
pub const MAX_SUBDOMAIN_BYTES: usize = 253;
/// The random characters behind a `generateName`.
pub const GENERATED_SUFFIX_BYTES: usize = 5;

/// The rule the names of a resource follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// Dot-separated labels of 253 bytes together: most resources.
    Dns1123Subdomain,
    /// The same with its length told in bytes, and only of the name: what is made of a `generateName` is checked, not the
    /// `generateName`. Kinds whose names have newer rules.
    LongName,
    /// One label of 63 bytes: namespaces, services.
    Dns1123Label,
    /// One label that starts with a letter.
    Dns1035Label,
    /// Whatever can stand between two slashes of a path: RBAC.
    PathSegment,
}

impl NameRule {
    /// What is wrong with a name.
    #[must_use]
    pub fn check(self, name: &str) -> Vec<String> {
        match self {
            Self::Dns1123Subdomain => dns1123_subdomain(name),
            Self::LongName => long_name(name),
            Self::Dns1123Label => dns1123_label(name),
            Self::Dns1035Label => dns1035_label(name),
            Self::PathSegment => path_segment(name),
        }
    }

    /// What is wrong with a `generateName`, to which a suffix will be added: it may end in `-`.
    #[must_use]
    pub fn check_prefix(self, prefix: &str) -> Vec<String> {
        match self {
            Self::PathSegment => path_segment_prefix(prefix),
            Self::LongName => Vec::new(),
            rule => rule.check(&mask_trailing_dash(prefix)),
        }
    }
}

/// Upstream drops the byte before the dash along with it; so does this, because it decides which
/// prefixes pass (`a.-` does).
fn mask_trailing_dash(prefix: &str) -> String {
    let kept = prefix.strip_suffix('-').filter(|rest| !rest.is_empty());
    match kept.and_then(|rest| rest.get(..rest.len() - 1)) {
        Some(kept) => format!("{kept}a"),
        None => prefix.to_owned(),
    }
}

/// The name made of a `generateName` and the random `suffix`: the base is cut so that the whole has
/// 63 bytes at most.
#[must_use]
pub fn generate(base: &str, suffix: &str) -> String {
    let room = MAX_LABEL_BYTES - GENERATED_SUFFIX_BYTES;
    let cut = base.len().min(room);
    let cut = (0..=cut).rev().find(|at| base.is_char_boundary(*at)).unwrap_or(0);
    format!("{}{suffix}", &base[..cut])
}

/// A label as RFC 1123 defines it.
#[must_use]
pub fn dns1123_label(value: &str) -> Vec<String> {
    let mut problems = max_characters(value, MAX_LABEL_BYTES);
    if !is_dns_label(value) {
        problems.push(if is_dns_subdomain(value) {
            "must not contain dots".to_owned()
        } else {
            pattern(LABEL_TEXT, DNS1123_LABEL, &["my-name", "123-abc"])
        });
    }
    problems
}

/// A subdomain as RFC 1123 defines it.
#[must_use]
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    let mut problems = max_characters(value, MAX_SUBDOMAIN_BYTES);
    if !is_dns_subdomain(value) {
        problems.push(pattern(SUBDOMAIN_TEXT, DNS1123_SUBDOMAIN, &["example.com"]));
    }
    problems
}

/// A subdomain whose length is told in bytes.
fn long_name(value: &str) -> Vec<String> {
    let mut problems = dns1123_subdomain(value);
    if value.len() > MAX_SUBDOMAIN_BYTES {
        problems[0] = format!("must be no more than {MAX_SUBDOMAIN_BYTES} bytes");
    }
    problems
}

/// A label as RFC 1035 defines it.
#[must_use]
pub fn dns1035_label(value: &str) -> Vec<String> {
    let mut problems = max_characters(value, MAX_LABEL_BYTES);
    if !(is_dns_label(value) && value.starts_with(|c: char| c.is_ascii_lowercase())) {
        problems.push(pattern(DNS1035_TEXT, DNS1035_LABEL, &["my-name", "abc-123"]));
    }
    problems
}

/// A label key, finalizer or condition type: a name of 63 bytes with an optional subdomain in front.
#[must_use]
pub fn qualified_name(value: &str) -> Vec<String> {
    let whole = pattern(QUALIFIED_TEXT, QUALIFIED_NAME, &["MyName", "my.name", "123-abc"]);
    let mut problems = Vec::new();
    let name = match value.split_once('/') {
        None => value,
        Some((_, name)) if name.contains('/') => {
            let prefixed = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {whole} {prefixed}")];
        }
        Some((prefix, name)) => {
            problems = qualified_name_prefix(prefix);
            name
        }
    };
    match name.len() {
        0 => problems.push("name part must be non-empty".to_owned()),
        1..=MAX_LABEL_BYTES => {}
        _ => problems.push(format!("name part must be no more than {MAX_LABEL_BYTES} bytes")),
    }
    if !is_label_text(name) {
        problems.push(format!("name part {whole}"));
    }
    problems
}

fn qualified_name_prefix(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["prefix part must be non-empty".to_owned()];
    }
    let mut problems = Vec::new();
    if prefix.len() > MAX_SUBDOMAIN_BYTES {
        problems.push(format!("prefix part must be no more than {MAX_SUBDOMAIN_BYTES} bytes"));
    }
    if !is_dns_subdomain(prefix) {
        let text = pattern(SUBDOMAIN_TEXT, DNS1123_SUBDOMAIN, &["example.com"]);
        problems.push(format!("prefix part {text}"));
    }
    problems
}

/// The value of a label.
#[must_use]
pub fn label_value(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > MAX_LABEL_BYTES {
        problems.push(format!("must be no more than {MAX_LABEL_BYTES} bytes"));
    }
    if !(value.is_empty() || is_label_text(value)) {
        problems.push(pattern(LABEL_VALUE_TEXT, LABEL_VALUE, &["MyValue", "my_value", "12345"]));
    }
    problems
}

/// A key of a ConfigMap or Secret.
#[must_use]
pub fn config_map_key(value: &str) -> Vec<String> {
    let mut problems = max_characters(value, MAX_SUBDOMAIN_BYTES);
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    if value.is_empty() || !value.bytes().all(allowed) {
        problems.push(pattern(CONFIG_KEY_TEXT, CONFIG_KEY, &["key.name", "KEY_NAME", "key-name"]));
    }
    match value {
        "." | ".." => problems.push(format!("must not be '{value}'")),
        _ if value.starts_with("..") => problems.push("must not start with '..'".to_owned()),
        _ => {}
    }
    problems
}

/// A name that can stand between two slashes of a path.
#[must_use]
pub fn path_segment(name: &str) -> Vec<String> {
    match name {
        "." | ".." => vec![format!("may not be '{name}'")],
        name => path_segment_prefix(name),
    }
}

fn path_segment_prefix(prefix: &str) -> Vec<String> {
    let found = ['/', '%'].into_iter().filter(|c| prefix.contains(*c));
    found.map(|c| format!("may not contain '{c}'")).collect()
}

fn max_characters(value: &str, max: usize) -> Vec<String> {
    let problem = || format!("must be no more than {max} characters");
    (value.len() > max).then(problem).into_iter().collect()
}

/// `text (e.g. 'a',  or 'b', regex used for validation is '...')`, commas as upstream puts them.
fn pattern(text: &str, regex: &str, examples: &[&str]) -> String {
    let mut out = format!("{text} (e.g. ");
    for (at, example) in examples.iter().enumerate() {
        let or = if at > 0 { " or " } else { "" };
        write!(out, "{or}'{example}', ").expect("writing to a String does not fail");
    }
    format!("{out}regex used for validation is '{regex}')")
}

fn is_dns_label(value: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !value.is_empty() && value.bytes().all(allowed) && !value.starts_with('-') && !value.ends_with('-')
}

fn is_dns_subdomain(value: &str) -> bool {
    value.split('.').all(is_dns_label)
}

fn is_label_text(value: &str) -> bool {
    let bytes = value.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.into_iter().all(|b| b.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
