//! Property names as expressions write them.

/// The words of the language, which are not names.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// The name by which an expression selects a property, or none when it cannot.
///
/// ```
/// assert_eq!(concord_cel::escape("x-prop").as_deref(), Some("x__dash__prop"));
/// assert_eq!(concord_cel::escape("namespace").as_deref(), Some("__namespace__"));
/// assert_eq!(concord_cel::escape("$ref"), None);
/// ```
pub fn escape(property: &str) -> Option<String> {
    if property.is_empty() || property.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&property) {
        return Some(format!("__{property}__"));
    }
    let mut out = String::with_capacity(property.len());
    let mut rest = property;
    while let Some(c) = rest.chars().next() {
        let (consumed, written) = match c {
            '_' if rest.starts_with("__") => (2, "__underscores__"),
            '.' => (1, "__dot__"),
            '-' => (1, "__dash__"),
            '/' => (1, "__slash__"),
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => (1, &rest[..1]),
            _ => return None,
        };
        out.push_str(written);
        rest = &rest[consumed..];
    }
    Some(out)
}
