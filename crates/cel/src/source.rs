//! The text of an expression, and errors that point into it.

use std::fmt;

/// What is wrong with an expression, in the words of cel-go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// The line, from one.
    pub line: usize,
    /// The column in characters, from one.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

/// Everything that is wrong with an expression. The text is what cel-go prints: each problem with its place and the
/// source line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Issues {
    text: String,
    issues: Vec<Issue>,
}

/// cel-go prints no more than this.
const MAX_ISSUES: usize = 100;

impl Issues {
    pub(crate) fn new(source: &str) -> Self {
        Self { text: source.to_owned(), issues: Vec::new() }
    }

    /// Adds a problem at a byte offset of the source.
    pub(crate) fn report(&mut self, at: u32, message: String) {
        let before = self.text.get(..at as usize).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        let column = before[start..].chars().count() + 1;
        self.issues.push(Issue { line, column, message });
    }

    /// Adds a problem of the whole expression.
    pub(crate) fn report_everywhere(&mut self, message: String) {
        self.issues.push(Issue { line: 0, column: 0, message });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.issues.is_empty()
    }

    /// The problems in the order of the source.
    pub fn issues(&self) -> Vec<&Issue> {
        let mut sorted: Vec<&Issue> = self.issues.iter().collect();
        sorted.sort_by_key(|issue| (issue.line, issue.column));
        sorted
    }

    fn write_issue(&self, f: &mut fmt::Formatter<'_>, issue: &Issue) -> fmt::Result {
        if issue.line == 0 {
            return write!(f, "ERROR: <input>:-1:0: {}", issue.message);
        }
        // Nothing has no first column.
        let column = if self.text.is_empty() { 0 } else { issue.column };
        write!(f, "ERROR: <input>:{}:{column}: {}", issue.line, issue.message)?;
        if self.text.is_empty() {
            return Ok(());
        }
        let Some(line) = self.text.split('\n').nth(issue.line - 1) else { return Ok(()) };
        write!(f, "\n | {}\n | ", line.replace('\t', " "))?;
        let mut chars = line.chars();
        for c in chars.by_ref().take(issue.column - 1) {
            f.write_str(if c.is_ascii() { "." } else { "．" })?;
        }
        f.write_str(if chars.next().is_none_or(|c| c.is_ascii()) { "^" } else { "＾" })
    }
}

impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, issue) in self.issues().into_iter().take(MAX_ISSUES).enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            self.write_issue(f, issue)?;
        }
        let more = self.issues.len().saturating_sub(MAX_ISSUES);
        if more > 0 { write!(f, "\n{more} more errors were truncated") } else { Ok(()) }
    }
}
