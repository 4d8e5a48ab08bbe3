//! What the labels of a namespace ask for.

use std::fmt;

use concord_meta::field;
use concord_registry::Object;
use serde_json::Value;

pub(super) const PREFIX: &str = "pod-security.kubernetes.io/";

/// How much pods are restricted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

impl Level {
    pub(super) const EXPECTED: &'static str = "must be one of privileged, baseline, restricted";

    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "privileged" => Some(Self::Privileged),
            "baseline" => Some(Self::Baseline),
            "restricted" => Some(Self::Restricted),
            _ => None,
        }
    }
}

/// As of which release a level is understood. The newest is greater than every number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    Minor(u32),
    Latest,
}

impl Version {
    pub(super) const EXPECTED: &'static str = r#"must be "latest" or "v1.x""#;

    pub(super) fn parse(text: &str) -> Option<Self> {
        if text == "latest" {
            return Some(Self::Latest);
        }
        let minor = text.strip_prefix("v1.").filter(|digits| is_number(digits))?;
        minor.parse().ok().map(Self::Minor)
    }
}

/// A level as of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LevelVersion {
    pub(super) level: Level,
    pub(super) version: Version,
}

/// What a namespace refuses, what it notes, and what it warns of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) enforce: LevelVersion,
    pub(super) audit: LevelVersion,
    pub(super) warn: LevelVersion,
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.version {
            Version::Latest => write!(f, "{level}:latest"),
            Version::Minor(minor) => write!(f, "{level}:v1.{minor}"),
        }
    }
}

impl Policy {
    /// Everything is allowed.
    pub(super) const NONE: Self = {
        let privileged = LevelVersion { level: Level::Privileged, version: Version::Latest };
        Self { enforce: privileged, audit: privileged, warn: privileged }
    };

    /// The policy of a namespace with these labels, and what is wrong with them. What they do not say stays as it is; what
    /// cannot be understood counts as the strictest when it is enforced, and as nothing when it is only told.
    pub(super) fn with(self, labels: Option<&Object>) -> (Self, Vec<field::Error>) {
        let mut reader = Reader { labels, errors: Vec::new() };
        let mut policy = self;
        let enforce = reader.level("enforce");
        if let Some(level) = enforce {
            policy.enforce.level = level.unwrap_or(Level::Restricted);
        }
        reader.version("enforce-version", &mut policy.enforce);
        if let Some(level) = reader.level("audit") {
            policy.audit.level = level.unwrap_or(Level::Privileged);
        }
        reader.version("audit-version", &mut policy.audit);
        let warn = reader.level("warn");
        if let Some(level) = warn {
            policy.warn.level = level.unwrap_or(Level::Privileged);
        }
        let versioned = reader.version("warn-version", &mut policy.warn);
        // What is refused is warned of, too, where it is not refused: in the templates of workloads.
        if warn.is_none() && enforce.flatten().is_some_and(|level| level > policy.warn.level) {
            policy.warn.level = policy.enforce.level;
            if !versioned {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, reader.errors)
    }

    fn modes(&self) -> [LevelVersion; 3] {
        [self.enforce, self.audit, self.warn]
    }

    pub(super) fn is_privileged(&self) -> bool {
        self.modes().iter().all(|mode| mode.level == Level::Privileged)
    }

    /// Whether both come to the same.
    pub(super) fn is_equivalent(&self, other: &Self) -> bool {
        let privileged = |mode: LevelVersion| mode.level == Level::Privileged;
        let mut both = self.modes().into_iter().zip(other.modes());
        both.all(|(one, other)| one == other || (privileged(one) && privileged(other)))
    }
}

/// Reads labels, and remembers what was wrong.
struct Reader<'a> {
    labels: Option<&'a Object>,
    errors: Vec<field::Error>,
}

impl<'a> Reader<'a> {
    fn label(&self, name: &str) -> Option<(String, &'a str)> {
        let label = format!("{PREFIX}{name}");
        let value = self.labels?.get(&label).and_then(Value::as_str)?;
        Some((label, value))
    }

    fn refuse(&mut self, label: &str, value: &str, why: &'static str) {
        let path = field::Path::new("metadata").child("labels").key(label);
        self.errors.push(field::Error::invalid(&path, value, why));
    }

    /// Nothing if the label is not there, and nothing in it if it cannot be understood.
    fn level(&mut self, name: &str) -> Option<Option<Level>> {
        let (label, value) = self.label(name)?;
        let level = Level::parse(value);
        if level.is_none() {
            self.refuse(&label, value, Level::EXPECTED);
        }
        Some(level)
    }

    /// Whether there is such a label.
    fn version(&mut self, name: &str, mode: &mut LevelVersion) -> bool {
        let Some((label, value)) = self.label(name) else { return false };
        let version = Version::parse(value);
        if version.is_none() {
            self.refuse(&label, value, Version::EXPECTED);
        }
        mode.version = version.unwrap_or(Version::Latest);
        true
    }
}

fn is_number(digits: &str) -> bool {
    digits == "0" || (!digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit()))
}
