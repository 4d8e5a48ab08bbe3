//! Regular expressions, compiled when they are first needed: most never are, and each takes kilobytes.

use std::sync::OnceLock;

use regex::Regex;

/// A pattern and, once it was used, its compiled form.
pub(crate) struct Pattern {
    text: Box<str>,
    compiled: OnceLock<Result<Regex, String>>,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.into(), compiled: OnceLock::new() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the pattern matches anywhere in a text.
    ///
    /// # Errors
    ///
    /// What is wrong with the pattern.
    pub(crate) fn is_match(&self, text: &str) -> Result<bool, &str> {
        let compiled = self.compiled.get_or_init(|| compile(&self.text));
        compiled.as_ref().map(|regex| regex.is_match(text)).map_err(String::as_str)
    }

    pub(super) fn footprint(&self) -> usize {
        size_of::<Self>() + self.text.len()
    }
}

/// Compiles a regular expression as Go's.
///
/// # Errors
///
/// Go's text about what is wrong with it.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    concord_re2::compile(pattern).map_err(|error| error.to_string())
}
