//! The errors of Go's `regexp/syntax`, with its texts.

use std::fmt;

/// Why a pattern is refused; the names and texts are those of Go's `syntax.ErrorCode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// A range like `z-a`, or a class name that does not exist.
    InvalidCharRange,
    /// A backslash before something that cannot be escaped.
    InvalidEscape,
    /// A group name that is empty or has other characters than letters, digits and `_`.
    InvalidNamedCapture,
    /// `(?` with something that Go does not know.
    InvalidPerlOp,
    /// Two repetitions in a row, like `a**`.
    InvalidRepeatOp,
    /// A count above 1000, alone or as the product of nested repetitions.
    InvalidRepeatSize,
    /// `[` without `]`.
    MissingBracket,
    /// `(` without `)`.
    MissingParen,
    /// A repetition of nothing.
    MissingRepeatArgument,
    /// A backslash at the end.
    TrailingBackslash,
    /// `)` without `(`.
    UnexpectedParen,
    /// More levels than the parser allows.
    NestingDepth,
    /// Larger than the limits of this crate or of Go.
    Large,
}

impl Code {
    fn text(self) -> &'static str {
        match self {
            Self::InvalidCharRange => "invalid character class range",
            Self::InvalidEscape => "invalid escape sequence",
            Self::InvalidNamedCapture => "invalid named capture",
            Self::InvalidPerlOp => "invalid or unsupported Perl syntax",
            Self::InvalidRepeatOp => "invalid nested repetition operator",
            Self::InvalidRepeatSize => "invalid repeat count",
            Self::MissingBracket => "missing closing ]",
            Self::MissingParen => "missing closing )",
            Self::MissingRepeatArgument => "missing argument to repetition operator",
            Self::TrailingBackslash => "trailing backslash at end of expression",
            Self::UnexpectedParen => "unexpected )",
            Self::NestingDepth => "expression nests too deeply",
            Self::Large => "expression too large",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// A pattern that Go refuses, or that is too large. Its text is Go's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {code}: `{expr}`")]
pub struct Error {
    /// What is wrong.
    pub code: Code,
    /// The part of the pattern that is wrong.
    pub expr: String,
}

impl Error {
    pub(crate) fn new(code: Code, expr: &str) -> Self {
        Self { code, expr: expr.to_owned() }
    }
}
