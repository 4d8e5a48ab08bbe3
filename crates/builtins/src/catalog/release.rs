//! The releases of Kubernetes that the tables describe.

use std::{fmt, str::FromStr};

/// A minor release of Kubernetes, such as 1.36. The major version has always been 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release(u16);

/// A text that is not the name of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidRelease;

impl Release {
    /// The oldest release that the tables describe in full.
    pub const OLDEST: Self = Self(33);

    /// The newest one: what is served unless another is asked for.
    pub const LATEST: Self = Self(36);

    pub(crate) const COUNT: usize = (Self::LATEST.0 - Self::OLDEST.0) as usize + 1;

    /// Every release that can be served, the oldest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (Self::OLDEST.0..=Self::LATEST.0).map(Self)
    }

    /// `36`, of 1.36.
    pub fn minor(self) -> u16 {
        self.0
    }

    /// Its place among [`Release::all`]; of one that is not described, that of the nearest.
    pub(crate) fn index(self) -> usize {
        usize::from(self.clamp(Self::OLDEST, Self::LATEST).0 - Self::OLDEST.0)
    }

    /// The release before this one.
    #[must_use]
    pub fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// Whether it is one of [`Release::all`].
    pub fn is_described(self) -> bool {
        (Self::OLDEST..=Self::LATEST).contains(&self)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "1.{}", self.0)
    }
}

/// Reads `1.36`. Releases that are not described can be named, too: what was introduced, or will be removed, there.
impl FromStr for Release {
    type Err = InvalidRelease;

    fn from_str(text: &str) -> Result<Self, InvalidRelease> {
        let minor = text.strip_prefix("1.").ok_or(InvalidRelease)?;
        let plain = minor.bytes().all(|digit| digit.is_ascii_digit());
        let minor = minor.parse().ok().filter(|_| plain).ok_or(InvalidRelease)?;
        Ok(Self(minor))
    }
}

impl fmt::Display for InvalidRelease {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("not a release of Kubernetes")
    }
}

impl std::error::Error for InvalidRelease {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_and_written() {
        let release: Release = "1.34".parse().expect("a release");
        assert_eq!((release.minor(), release.to_string().as_str()), (34, "1.34"));
        assert_eq!(release.before().to_string(), "1.33");
        assert!(release.is_described() && release < Release::LATEST);
        for text in ["", "1", "1.", "2.1", "1.x", "1.-1", "1.+1", "1.36.4", "1.99999"] {
            assert_eq!(text.parse::<Release>(), Err(InvalidRelease), "{text}");
        }
        assert!(!"1.32".parse::<Release>().expect("a release").is_described());
    }
}
