//! String and bytes literals.

use std::sync::Arc;

use crate::ast::Literal;

/// The letters that may follow a backslash.
const ESCAPES: &str = "abfnrtvxXuU\\'\"`?0123";

/// The length of the content before the closing quote in bytes; without one, how many characters there are up to and
/// with the one that fails.
pub(crate) fn end(body: &str, quote: &str, raw: bool) -> Result<usize, usize> {
    let mut at = 0;
    loop {
        let rest = &body[at..];
        if rest.starts_with(quote) {
            return Ok(at);
        }
        let failed =
            |bytes: usize| Err(body.get(..at + bytes).map_or(usize::MAX, |text| text.chars().count()));
        let Some(c) = rest.chars().next() else { return failed(0) };
        // One line only, unless the quotes are tripled.
        if quote.len() == 1 && matches!(c, '\n' | '\r') {
            return failed(1);
        }
        at += c.len_utf8();
        if c == '\\' && !raw {
            match body[at..].chars().next() {
                Some(escaped) if ESCAPES.contains(escaped) => at += escaped.len_utf8(),
                escaped => return Err(body[..at].chars().count() + usize::from(escaped.is_some())),
            }
        }
    }
}

/// The value of the content of a literal.
pub(crate) fn literal(content: &str, raw: bool, bytes: bool) -> Result<Literal, &'static str> {
    let invalid = if bytes { "invalid bytes literal" } else { "invalid string literal" };
    if raw || !content.contains('\\') {
        return Ok(if bytes {
            Literal::Bytes(Arc::from(content.as_bytes()))
        } else {
            Literal::String(Arc::from(content))
        });
    }
    let mut out = Vec::with_capacity(content.len());
    let mut rest = content;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c == '\\' {
            rest = escape(rest, bytes, &mut out).ok_or(invalid)?;
        } else {
            push_char(&mut out, c);
        }
    }
    if bytes {
        return Ok(Literal::Bytes(Arc::from(out)));
    }
    String::from_utf8(out).map(|text| Literal::String(Arc::from(text))).map_err(|_| invalid)
}

fn push_char(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Decodes what follows a backslash and returns the rest.
fn escape<'s>(rest: &'s str, bytes: bool, out: &mut Vec<u8>) -> Option<&'s str> {
    let c = rest.chars().next()?;
    let after = &rest[c.len_utf8()..];
    let simple = match c {
        'a' => 0x07,
        'b' => 0x08,
        'f' => 0x0C,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0B,
        '\\' | '\'' | '"' | '`' | '?' => c as u8,
        _ => return numeric(c, rest, bytes, out),
    };
    out.push(simple);
    Some(after)
}

fn numeric<'s>(c: char, rest: &'s str, bytes: bool, out: &mut Vec<u8>) -> Option<&'s str> {
    let (skip, digits, radix) = match c {
        'x' | 'X' => (1, 2, 16),
        'u' if !bytes => (1, 4, 16),
        'U' if !bytes => (1, 8, 16),
        '0'..='3' => (0, 3, 8),
        _ => return None,
    };
    let text = rest.get(skip..skip + digits)?;
    if !text.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let value = u32::from_str_radix(text, radix).ok()?;
    if bytes {
        out.push(u8::try_from(value).ok()?);
    } else {
        push_char(out, char::from_u32(value)?);
    }
    Some(&rest[skip + digits..])
}
