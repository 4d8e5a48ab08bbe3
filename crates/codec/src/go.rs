//! Spellings of Go's standard library that clients see: quoted strings and floats.

/// `strconv.Quote`.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        if c == '"' {
            quoted.push('\\');
        }
        push_escaped(&mut quoted, c);
    }
    quoted.push('"');
    quoted
}

/// How Go's JSON scanner names a byte: a rune literal of the code point with that number.
pub(crate) fn quote_byte(byte: u8) -> String {
    let mut quoted = String::from("'");
    if byte == b'\'' {
        quoted.push('\\');
    }
    push_escaped(&mut quoted, char::from(byte));
    quoted.push('\'');
    quoted
}

fn push_escaped(out: &mut String, c: char) {
    let short = match c {
        '\\' => "\\\\",
        '\x07' => "\\a",
        '\x08' => "\\b",
        '\x0c' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\x0b' => "\\v",
        _ => "",
    };
    match u32::from(c) {
        _ if !short.is_empty() => out.push_str(short),
        _ if is_print(c) => out.push(c),
        code @ (0..0x20 | 0x7f) => out.push_str(&format!("\\x{code:02x}")),
        code @ 0..0x1_0000 => out.push_str(&format!("\\u{code:04x}")),
        code => out.push_str(&format!("\\U{code:08x}")),
    }
}

/// `unicode.IsPrint`. The standard library escapes the same classes in debug output, apart from marks,
/// which it leaves alone only after another character.
fn is_print(c: char) -> bool {
    let after_another: String = ['a', c].iter().collect();
    matches!(c, '"' | '\'' | '\\') || after_another.escape_debug().count() == 2
}

/// The shortest digits that read back as the same float, and the decimal exponent of the first one.
struct Digits {
    negative: bool,
    digits: String,
    exponent: i32,
}

impl Digits {
    fn of(float: f64) -> Self {
        Self::parse(&format!("{float:e}"))
    }

    fn of_single(float: f32) -> Self {
        Self::parse(&format!("{float:e}"))
    }

    /// Rust prints the shortest form as `-1.25e-7`.
    fn parse(scientific: &str) -> Self {
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
        let digits = mantissa.chars().filter(char::is_ascii_digit).collect();
        Self { negative: mantissa.starts_with('-'), digits, exponent: exponent.parse().unwrap_or(0) }
    }

    /// Format `e` with at least `width` digits of exponent.
    fn scientific(&self, width: usize) -> String {
        let (first, rest) = self.digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let sign = if self.exponent < 0 { '-' } else { '+' };
        let exponent = self.exponent.unsigned_abs();
        format!("{}{first}{point}{rest}e{sign}{exponent:0width$}", self.sign())
    }

    /// Format `f`.
    fn positional(&self) -> String {
        let (sign, digits) = (self.sign(), &self.digits);
        let Ok(exponent) = usize::try_from(self.exponent) else {
            let zeros = "0".repeat((self.exponent.unsigned_abs() as usize).saturating_sub(1));
            return format!("{sign}0.{zeros}{digits}");
        };
        let whole = exponent + 1;
        if digits.len() <= whole {
            return format!("{sign}{digits}{}", "0".repeat(whole - digits.len()));
        }
        let (whole, fraction) = digits.split_at(whole);
        format!("{sign}{whole}.{fraction}")
    }

    /// Format `g` without a precision.
    fn general(&self) -> String {
        if (-4..6).contains(&self.exponent) { self.positional() } else { self.scientific(2) }
    }

    fn sign(&self) -> &'static str {
        if self.negative { "-" } else { "" }
    }
}

/// A float as `encoding/json` writes it.
pub(crate) fn json_float(float: f64) -> String {
    let size = float.abs();
    let digits = Digits::of(float);
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        // Go pads exponents to two digits and its JSON encoder takes that back for negative ones;
        // positive ones here have two digits anyway.
        digits.scientific(1)
    } else {
        digits.positional()
    }
}

/// A finite float as Go's yaml v2 writes it.
pub(crate) fn yaml_float(float: f64) -> String {
    Digits::of(float).general()
}

/// A finite float that is the key of a YAML mapping, which sigs.k8s.io/yaml prints in single precision.
pub(crate) fn yaml_float_key(float: f64) -> String {
    #[allow(clippy::cast_possible_truncation, reason = "the loss is upstream's")]
    let single = float as f32;
    match (single.is_infinite(), float < 0.0) {
        (true, false) => String::from(".inf"),
        (true, true) => String::from("-.inf"),
        (false, _) => Digits::of_single(single).general(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_as_go_quotes_them() {
        let cases = [
            ("spec.a", r#""spec.a""#),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("a'b", r#""a'b""#),
            ("\x07\x08\x0c\n\r\t\x0b\0\x7f", r#""\a\b\f\n\r\t\v\x00\x7f""#),
            ("é日e\u{301}", "\"é日e\u{301}\""),
            ("\u{85}\u{a0}\u{200b}\u{feff}", r#""\u0085\u00a0\u200b\ufeff""#),
            ("\u{e0001}😀", "\"\\U000e0001😀\""),
        ];
        for (text, quoted) in cases {
            assert_eq!(quote(text), quoted, "{text:?}");
        }
    }

    #[test]
    fn bytes_are_named_as_gos_scanner_names_them() {
        let cases = [
            (b'}', "'}'"),
            (b'\'', r"'\''"),
            (b'"', "'\"'"),
            (b'\\', r"'\\'"),
            (b'\n', r"'\n'"),
            (0, r"'\x00'"),
            (0xff, "'ÿ'"),
        ];
        for (byte, name) in cases {
            assert_eq!(quote_byte(byte), name);
        }
    }

    #[test]
    fn floats_are_spelled_as_go_spells_them() {
        let cases = [
            (0.0, "0", "0"),
            (-0.0, "-0", "-0"),
            (0.5, "0.5", "0.5"),
            (100_000.0, "100000", "100000"),
            (1e6, "1000000", "1e+06"),
            (1_234_567.5, "1234567.5", "1.2345675e+06"),
            (1e20, "100000000000000000000", "1e+20"),
            (1e21, "1e+21", "1e+21"),
            (1.5e300, "1.5e+300", "1.5e+300"),
            (1e-6, "0.000001", "1e-06"),
            (1e-7, "1e-7", "1e-07"),
            (-1.25e-7, "-1.25e-7", "-1.25e-07"),
            (1.25e-10, "1.25e-10", "1.25e-10"),
            (0.0001, "0.0001", "0.0001"),
            (9_223_372_036_854_775_808.0, "9223372036854776000", "9.223372036854776e+18"),
            (f64::MAX, "1.7976931348623157e+308", "1.7976931348623157e+308"),
            (5e-324, "5e-324", "5e-324"),
        ];
        for (float, json, yaml) in cases {
            assert_eq!(json_float(float), json);
            assert_eq!(yaml_float(float), yaml);
        }
    }
}
