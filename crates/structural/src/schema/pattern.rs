//! Regular expressions, compiled when they are needed: most never are, and each takes kilobytes.

/// A pattern. Its compiled form is shared, and forgotten if it is not used.
pub(crate) struct Pattern(concord_re2::Pattern);

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        Self(concord_re2::Pattern::new(text))
    }

    pub(crate) fn text(&self) -> &str {
        self.0.text()
    }

    /// Whether the pattern matches anywhere in a text.
    ///
    /// # Errors
    ///
    /// What is wrong with the pattern.
    pub(crate) fn is_match(&self, text: &str) -> Result<bool, String> {
        self.0.with(|regex| regex.is_match(text)).map_err(|error| error.to_string())
    }

    pub(super) fn footprint(&self) -> usize {
        size_of::<Self>() + self.text().len()
    }
}
