//! Field selectors: which objects, by a few of their fields.

use std::borrow::Cow;
use std::fmt;

use crate::go;
use crate::labels::SelectorError;

/// Terms that must all hold. It prints in canonical form.
///
/// ```
/// use concord_meta::fields::Selector;
/// let selector = Selector::parse("status.phase!=Running,metadata.name=web").unwrap();
/// assert_eq!(selector.to_string(), "metadata.name=web,status.phase!=Running");
/// assert_eq!(selector.requires_exact_match("metadata.name"), Some("web"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Selector {
    terms: Vec<Term>,
}

/// One condition on one field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Term {
    /// The field, such as `metadata.name`.
    pub field: String,
    /// The value it must have, or must not have.
    pub value: String,
    /// Whether the field must have the value.
    pub equal: bool,
}

/// The fields a resource can be selected by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownFields<'a> {
    /// Only `metadata.name` and `metadata.namespace`, which every kind has.
    Metadata,
    /// Exactly these; others are refused in these words, in which `{}` stands for the field.
    Worded(&'a [&'a str], &'a str),
    /// Those of [`KnownFields::Metadata`] and these, refused as those of most kinds are.
    Defined(&'a [String]),
}

impl Selector {
    /// The selector every object matches.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// The selector of the object of this name.
    #[must_use]
    pub fn name(name: &str) -> Self {
        let term = Term { field: "metadata.name".to_owned(), value: name.to_owned(), equal: true };
        Self { terms: vec![term] }
    }

    /// Reads the form of the `fieldSelector` parameter.
    ///
    /// # Errors
    ///
    /// When the text is no selector; the error is upstream's text.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((field, equal, value)) = split_term(part) else {
                let error = format!("invalid selector: '{text}'; can't understand '{part}'");
                return Err(SelectorError(error));
            };
            let value = unescape(value).map_err(SelectorError)?;
            // A term without field and value says nothing.
            if !(field.is_empty() && value.is_empty()) {
                terms.push(Term { field: field.to_owned(), value, equal });
            }
        }
        Ok(Self { terms })
    }

    /// Whether the selector restricts nothing.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The terms, in canonical order.
    #[must_use]
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// The value the field must have, if the selector demands one.
    #[must_use]
    pub fn requires_exact_match(&self, field: &str) -> Option<&str> {
        let term = self.terms.iter().find(|term| term.equal && term.field == field)?;
        Some(&term.value)
    }

    /// Whether an object is selected; `value` gives its fields, the empty string for those it lacks.
    pub fn matches<'a>(&self, value: impl Fn(&str) -> Cow<'a, str>) -> bool {
        self.terms.iter().all(|term| (value(&term.field) == term.value.as_str()) == term.equal)
    }

    /// Refuses a selector with fields that the resource cannot be selected by.
    ///
    /// # Errors
    ///
    /// At the first such field; the error is upstream's text.
    pub fn check(&self, known: KnownFields<'_>) -> Result<(), SelectorError> {
        const METADATA: [&str; 2] = ["metadata.name", "metadata.namespace"];
        let fields = self.terms.iter().map(|term| term.field.as_str());
        match known {
            KnownFields::Metadata => match fields.into_iter().find(|field| !METADATA.contains(field)) {
                None => Ok(()),
                Some(field) => Err(SelectorError(format!(
                    r#"{} is not a known field selector: only "metadata.name", "metadata.namespace""#,
                    go::quote(field)
                ))),
            },
            KnownFields::Worded(listed, words) => supported(fields, words, |field| listed.contains(&field)),
            KnownFields::Defined(defined) => supported(fields, UNSUPPORTED, |field| {
                METADATA.contains(&field) || defined.iter().any(|known| known == field)
            }),
        }
    }
}

const UNSUPPORTED: &str = "field label not supported: {}";

fn supported<'a>(
    mut fields: impl Iterator<Item = &'a str>,
    words: &str,
    is_known: impl Fn(&str) -> bool,
) -> Result<(), SelectorError> {
    match fields.find(|field| !is_known(field)) {
        None => Ok(()),
        Some(field) => Err(SelectorError(words.replace("{}", field))),
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, term) in self.terms.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let operator = if term.equal { "=" } else { "!=" };
            write!(f, "{comma}{}{operator}{}", term.field, escape(&term.value))?;
        }
        Ok(())
    }
}

/// A value as it can stand in the parameter: `\`, `,` and `=` get a backslash.
#[must_use]
pub fn escape(value: &str) -> String {
    value.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=")
}

fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                other => {
                    let sequence: String = [Some('\\'), other].into_iter().flatten().collect();
                    return Err(format!("invalid field selector: invalid escape sequence: {sequence}"));
                }
            },
            ',' | '=' => {
                // Upstream prints the number of the character.
                let code = u32::from(c);
                return Err(format!("invalid field selector: unescaped character in value: {code}"));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

/// The parts between the commas that no backslash stands before.
fn split_terms(text: &str) -> Vec<&str> {
    let mut escaped = false;
    let parts = text.split(|c| {
        let separates = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        separates
    });
    parts.collect()
}

/// The field, whether it must be equal, and the value; at the first operator.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let operators = [("!=", false), ("==", true), ("=", true)];
    term.char_indices().find_map(|(at, _)| {
        let found = operators.iter().find(|(operator, _)| term[at..].starts_with(operator));
        found.map(|(operator, equal)| (&term[..at], *equal, &term[at + operator.len()..]))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn good_selectors_have_a_canonical_form() {
        let table = [
            ("", ""),
            (",,", ""),
            ("=", ""),
            ("a=b", "a=b"),
            ("a==b", "a=b"),
            ("b!=,a=1", "a=1,b!="),
            (r"a=x\,y\=\\", r"a=x\,y\=\\"),
            ("=b", "=b"),
            ("a b= c", "a b= c"),
            ("a!b=c", "a!b=c"),
        ];
        for (text, canonical) in table {
            assert_eq!(Selector::parse(text).expect(text).to_string(), canonical, "{text}");
        }
    }

    #[test]
    fn bad_selectors_get_upstreams_complaint() {
        let table = [
            ("a", "invalid selector: 'a'; can't understand 'a'"),
            ("a=1,b", "invalid selector: 'a=1,b'; can't understand 'b'"),
            ("a=b=c", "invalid field selector: unescaped character in value: 61"),
            ("a===b", "invalid field selector: unescaped character in value: 61"),
            (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
            (r"a=\", r"invalid field selector: invalid escape sequence: \"),
        ];
        for (text, complaint) in table {
            assert_eq!(Selector::parse(text).expect_err(text).to_string(), complaint, "{text}");
        }
    }

    #[test]
    fn selectors_select() {
        let fields = |field: &str| match field {
            "metadata.name" => Cow::Borrowed("web"),
            _ => Cow::Borrowed(""),
        };
        let table = [
            ("", true),
            ("metadata.name=web", true),
            ("metadata.name!=web", false),
            ("metadata.name=web,status.phase=Running", false),
            ("status.phase=", true),
            ("status.phase!=Running", true),
        ];
        for (text, selected) in table {
            assert_eq!(Selector::parse(text).expect(text).matches(fields), selected, "{text}");
        }
        assert_eq!(Selector::name("web").to_string(), "metadata.name=web");
        let not = Selector::parse("metadata.name!=web").expect("good");
        assert_eq!(not.requires_exact_match("metadata.name"), None);
        assert!(Selector::everything().is_everything() && not.terms().len() == 1);
    }

    #[test]
    fn unknown_fields_are_refused() {
        let check = |text: &str, known| Selector::parse(text).expect(text).check(known).err().map(|e| e.0);
        let listed = KnownFields::Worded(&["metadata.name", "spec.nodeName"], UNSUPPORTED);
        assert_eq!(check("metadata.name=a,metadata.namespace!=b", KnownFields::Metadata), None);
        let complaint = r#""foo" is not a known field selector: only "metadata.name", "metadata.namespace""#;
        assert_eq!(check("foo=a", KnownFields::Metadata).as_deref(), Some(complaint));
        assert_eq!(check("spec.nodeName=a", listed), None);
        let complaint = "field label not supported: spec.x";
        assert_eq!(check("metadata.name=a,spec.x=a", listed).as_deref(), Some(complaint));
    }

    proptest! {
        #[test]
        fn a_value_survives_being_escaped(value in ".*") {
            let text = format!("field={}", escape(&value));
            let selector = Selector::parse(&text).expect("escaped");
            prop_assert_eq!(selector.requires_exact_match("field"), Some(value.as_str()));
            prop_assert_eq!(selector.to_string(), text);
        }

        #[test]
        fn the_canonical_form_means_the_same(text in r"([ab.=!,]|\\|==){0,12}") {
            if let Ok(selector) = Selector::parse(&text) {
                let again = Selector::parse(&selector.to_string()).expect("canonical");
                let sorted = |selector: &Selector| {
                    let mut terms: Vec<_> = selector.terms.iter().map(|term| format!("{term:?}")).collect();
                    terms.sort_unstable();
                    terms
                };
                prop_assert_eq!(sorted(&again), sorted(&selector));
            }
        }
    }
}
