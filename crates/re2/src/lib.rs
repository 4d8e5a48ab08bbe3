//! Regular expressions with Go's grammar and meaning.
//!
//! Kubernetes compiles every pattern that a user writes (`pattern` of a schema, `matches` of CEL) with Go's
//! `regexp`. Its syntax is not that of the `regex` crate: `\d` is ASCII, `a{,3}` is literal text, `a**` is an
//! error. So [`compile`] parses the pattern with Go's rules, refuses what Go refuses with Go's words, and
//! rewrites the rest into a pattern that means the same to `regex`. What would take megabytes there gets an engine of
//! our own, which is slower and small.
//!
//! It must never accept what Go rejects, and never spend more time or memory on a pattern than its bounds allow:
//! a pattern comes from a request.
//!
//! Look first at [`check`], [`Pattern`] and [`Error`].
//!
//! Known differences, all of them for hostile patterns or rare characters: a pattern longer than
//! [`MAX_PATTERN`] bytes, one that is more than [`MAX_SIZE`] instructions, one that nests deeper than 100 levels, or one
//! with more than [`MAX_UNICODE_CLASSES`] different classes of Unicode is refused here although Go may take it; Unicode
//! tables are those of the `regex` crate; groups are not told.

mod compiled;
mod error;
mod parse;
mod shared;
mod small;
mod unicode;

pub use compiled::{Regex, check, compile};
pub use error::{Code, Error};
pub use parse::{MAX_SIZE, MAX_UNICODE_CLASSES};
pub use shared::{Pattern, SHARED_BYTES, with};

/// The longest pattern that is parsed, in bytes.
pub const MAX_PATTERN: usize = 64 << 10;
