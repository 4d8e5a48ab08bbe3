//! Character classes: `[...]`, `\d`, `[:alpha:]`, `\p{Greek}`.

use std::collections::BTreeSet;

use super::{Parser, write_char};
use crate::{Code, Error, unicode};

/// The classes written `[:name:]`.
const POSIX: &[(&str, &str)] = &[
    ("alnum", "0-9A-Za-z"),
    ("alpha", "A-Za-z"),
    ("ascii", r"\x00-\x7F"),
    ("blank", r"\t\x20"),
    ("cntrl", r"\x00-\x1F\x7F"),
    ("digit", "0-9"),
    ("graph", r"\x21-\x7E"),
    ("lower", "a-z"),
    ("print", r"\x20-\x7E"),
    ("punct", r"\x21-\x2F\x3A-\x40\x5B-\x60\x7B-\x7E"),
    ("space", r"\t-\r\x20"),
    ("upper", "A-Z"),
    ("word", "0-9A-Z_a-z"),
    ("xdigit", "0-9A-Fa-f"),
];

/// A class under construction: its items, each once. A pattern may name a large class many times.
#[derive(Default)]
struct Items {
    text: String,
    named: BTreeSet<String>,
}

impl Items {
    fn add_named(&mut self, class: String) {
        if !self.named.contains(&class) {
            self.text.push_str(&class);
            self.named.insert(class);
        }
    }

    fn add_range(&mut self, low: char, high: char) {
        write_char(&mut self.text, low);
        if low != high {
            self.text.push('-');
            write_char(&mut self.text, high);
        }
    }
}

impl Parser<'_> {
    /// Parses `[...]` at the start of the rest.
    pub(super) fn class(&mut self) -> Result<(), Error> {
        let whole = self.rest;
        self.advance(1);
        let negated = self.rest.starts_with('^');
        if negated {
            self.advance(1);
        }
        let mut items = Items::default();
        let mut first = true;
        // A closing bracket right after the opening one is literal.
        while first || !self.rest.starts_with(']') {
            first = false;
            self.class_item(whole, &mut items)?;
        }
        self.advance(1);
        let sign = if negated { "^" } else { "" };
        self.write_class(&format!("[{sign}{}]", items.text))
    }

    fn class_item(&mut self, whole: &str, items: &mut Items) -> Result<(), Error> {
        if let Some(class) = self.posix_class()? {
            items.add_named(class);
            return Ok(());
        }
        let mut class = String::new();
        if self.class_escape(&mut class)? {
            items.add_named(class);
            return Ok(());
        }
        self.class_range(whole, items)
    }

    fn class_range(&mut self, whole: &str, items: &mut Items) -> Result<(), Error> {
        let start = self.rest;
        let low = self.class_char(whole)?;
        let is_range = matches!(self.rest.as_bytes(), [b'-', next, ..] if *next != b']');
        let high = if is_range {
            self.advance(1);
            self.class_char(whole)?
        } else {
            low
        };
        if high < low {
            let text = &start[..start.len() - self.rest.len()];
            return Err(Error::new(Code::InvalidCharRange, text));
        }
        add_scalars(items, low, high);
        Ok(())
    }

    /// One code point of a class.
    fn class_char(&mut self, whole: &str) -> Result<u32, Error> {
        match self.rest.chars().next() {
            None => Err(Error::new(Code::MissingBracket, whole)),
            Some('\\') => self.escape(),
            Some(c) => {
                self.advance(c.len_utf8());
                Ok(u32::from(c))
            }
        }
    }

    /// Parses `[:name:]` at the start of the rest, if there is one.
    fn posix_class(&mut self) -> Result<Option<String>, Error> {
        let text = self.rest;
        let Some(end) = text.strip_prefix("[:").and_then(|inner| inner.find(":]")) else { return Ok(None) };
        let (full, name) = (&text[..end + 4], &text[2..end + 2]);
        let (sign, bare) = match name.strip_prefix('^') {
            Some(bare) => ("^", bare),
            None => ("", name),
        };
        let Some((_, set)) = POSIX.iter().find(|(known, _)| *known == bare) else {
            return Err(Error::new(Code::InvalidCharRange, full));
        };
        self.advance(full.len());
        Ok(Some(format!("[{sign}{set}]")))
    }

    /// Parses `\d`, `\pL` and their like at the start of the rest into `out`; false when there is none.
    pub(super) fn class_escape(&mut self, out: &mut String) -> Result<bool, Error> {
        let class = match self.rest.as_bytes() {
            [b'\\', b'p' | b'P', ..] => return self.unicode_class(out).map(|()| true),
            [b'\\', b'd', ..] => "[0-9]",
            [b'\\', b'D', ..] => "[^0-9]",
            [b'\\', b's', ..] => r"[\t\n\f\r\x20]",
            [b'\\', b'S', ..] => r"[^\t\n\f\r\x20]",
            [b'\\', b'w', ..] => "[0-9A-Z_a-z]",
            [b'\\', b'W', ..] => "[^0-9A-Z_a-z]",
            _ => return Ok(false),
        };
        self.advance(2);
        out.push_str(class);
        Ok(true)
    }

    fn unicode_class(&mut self, out: &mut String) -> Result<(), Error> {
        let text = self.rest;
        let bad = |text: &str| Error::new(Code::InvalidCharRange, text);
        let (end, name) = match text[2..].chars().next() {
            Some('{') => {
                let close = text.find('}').ok_or_else(|| bad(text))?;
                (close + 1, &text[3..close])
            }
            Some(c) => (2 + c.len_utf8(), &text[2..2 + c.len_utf8()]),
            None => return Err(bad(text)),
        };
        let (caret, name) = match name.strip_prefix('^') {
            Some(name) => (true, name),
            None => (false, name),
        };
        let class = unicode::class(name).ok_or_else(|| bad(&text[..end]))?;
        let negated = caret != text.starts_with(r"\P");
        out.push_str(&if negated { format!("[^{class}]") } else { format!("[{class}]") });
        self.advance(end);
        Ok(())
    }
}

/// Adds the characters from `low` to `high`, which may be surrogates: Go allows those and they never match.
fn add_scalars(items: &mut Items, low: u32, high: u32) {
    let low_char = char::from_u32(low).unwrap_or('\u{E000}');
    let high_char = char::from_u32(high).unwrap_or('\u{D7FF}');
    if low_char <= high_char {
        items.add_range(low_char, high_char);
    } else {
        items.add_named(unicode::NOTHING.to_owned());
    }
}
