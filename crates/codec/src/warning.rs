use std::{collections::BTreeSet, str::FromStr};

/// Total length of warnings, in characters, above which each is cut.
const TRUNCATE_AT_TOTAL: usize = 4096;
/// What each warning is then cut to, in characters.
const TRUNCATE_ITEM: usize = 256;

/// What is done about unknown and duplicate fields: the `fieldValidation` query parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped silently.
    Ignore,
    /// They are dropped and each is reported in a `Warning` header.
    #[default]
    Warn,
    /// The request is refused.
    Strict,
}

/// A `fieldValidation` that is none of the three.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unsupported fieldValidation {0:?}")]
pub struct UnknownFieldValidation(pub String);

impl FromStr for FieldValidation {
    type Err = UnknownFieldValidation;

    fn from_str(directive: &str) -> Result<Self, Self::Err> {
        match directive {
            "" | "Warn" => Ok(Self::Warn),
            "Ignore" => Ok(Self::Ignore),
            "Strict" => Ok(Self::Strict),
            other => Err(UnknownFieldValidation(other.to_owned())),
        }
    }
}

/// The warnings of one response, bounded as upstream bounds them.
///
/// Each text is given once. When all together exceed 4096 characters, every one is cut to 256, and
/// when the cut ones exceed 4096 as well, further ones are dropped.
#[derive(Debug, Default)]
pub struct Warnings {
    seen: BTreeSet<String>,
    ordered: Vec<String>,
    headers: Vec<String>,
    written: usize,
    truncating: bool,
}

impl Warnings {
    /// Adds a warning. A text that cannot stand in a header is dropped.
    pub fn add(&mut self, text: &str) {
        let full = self.truncating && self.written >= TRUNCATE_AT_TOTAL;
        if text.is_empty() || full || !self.seen.insert(text.to_owned()) {
            return;
        }
        if self.truncating {
            self.write(text);
            return;
        }
        self.ordered.push(text.to_owned());
        if self.written + text.chars().count() <= TRUNCATE_AT_TOTAL {
            self.write(text);
            return;
        }
        // A text that is no header does not start the truncation.
        if header(text).is_none() {
            return;
        }
        self.truncating = true;
        self.written = 0;
        self.headers.clear();
        for text in std::mem::take(&mut self.ordered) {
            self.write(&text);
        }
    }

    fn write(&mut self, text: &str) {
        let text = if self.truncating { cut(text) } else { text };
        if let Some(header) = header(text) {
            self.written += text.chars().count();
            self.headers.push(header);
        }
    }

    /// The values of the `Warning` headers, in order. They are UTF-8 and may hold non-ASCII characters.
    pub fn headers(&self) -> &[String] {
        &self.headers
    }
}

fn cut(text: &str) -> &str {
    text.char_indices().nth(TRUNCATE_ITEM).map_or(text, |(end, _)| &text[..end])
}

/// `299 - "text"`, or nothing when the text has control characters.
fn header(text: &str) -> Option<String> {
    if text.chars().any(char::is_control) {
        return None;
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    Some(format!("299 - \"{escaped}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(texts: &[&str]) -> Vec<String> {
        let mut warnings = Warnings::default();
        texts.iter().for_each(|text| warnings.add(text));
        warnings.headers().to_vec()
    }

    #[test]
    fn texts_are_escaped_and_given_once() {
        assert_eq!(
            headers(&[r#"unknown field "foo""#, "", r"a\b", "tab\there", r#"unknown field "foo""#, "é"]),
            [r#"299 - "unknown field \"foo\"""#, r#"299 - "a\\b""#, r#"299 - "é""#]
        );
    }

    #[test]
    fn too_much_text_is_cut() {
        let long: Vec<String> = (0..40).map(|n| format!("{n:02}{}", "é".repeat(298))).collect();
        let texts: Vec<&str> = long.iter().map(String::as_str).collect();
        // Thirteen times 300 fit below 4096.
        assert!(headers(&texts[..13]).iter().all(|header| header.contains(&"é".repeat(298))));
        let cut = headers(&texts[..14]);
        assert_eq!(cut.len(), 14);
        assert!(cut.iter().all(|header| header.chars().filter(|c| *c == 'é').count() == 254));
        // Sixteen times 256 reach 4096, the rest is dropped.
        assert_eq!(headers(&texts).len(), 16);
    }

    #[test]
    fn one_huge_text_is_cut() {
        let huge = "x".repeat(5000);
        assert_eq!(headers(&[&huge]), [format!("299 - \"{}\"", "x".repeat(256))]);
    }

    #[test]
    fn directives_are_read() {
        assert_eq!("".parse(), Ok(FieldValidation::Warn));
        assert_eq!("Strict".parse(), Ok(FieldValidation::Strict));
        assert_eq!("Ignore".parse(), Ok(FieldValidation::Ignore));
        let wrong = "strict".parse::<FieldValidation>();
        assert_eq!(wrong, Err(UnknownFieldValidation("strict".into())));
    }
}
