//! What may follow a backslash.

use super::Parser;
use crate::{Code, Error};

impl Parser<'_> {
    /// Parses an escaped code point at the start of the rest. It may be a surrogate: Go allows it and it never
    /// matches.
    pub(super) fn escape(&mut self) -> Result<u32, Error> {
        let text = self.rest;
        let mut chars = text[1..].chars();
        let Some(c) = chars.next() else {
            return Err(Error::new(Code::TrailingBackslash, ""));
        };
        let value = match c {
            '0'..='7' => octal(c, &mut chars),
            'x' => hexadecimal(&mut chars),
            'a' => Some(0x07),
            'f' => Some(0x0C),
            'n' => Some(0x0A),
            'r' => Some(0x0D),
            't' => Some(0x09),
            'v' => Some(0x0B),
            _ if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(u32::from(c)),
            _ => None,
        };
        let consumed = text.len() - chars.as_str().len();
        match value {
            Some(value) => {
                self.advance(consumed);
                Ok(value)
            }
            None => Err(Error::new(Code::InvalidEscape, &text[..consumed])),
        }
    }
}

/// Up to three octal digits. One digit alone, except zero, would be a back-reference.
fn octal(first: char, chars: &mut std::str::Chars<'_>) -> Option<u32> {
    let next_is_octal = |chars: &std::str::Chars<'_>| chars.as_str().starts_with(|c| matches!(c, '0'..='7'));
    if first != '0' && !next_is_octal(chars) {
        return None;
    }
    let mut value = first.to_digit(8)?;
    for _ in 1..3 {
        if !next_is_octal(chars) {
            break;
        }
        value = value * 8 + chars.next()?.to_digit(8)?;
    }
    Some(value)
}

/// `x41` or `x{1F600}`.
fn hexadecimal(chars: &mut std::str::Chars<'_>) -> Option<u32> {
    let first = chars.next()?;
    if first != '{' {
        let second = chars.next();
        return Some(first.to_digit(16)? * 16 + second?.to_digit(16)?);
    }
    let mut value = 0;
    let mut digits = 0;
    loop {
        match chars.next()? {
            '}' => return (digits > 0).then_some(value),
            c => {
                value = value * 16 + c.to_digit(16)?;
                digits += 1;
            }
        }
        if value > u32::from(char::MAX) {
            return None;
        }
    }
}
