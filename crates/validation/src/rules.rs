//! Rules that many fields share.

use concord_meta::{Quantity, field::BadValue, names};

use serde_json::Value;

use crate::node::Node;

pub(crate) const NEGATIVE: &str = "must be greater than or equal to 0";
pub(crate) const NOT_POSITIVE: &str = "must be greater than zero";
pub(crate) const IMMUTABLE: &str = "field is immutable";
/// The greatest `int32`.
pub(crate) const MAX_INT32: i64 = 2_147_483_647;

/// A check of a text: what is wrong with it, one text per problem.
pub(crate) type Check = fn(&str) -> Vec<String>;

pub(crate) fn range(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

pub(crate) fn max_characters(max: usize) -> String {
    format!("must be no more than {max} characters")
}

/// `text (e.g. 'a',  or 'b', regex used for validation is '...')`, commas as upstream puts them.
pub(crate) fn pattern(text: &str, regex: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{text} (regex used for validation is '{regex}')");
    }
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{text} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}

impl<'v> Node<'v> {
    /// The text satisfies a check.
    pub(crate) fn check(self, check: Check) {
        self.check_text(self.text(), check);
    }

    /// A text that belongs to this place satisfies a check.
    pub(crate) fn check_text(self, text: &str, check: Check) {
        for problem in check(text) {
            self.invalid(text, problem);
        }
    }

    /// The text is there and satisfies a check.
    pub(crate) fn required_and(self, check: Check) {
        match self.text() {
            "" => self.required(""),
            _ => self.check(check),
        }
    }

    /// The text satisfies a check, if there is one.
    pub(crate) fn optional_and(self, check: Check) {
        if !self.text().is_empty() {
            self.check(check);
        }
    }

    /// Each of these members has a text, a list with items or a map with entries.
    pub(crate) fn need(self, names: &[&'static str]) {
        for name in names {
            let member = self.get(name);
            if member.text().is_empty() && member.is_empty() {
                member.required("");
            }
        }
    }

    /// The text is one of these. Texts of enumerations have types of their own in Go, hence the rendering.
    pub(crate) fn one_of(self, supported: &[&str]) {
        if !supported.contains(&self.text()) {
            self.unsupported(supported);
        }
    }

    /// The text is given and one of these.
    pub(crate) fn required_one_of(self, supported: &[&str]) {
        match self.text() {
            "" => self.required(""),
            _ => self.one_of(supported),
        }
    }

    /// The text, if there is one, is one of these.
    pub(crate) fn optional_one_of(self, supported: &[&str]) {
        if self.is_set() {
            self.one_of(supported);
        }
    }

    /// The node's own text is none of the supported.
    pub(crate) fn unsupported(self, supported: &[&str]) {
        self.not_supported(BadValue::named(self.text()), supported);
    }

    /// The number is not negative; absent is zero.
    pub(crate) fn nonnegative(self) {
        if let Some(number) = self.int()
            && number < 0
        {
            self.invalid(number, NEGATIVE);
        }
    }

    /// The number is greater than zero; absent is zero.
    pub(crate) fn positive(self) {
        let number = self.int().unwrap_or_default();
        if number <= 0 {
            self.invalid(number, NOT_POSITIVE);
        }
    }

    /// The number, if there is one, is in a range.
    pub(crate) fn within(self, low: i64, high: i64) {
        if let Some(number) = self.int()
            && !(low..=high).contains(&number)
        {
            self.invalid(number, range(low, high));
        }
    }

    /// The number is one a port has; absent is zero, which is none.
    pub(crate) fn port(self) {
        let number = self.int().unwrap_or_default();
        if !(1..=65535).contains(&number) {
            self.invalid(number, range(1, 65535));
        }
    }

    /// A port's number or name; absent is zero.
    pub(crate) fn port_or_name(self) {
        match self.value() {
            Some(Value::String(name)) => self.check_text(name, port_name),
            _ => self.port(),
        }
    }

    /// A user's or a group's number, if there is one.
    pub(crate) fn id(self) {
        self.within(0, MAX_INT32);
    }

    /// Permission bits of a file, if there are any.
    pub(crate) fn file_mode(self) {
        if let Some(mode) = self.int()
            && !(0..=0o777).contains(&mode)
        {
            self.invalid(mode, "must be a number between 0 and 0777 (octal), both inclusive");
        }
    }
}

/// Whether two values mean the same: at any depth an absent list or map is an empty one.
pub(crate) fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
            names.into_iter().all(|name| {
                let (a, b) = (a.get(name), b.get(name));
                same_amounts(name, a, b) || same(a, b)
            })
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(Some(a), Some(b)))
        }
        (Some(a), Some(b)) => a == b,
        (a, b) => [a, b].into_iter().flatten().all(is_empty),
    }
}

/// Members of any kind that are amounts, or maps of them.
const AMOUNTS: [&str; 8] =
    ["capacity", "consumedCapacity", "divisor", "limits", "overhead", "podFixed", "requests", "sizeLimit"];

/// Whether a member of that name says the same amounts in both values, however they are written: `1Ki` is 1024.
pub fn same_amounts(name: &str, a: Option<&Value>, b: Option<&Value>) -> bool {
    let same_text = |a: &str, b: &str| match (a.parse::<Quantity>(), b.parse::<Quantity>()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    };
    let same_value = |a: &Value, b: &Value| match (a, b) {
        (Value::String(a), Value::String(b)) => same_text(a, b),
        _ => a == b,
    };
    AMOUNTS.contains(&name)
        && match (a, b) {
            (Some(Value::Object(a)), Some(Value::Object(b))) => {
                a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same_value(a, b)))
            }
            (Some(a), Some(b)) => same_value(a, b),
            _ => false,
        }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        _ => false,
    }
}

/// A label's key, checked without making texts first: most are right.
pub(crate) fn qualified_name(value: &str) -> Vec<String> {
    let plain = |name: &str| {
        let bytes = name.as_bytes();
        let ends = [bytes.first(), bytes.last()];
        bytes.len() <= names::MAX_LABEL_BYTES
            && ends.into_iter().all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
    };
    let fine = match value.split_once('/') {
        None => plain(value),
        Some((prefix, name)) => {
            plain(name) && !prefix.is_empty() && names::dns1123_subdomain(prefix).is_empty()
        }
    };
    if fine { Vec::new() } else { names::qualified_name(value) }
}

/// The name of a port of a container.
pub(crate) fn port_name(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > 15 {
        problems.push(max_characters(15));
    }
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        problems.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        problems.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        problems.push("must not begin or end with a hyphen".to_owned());
    }
    problems
}

/// The name of an environment variable.
pub(crate) fn env_name(name: &str) -> Vec<String> {
    let allowed = |b: u8| (b' '..=b'~').contains(&b) && b != b'=';
    match (name, name.bytes().all(allowed)) {
        ("", _) => vec!["environment variable name must be non-empty".to_owned()],
        (_, true) => Vec::new(),
        _ => vec![
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
                .to_owned(),
        ],
    }
}

/// The name of an environment variable where RelaxedEnvironmentVariableValidation is off.
pub(crate) fn strict_env_name(name: &str) -> Vec<String> {
    const TEXT: &str = "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or \
        '.', and must not start with a digit";
    let fits = !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    let mut problems = Vec::new();
    if !fits {
        let examples = ["my.env-name", "MY_ENV.NAME", "MyEnvName1"];
        problems.push(pattern(TEXT, "[-._a-zA-Z][-._a-zA-Z0-9]*", &examples));
    }
    match name {
        "." => problems.push("must not be '.'".to_owned()),
        ".." => problems.push("must not be '..'".to_owned()),
        _ if name.starts_with("..") => problems.push("must not start with '..'".to_owned()),
        _ => {}
    }
    problems
}

/// The name of an HTTP header.
pub(crate) fn http_header_name(name: &str) -> Vec<String> {
    if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Vec::new();
    }
    let text = "a valid HTTP header must consist of alphanumeric characters or '-'";
    vec![pattern(text, "[-A-Za-z0-9]+", &["X-Header-Name"])]
}

/// A percentage such as `25%`.
pub(crate) fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return Vec::new();
    }
    let text = "a valid percent string must be a numeric string followed by an ending '%'";
    vec![pattern(text, "[0-9]+%", &["1%", "93%"])]
}

/// A path below something: relative, and never upwards.
pub(crate) fn local_descending_path(node: Node<'_>, path: &str) {
    if path.starts_with('/') {
        node.invalid(path, "must be a relative path");
    }
    no_backsteps(node, path);
}

/// A path without `..`.
pub(crate) fn no_backsteps(node: Node<'_>, path: &str) {
    if path.split('/').any(|part| part == "..") {
        node.invalid(path, "must not contain '..'");
    }
}

/// A path below something whose first part is not the kind of name that is kept for volumes' own use.
pub(crate) fn local_non_reserved_path(node: Node<'_>, path: &str) {
    local_descending_path(node, path);
    if path.starts_with("..") && !path.starts_with("../") {
        node.invalid(path, "must not start with '..'");
    }
}

/// A domain and a path below it, such as `acme.io/foo`.
pub(crate) fn domain_prefixed_path(node: Node<'_>, text: &str) {
    const PATH: &str = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";
    let Some((host, path)) = text.split_once('/').filter(|(host, path)| !host.is_empty() && !path.is_empty())
    else {
        return match text {
            "" => node.required(""),
            text => node.invalid(text, "must be a domain-prefixed path (such as \"acme.io/foo\")"),
        };
    };
    node.check_text(host, names::dns1123_subdomain);
    if !path.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b)) {
        node.invalid(path, pattern("Invalid path", PATH, &[]));
    }
}
