//! The table of field numbers.

use std::collections::HashMap;

/// Where fields stand on the wire, read from a text:
///
/// ```text
/// [core.v1]
/// Volume: name +VolumeSource
/// PodSpec: volumes containers restartPolicy
///   20=initContainers
/// ```
///
/// A section is a package, a line a message with its fields by their names in JSON. A field stands one after the
/// field before it, unless its number is given; `+` marks a Go struct that is embedded. Indented lines continue the
/// one before, lines with `#` are comments.
#[derive(Debug, Default)]
pub struct Numbers {
    /// The fields of a message, by package and message.
    messages: HashMap<(&'static str, &'static str), Vec<&'static str>>,
}

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbered {
    pub(crate) number: u32,
    /// The name in JSON, or the message of an embedded struct.
    pub(crate) name: &'static str,
    pub(crate) embedded: bool,
}

impl Numbers {
    /// Reads the table; `None` if it is not as described.
    pub fn parse(text: &'static str) -> Option<Self> {
        let mut numbers = Self::default();
        let mut package = "";
        let mut last = None;
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                package = name;
            } else if let Some(more) = line.strip_prefix("  ") {
                numbers.messages.get_mut(&last?)?.push(more);
            } else {
                let (name, fields) = line.split_once(':')?;
                last = Some((package, name));
                numbers.messages.insert((package, name), vec![fields]);
            }
        }
        Some(numbers)
    }

    pub(crate) fn contains(&self, package: &str, message: &str) -> bool {
        self.messages.contains_key(&(package, message))
    }

    /// The fields of a message in the order of their numbers; `None` if there is no such message, or its line is not
    /// as described.
    pub(crate) fn fields(&self, package: &str, message: &str) -> Option<Vec<Numbered>> {
        let lines = self.messages.get(&(package, message))?;
        let mut fields = Vec::new();
        let mut last = 0;
        for word in lines.iter().flat_map(|line| line.split_whitespace()) {
            let (number, name) = match word.split_once('=') {
                Some((number, name)) => (number.parse().ok()?, name),
                None => (last + 1, word),
            };
            last = number;
            let embedded = name.strip_prefix('+');
            fields.push(Numbered { number, name: embedded.unwrap_or(name), embedded: embedded.is_some() });
        }
        fields.is_sorted_by_key(|field| field.number).then_some(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_one_another_unless_they_say_otherwise() {
        let text = "# A comment.\n\n[a.v1]\nA: x +B 7=y\n  z\nEmpty:\n[b.v1]\nA: other\n";
        let numbers = Numbers::parse(text).expect("a table");
        let field = |number, name, embedded| Numbered { number, name, embedded };
        let expected =
            vec![field(1, "x", false), field(2, "B", true), field(7, "y", false), field(8, "z", false)];
        assert_eq!(numbers.fields("a.v1", "A"), Some(expected));
        assert_eq!(numbers.fields("a.v1", "Empty"), Some(Vec::new()));
        assert_eq!(numbers.fields("b.v1", "A"), Some(vec![field(1, "other", false)]));
        assert_eq!(numbers.fields("a.v1", "C"), None);
        assert!(!numbers.contains("b.v1", "Empty"));
        assert!(Numbers::parse("  continues nothing").is_none());
    }
}
