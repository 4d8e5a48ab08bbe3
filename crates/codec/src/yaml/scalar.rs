//! In which of YAML's styles a string is written.

use super::resolve::{Scalar, resolve};

/// How a string stands in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// Where a string stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A key on the line of its value.
    SimpleKey,
    Elsewhere,
}

/// What about a text decides its style.
#[derive(Default)]
struct Traits {
    /// It has characters that mean something else at their place.
    indicators: bool,
    breaks: bool,
    /// It has characters that only a double-quoted string can hold.
    special: bool,
    leading_space: bool,
    trailing_space: bool,
    outer_break: bool,
    break_then_space: bool,
    space_then_break: bool,
}

/// The style Go's yaml v2 chooses.
pub(super) fn style(text: &str, place: Place) -> Style {
    let traits = Traits::of(text);
    let plain_allowed = !(traits.indicators
        || traits.breaks
        || traits.special
        || traits.leading_space
        || traits.trailing_space
        || traits.outer_break
        || traits.space_then_break);
    let single_allowed = !(traits.break_then_space || traits.space_then_break || traits.special);
    let literal_allowed = !(traits.trailing_space || traits.space_then_break || traits.special);
    let is_text = match resolve(text) {
        Scalar::Text => !is_base_60(text),
        // A key of that name would merge; upstream writes one that does.
        Scalar::Merge => place == Place::Elsewhere,
        _ => false,
    };
    if traits.breaks {
        // Without a line feed the breaks are rarer ones, which `special` covers.
        let literal = literal_allowed && place == Place::Elsewhere;
        return if literal { Style::Literal } else { Style::Double };
    }
    match (is_text, plain_allowed, single_allowed) {
        (false, ..) | (true, false, false) => Style::Double,
        (true, true, _) => Style::Plain,
        (true, false, true) => Style::Single,
    }
}

impl Traits {
    fn of(text: &str) -> Self {
        let mut traits =
            Self { indicators: text.starts_with("---") || text.starts_with("..."), ..Self::default() };
        traits.leading_space = text.starts_with(' ');
        traits.trailing_space = text.ends_with(' ');
        traits.outer_break = text.starts_with('\n') || text.ends_with('\n');
        let mut previous = None;
        let mut characters = text.chars().peekable();
        while let Some(c) = characters.next() {
            let blank_follows = characters.peek().is_none_or(|next| matches!(next, ' ' | '\t'));
            traits.indicators |= is_indicator(c, previous, blank_follows);
            traits.breaks |= c == '\n';
            traits.special |= !is_printable(c);
            traits.break_then_space |= previous == Some('\n') && c == ' ';
            traits.space_then_break |= previous == Some(' ') && c == '\n';
            previous = Some(c);
        }
        traits
    }
}

fn is_indicator(c: char, previous: Option<char>, blank_follows: bool) -> bool {
    let Some(previous) = previous else {
        return match c {
            '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
            | '`' => true,
            '?' | ':' | '-' => blank_follows,
            _ => false,
        };
    };
    match c {
        ':' => blank_follows,
        '#' => matches!(previous, ' ' | '\t' | '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}'),
        _ => false,
    }
}

/// What Go's yaml v2 writes as it is. It keeps to three bytes of UTF-8, so rarer scripts and emoji are
/// escaped. The separators U+2028 and U+2029 end lines and are escaped here, where v2 would write them.
pub(super) fn is_printable(c: char) -> bool {
    match c {
        '\n' | ' '..='~' => true,
        '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => false,
        _ => ('\u{a0}'..='\u{ffff}').contains(&c),
    }
}

/// Numbers in base 60, such as `1:30`, are quoted for other readers' sake.
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = unsigned.split(':');
    let first = parts.next().unwrap_or_default();
    let whole = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    if !first.starts_with(|c: char| c.is_ascii_digit()) || !whole(first) {
        return false;
    }
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else { return false };
    let (last, fraction) = last.split_once('.').unwrap_or((last, ""));
    let sixtieth = |text: &str| match text.as_bytes() {
        [units] => units.is_ascii_digit(),
        [tens, units] => (b'0'..=b'5').contains(tens) && units.is_ascii_digit(),
        _ => false,
    };
    middle.iter().all(|part| sixtieth(part)) && sixtieth(last) && whole(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_yaml_v2s() {
        use Style::{Double, Literal, Plain, Single};
        let cases = [
            ("abc", Plain),
            ("a b c", Plain),
            ("a:b", Plain),
            ("a: b", Single),
            ("a:", Single),
            ("a #b", Single),
            ("a#b", Plain),
            ("-a", Plain),
            ("- a", Single),
            ("-", Single),
            ("--- a", Single),
            ("{a", Single),
            ("a{", Plain),
            ("it's", Plain),
            ("'it", Single),
            (" a", Single),
            ("a ", Single),
            ("", Double),
            ("true", Double),
            ("no", Double),
            ("~", Double),
            ("12", Double),
            ("1.5", Double),
            ("1:30", Double),
            ("1:30.5", Double),
            ("1:70", Plain),
            ("10.0.0.1", Plain),
            ("2026-11-15T22:04:45Z", Double),
            ("100m", Plain),
            ("a\tb", Double),
            ("é", Plain),
            ("😀", Double),
            ("a\u{2028}b", Double),
            ("a\nb", Literal),
            ("a\nb\n", Literal),
            ("\na", Literal),
            ("a \nb", Double),
            ("a\nb ", Double),
            ("a\n b", Literal),
            ("a\tb\nc", Double),
            ("\n", Literal),
            ("<<", Plain),
        ];
        for (text, expected) in cases {
            assert_eq!(style(text, Place::Elsewhere), expected, "{text:?}");
        }
        assert_eq!(style("a\nb", Place::SimpleKey), Double);
        assert_eq!(style("<<", Place::SimpleKey), Double);
    }
}
