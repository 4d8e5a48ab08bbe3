//! Semantic versions.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Run, no_overload};
use crate::error::EvalError;
use crate::value::Val;

/// A semantic version. Build metadata is checked and does not count.
#[derive(Debug, Clone)]
pub struct Semver {
    numbers: [u64; 3],
    prerelease: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    // Numbers come before words.
    Number(u64),
    Word(String),
}

type Answer<'a> = Result<Val<'a>, EvalError>;

impl Semver {
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (&self.prerelease[..], &other.prerelease[..]) {
            ([], []) => Ordering::Equal,
            // A release comes after its prereleases.
            ([], _) => Ordering::Greater,
            (_, []) => Ordering::Less,
            (a, b) => a.cmp(b),
        })
    }

    /// Parses a version; the words of an error are those of the library that Kubernetes uses.
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, rest] = parts[..] else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (rest, None),
        };
        let (patch, prerelease) = match rest.split_once('-') {
            Some((patch, prerelease)) => (patch, Some(prerelease)),
            None => (rest, None),
        };
        let numbers = [number(major, "Major")?, number(minor, "Minor")?, number(patch, "Patch")?];
        let prerelease = match prerelease {
            Some(prerelease) => prerelease.split('.').map(part).collect::<Result<_, _>>()?,
            None => Vec::new(),
        };
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            check_word(part, "Build meta data is empty", "Invalid character(s) found in build meta data")?;
        }
        Ok(Self { numbers, prerelease })
    }

    /// Parses a version with the leniency of `normalize`: a `v` before it, missing numbers, leading zeros.
    fn parse_normalized(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
        if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, "0".to_owned());
        Self::parse(&parts.join("."))
    }
}

fn without_zeros(part: &str) -> String {
    if part.len() <= 1 {
        return part.to_owned();
    }
    let rest = part.trim_start_matches('0');
    if rest.starts_with(|c: char| c.is_ascii_digit()) { rest.to_owned() } else { format!("0{rest}") }
}

fn number(text: &str, what: &str) -> Result<u64, String> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {} number \"{text}\"", what.to_lowercase()));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{what} number must not contain leading zeroes \"{text}\""));
    }
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing \"{text}\": invalid syntax"))
}

fn check_word(text: &str, empty: &str, invalid: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err(empty.to_owned());
    }
    if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err(format!("{invalid} \"{text}\""));
    }
    Ok(())
}

fn part(text: &str) -> Result<Part, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!("Numeric PreRelease version must not contain leading zeroes \"{text}\""));
        }
        return text.parse().map(Part::Number).map_err(|_| format!("Invalid PreRelease \"{text}\""));
    }
    check_word(text, "Prerelease is empty", "Invalid character(s) found in prerelease")?;
    Ok(Part::Word(text.to_owned()))
}

pub(super) fn find(name: &str) -> Option<Run> {
    Some(match name {
        "semver" => |args, _| match read(args)? {
            Ok(version) => Ok(Val::Semver(Arc::new(version))),
            Err(error) => Err(EvalError::new(error)),
        },
        "isSemver" => |args, _| Ok(Val::Bool(read(args)?.is_ok())),
        "major" => |args, _| at(args, 0),
        "minor" => |args, _| at(args, 1),
        "patch" => |args, _| at(args, 2),
        _ => return None,
    })
}

fn read(args: &[Val<'_>]) -> Result<Result<Semver, String>, EvalError> {
    match args {
        [Val::String(text)] | [Val::String(text), Val::Bool(false)] => Ok(Semver::parse(text)),
        [Val::String(text), Val::Bool(true)] => Ok(Semver::parse_normalized(text)),
        _ => Err(no_overload()),
    }
}

fn at<'a>(args: &[Val<'a>], index: usize) -> Answer<'a> {
    match args {
        [Val::Semver(version)] => Ok(Val::Int(version.numbers[index] as i64)),
        _ => Err(no_overload()),
    }
}
