//! Paths from a node to a field below it, as rules name them.

use concord_meta::field::Path;
use concord_structural::{Additional, Node};

/// A path such as `.a.b` or `.a['b']` as errors show it; `None` if it does not lead to anything.
pub(crate) fn normalize(text: &str, node: Node<'_>) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    let (mut rest, mut path, mut node) = (text, Path::nil(), Some(node));
    while !rest.is_empty() {
        let name;
        (name, rest) = step(rest)?;
        let from = node?;
        if from.properties().len() > 0 {
            path = path.child(&name);
            node = Some(from.property(&name)?);
        } else {
            path = path.key(&name);
            node = match from.additional() {
                Additional::Unset => return None,
                additional => additional.schema(),
            };
        }
    }
    Some(path.to_string())
}

/// The name that a path starts with, and the rest of the path.
fn step(text: &str) -> Option<(String, &str)> {
    if let Some(text) = text.strip_prefix('.') {
        let end = text.find(['.', '[', ']']).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        return (!name.is_empty()).then(|| (name.to_owned(), rest));
    }
    quoted(text.strip_prefix("['")?)
}

/// A name up to its closing quote and bracket.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => return Some((name, text[at + 1..].strip_prefix(']')?)),
            '\\' => name.push(match chars.next()?.1 {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                c @ ('\'' | '\\') => c,
                _ => return None,
            }),
            c => name.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use concord_structural::Schema;
    use serde_json::json;

    use super::normalize;

    #[test]
    fn paths_lead_to_declared_fields_or_nowhere() {
        let schema = Schema::compile(&json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b.c": {"type": "string"}, "it's": {"type": "string"}}},
            "m": {"type": "object", "additionalProperties": {
                "type": "object", "properties": {"x": {"type": "string"}},
            }},
        }}))
        .expect("a good schema");
        for (path, expected) in [
            (".a", Some("a")),
            ("['a']", Some("a")),
            (".a['b.c']", Some("a.b.c")),
            (r".a['it\'s']", Some("a.it's")),
            (".m.key", Some("m[key]")),
            (".m['k.1'].x", Some("m[k.1].x")),
            ("", None),
            ("a", None),
            (".", None),
            (".z", None),
            (".a.", None),
            (".a['b.c'", None),
            (".a['b.c", None),
            (".a[b]", None),
            (r".a['\q']", None),
            (".a['b.c'].d", None),
            (".m.key.y", None),
            (".a]", None),
        ] {
            assert_eq!(normalize(path, schema.root()).as_deref(), expected, "{path}");
        }
    }
}
