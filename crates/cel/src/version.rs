//! What each version of Kubernetes added to the language.

/// A Kubernetes version whose environment an expression is written for.
///
/// A server accepts new expressions only with what its predecessor knows too, so that it can be rolled back; stored
/// expressions it evaluates with everything it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u16,
    minor: u16,
}

impl Version {
    /// The version of this server.
    pub const CURRENT: Self = Self::new(1, 36);
    /// Everything there is: for expressions that are already stored.
    pub const ALL: Self = Self::new(u16::MAX, u16::MAX);

    /// A version by its numbers.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }
}

/// The parts of the language that are not functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Features {
    /// `a.?b`, `optional.of` and their macros, and comparisons between number types.
    pub(crate) optional_types: bool,
    /// Literals of durations, timestamps, patterns and lists are checked when compiled.
    pub(crate) literal_checks: bool,
    /// Comprehensions with two variables.
    pub(crate) two_variables: bool,
    /// The macro `sortBy`.
    pub(crate) lists: bool,
    /// The macro `cel.bind`, which only some environments have.
    pub(crate) bindings: bool,
}

impl Features {
    pub(crate) fn of(version: Version) -> Self {
        Self {
            optional_types: version >= Version::new(1, 28),
            literal_checks: version >= Version::new(1, 29),
            two_variables: version >= Version::new(1, 32),
            lists: version >= Version::new(1, 34),
            bindings: false,
        }
    }
}
