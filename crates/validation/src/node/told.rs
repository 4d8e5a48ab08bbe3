//! What is told of a place, and how it is called.

use concord_meta::field::Error;
use serde_json::{Map, Value};

use super::{Findings, Node, Root};

/// A text without its middle, if it is longer than that.
pub(super) fn cut(text: &str, max: usize) -> String {
    const GAP: &str = "...";
    if text.len() <= max {
        return text.to_owned();
    }
    let kept = max.saturating_sub(GAP.len());
    let (begin, end) = text.as_bytes().split_at(kept.div_ceil(2));
    let end = end.get(end.len().saturating_sub(kept / 2)..).unwrap_or_default();
    format!("{}{GAP}{}", String::from_utf8_lossy(begin), String::from_utf8_lossy(end))
}

impl Node<'_> {
    /// The time, in seconds since 1970, if it is known.
    pub(crate) fn now(self) -> Option<i64> {
        self.findings.now
    }

    /// Tells what rules find in a value that is not the object's own, such as what an annotation says, as if it stood here.
    pub(crate) fn aside(self, value: Value, rules: impl for<'a> FnOnce(Node<'a>)) {
        let object = Map::from_iter([(String::new(), value)]);
        let findings = Findings::new(self.findings.gates);
        rules(Root::new(&findings, &object).get(""));
        let (here, found) = (self.path(), findings.take().into_iter());
        let moved = found.map(|error| Error { field: format!("{here}{}", error.field), ..error });
        self.findings.errors.borrow_mut().extend(moved);
    }

    /// Where this is, as text.
    pub(crate) fn path(self) -> String {
        self.findings.path(self.at).to_string()
    }

    /// Warns about what stands here.
    pub(crate) fn warn(self, detail: &str) {
        let text = format!("{}: {detail}", self.path());
        self.findings.warnings.borrow_mut().push(text);
    }

    /// Warns without naming the place.
    pub(crate) fn warn_plainly(self, text: String) {
        self.findings.warnings.borrow_mut().push(text);
    }
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn long_texts_lose_their_middle() {
        for (text, max, expected) in
            [("abcdef", 6, "abcdef"), ("abcdefghij", 8, "abc...ij"), ("abcdefghij", 9, "abc...hij")]
        {
            assert_eq!(cut(text, max), expected);
        }
    }
}
