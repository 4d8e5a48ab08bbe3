//! Regular expressions with Go's grammar and meaning.
//!
//! Kubernetes compiles every pattern that a user writes (`pattern` of a schema, `matches` of CEL) with Go's
//! `regexp`. Its syntax is not that of the `regex` crate: `\d` is ASCII, `a{,3}` is literal text, `a**` is an
//! error. So [`compile`] parses the pattern with Go's rules, refuses what Go refuses with Go's words, and
//! rewrites the rest into a pattern that means the same to `regex`.
//!
//! It must never accept what Go rejects, and never spend more time or memory on a pattern than its bounds allow:
//! a pattern comes from a request.
//!
//! Look first at [`compile`] and [`Error`].
//!
//! Known differences, all of them for hostile patterns or rare characters: a pattern longer than
//! [`MAX_PATTERN`] bytes, one whose automaton needs more than [`MAX_AUTOMATON`] bytes, or one that nests deeper
//! than 100 levels is refused here although Go may take it; Unicode tables are those of the `regex` crate; group
//! names are not kept.

mod error;
mod parse;
mod unicode;

pub use error::{Code, Error};

/// The longest pattern that is parsed, in bytes.
pub const MAX_PATTERN: usize = 64 << 10;

/// The most memory that a compiled pattern may take, in bytes.
pub const MAX_AUTOMATON: usize = 32 << 20;

/// Deep enough for every tree that passes the height limit of the parser, with the groups added by the rewriting.
const NEST_LIMIT: u32 = 8 * parse::MAX_HEIGHT as u32;

/// Compiles a pattern written in Go's syntax.
///
/// Groups keep their numbers and lose their names, because Go allows a name twice and `regex` does not.
///
/// ```
/// assert!(concord_re2::compile(r"^\d{3}$")?.is_match("123"));
/// let error = concord_re2::compile("[a").unwrap_err();
/// assert_eq!(error.to_string(), "error parsing regexp: missing closing ]: `[a`");
/// # Ok::<(), concord_re2::Error>(())
/// ```
pub fn compile(pattern: &str) -> Result<regex::Regex, Error> {
    let too_large = || Error::new(Code::Large, pattern);
    if pattern.len() > MAX_PATTERN {
        return Err(too_large());
    }
    let rewritten = parse::rewrite(pattern)?;
    regex::RegexBuilder::new(&rewritten)
        .size_limit(MAX_AUTOMATON)
        .nest_limit(NEST_LIMIT)
        .build()
        // The rewritten pattern is valid, so only a limit can refuse it.
        .map_err(|_| too_large())
}

/// Checks a pattern as [`compile`] does, without keeping the automaton.
pub fn check(pattern: &str) -> Result<(), Error> {
    compile(pattern).map(|_| ())
}
