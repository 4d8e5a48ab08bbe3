//! Paths into a schema: what selectable fields and rules name.

use concord_meta::field::Path;

use crate::schema::{Additional, Node};

/// What a path leads to.
pub(super) struct Resolved<'a> {
    /// The path in its plain form.
    pub(super) path: String,
    /// Its first field.
    pub(super) root: String,
    /// The schema there, if anything is known of it.
    pub(super) node: Option<Node<'a>>,
}

/// Follows a path such as `.spec.a` or, with `arrays`, `.spec['a']`.
///
/// # Errors
///
/// Upstream's text about what is wrong with it.
pub(super) fn resolve<'a>(text: &str, root: Node<'a>, arrays: bool) -> Result<Resolved<'a>, String> {
    let mut tokens = Tokens(text);
    let mut walk = Walk { path: Path::nil(), root: None, node: Some(root) };
    let end = || "unexpected end of JSON path".to_owned();
    while let Some(token) = tokens.next() {
        match token {
            "[" if !arrays => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let key = tokens.next().ok_or_else(end)?;
                let quoted = key.strip_prefix('\'').and_then(|key| key.strip_suffix('\''));
                let quoted = quoted.ok_or_else(|| format!("expected single quoted string but got {key}"))?;
                walk.step(&unescape(quoted)?)?;
                match tokens.next().ok_or_else(end)? {
                    "]" => {}
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            "." => walk.step(tokens.next().ok_or_else(end)?)?,
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok(Resolved { path: walk.path.to_string(), root: walk.root.unwrap_or_default(), node: walk.node })
}

struct Walk<'a> {
    path: Path,
    root: Option<String>,
    node: Option<Node<'a>>,
}

impl Walk<'_> {
    fn step(&mut self, name: &str) -> Result<(), String> {
        let invalid = || "does not refer to a valid field".to_owned();
        let node = self.node.ok_or_else(invalid)?;
        if node.properties().len() > 0 {
            self.path = self.path.child(name);
            self.node = Some(node.property(name).ok_or_else(invalid)?);
        } else {
            match node.additional() {
                Additional::Unset => return Err(invalid()),
                additional => self.node = additional.schema(),
            }
            self.path = self.path.key(name);
        }
        self.root.get_or_insert_with(|| name.to_owned());
        Ok(())
    }
}

/// The delimiters and what is between them. A text in single quotes is one token.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0;
        let end = match text.chars().next()? {
            '.' | '[' | ']' => 1,
            '\'' => quoted_end(text),
            _ => text.find(['.', '[', ']']).unwrap_or(text.len()),
        };
        let (token, rest) = text.split_at(end);
        self.0 = rest;
        Some(token)
    }
}

fn quoted_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let end = (1..bytes.len()).find(|at| bytes[*at] == b'\'' && bytes[at - 1] != b'\\');
    end.map_or(text.len(), |end| end + 1)
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('a') => out.push('\u{7}'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('v') => out.push('\u{b}'),
            Some(c @ ('\'' | '\\')) => out.push(c),
            Some(other) => return Err(format!("invalid string literal: invalid escape char \\{other}")),
            None => out.push('\\'),
        }
    }
    Ok(out)
}
