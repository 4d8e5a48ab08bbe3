//! What stands in angle brackets in a table.

use std::collections::BTreeMap;

/// The values of names: `<ns>`, and what cases saved.
#[derive(Debug, Clone, Default)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Gives a name its value.
    pub fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.to_owned());
    }

    /// All names with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The bytes that a text stands for:
    ///
    /// * `<name>`: the value of a variable,
    /// * `<hex 00ff>`: bytes,
    /// * `<repeat 100 text>`: the text that often; `#` in it becomes the count, from 0.
    ///
    /// Everything else, other brackets included, stands for itself.
    pub fn expand(&self, text: &str) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('<') {
            bytes.extend_from_slice(before.as_bytes());
            let meant = after.split_once('>').and_then(|(inner, after)| Some((self.meaning(inner)?, after)));
            match meant {
                Some((value, after)) => {
                    bytes.extend_from_slice(&value);
                    rest = after;
                }
                None => {
                    bytes.push(b'<');
                    rest = after;
                }
            }
        }
        bytes.extend_from_slice(rest.as_bytes());
        bytes
    }

    fn meaning(&self, inner: &str) -> Option<Vec<u8>> {
        if let Some(value) = self.0.get(inner) {
            return Some(value.clone().into_bytes());
        }
        if let Some(digits) = inner.strip_prefix("hex ") {
            let pairs = digits.as_bytes().chunks(2).map(std::str::from_utf8);
            return pairs.map(|pair| u8::from_str_radix(pair.ok()?, 16).ok()).collect();
        }
        let (count, text) = inner.strip_prefix("repeat ")?.split_once(' ')?;
        let count: usize = count.parse().ok()?;
        if !text.contains('#') {
            return Some(text.repeat(count).into_bytes());
        }
        Some((0..count).map(|n| text.replace('#', &n.to_string())).collect::<String>().into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_stand_for_what_they_say() {
        let mut variables = Variables::default();
        variables.set("ns", "team");
        for (text, bytes) in [
            ("/<ns>/x", &b"/team/x"[..]),
            ("<hex 00ff>", b"\x00\xff"),
            ("<repeat 3 ab>!", b"ababab!"),
            ("<repeat 3 #,>", b"0,1,2,"),
            ("<unknown> a<b <", b"<unknown> a<b <"),
            ("<hex zz>", b"<hex zz>"),
        ] {
            assert_eq!(variables.expand(text), bytes, "{text}");
        }
    }
}
