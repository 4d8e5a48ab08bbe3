//! Amounts of resources: `500m`, `1.5Gi`, `2e3`.

mod parse;

use std::cmp::Ordering;
use std::fmt;

const NANOS: i128 = 1_000_000_000;

/// The suffixes of [`QuantityFormat::DecimalSi`], greatest first, with their powers of ten.
const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("E", 18), ("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3), ("", 0), ("m", -3), ("u", -6), ("n", -9)];

/// The suffixes of [`QuantityFormat::BinarySi`], by powers of 1024 from 0 on.
const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Why a text is no quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// It does not look like one.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// It has no digits. Upstream reads most such texts as zero and refuses only those with one of
    /// the largest or smallest suffixes.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// Its suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// How a quantity was written, and is written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuantityFormat {
    /// `12e6`
    DecimalExponent,
    /// `12Mi`
    BinarySi,
    /// `12M`
    DecimalSi,
}

/// A fixed-point number, exact to a billionth. What is more precise is rounded away from zero.
///
/// It prints in canonical form: no fraction and the largest suffix that loses nothing. Like
/// upstream's it remembers a text that looked canonical when it was read and prints that.
///
/// Numbers beyond 10²⁹ are cut down to about that; upstream has no bound for decimal ones, and
/// prints some of them wrongly.
///
/// ```
/// use concord_meta::Quantity;
/// let mut memory: Quantity = "1.5Gi".parse().unwrap();
/// assert_eq!(memory.to_string(), "1536Mi");
/// memory += &"512Mi".parse().unwrap();
/// assert_eq!(memory.to_string(), "2Gi");
/// assert!(memory > "2G".parse().unwrap());
/// ```
#[derive(Debug, Clone)]
pub struct Quantity {
    nanos: i128,
    format: QuantityFormat,
    text: Option<Box<str>>,
}

impl Quantity {
    /// A whole number.
    #[must_use]
    pub fn new(value: i64, format: QuantityFormat) -> Self {
        Self { nanos: i128::from(value) * NANOS, format, text: None }
    }

    /// How it is written.
    #[must_use]
    pub fn format(&self) -> QuantityFormat {
        self.format
    }

    /// Whether it is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// The next whole number away from zero, cut to the range of the type.
    #[must_use]
    pub fn value(&self) -> i64 {
        self.divided(NANOS)
    }

    /// In thousandths, rounded away from zero and cut to the range of the type.
    #[must_use]
    pub fn milli_value(&self) -> i64 {
        self.divided(NANOS / 1000)
    }

    fn divided(&self, unit: i128) -> i64 {
        let more = i128::from(self.nanos % unit != 0) * self.nanos.signum();
        let value = self.nanos / unit + more;
        i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
    }

    /// Small and broken numbers are not written in powers of 1024.
    fn is_binary(&self) -> bool {
        let small = (-1024 * NANOS..1024 * NANOS).contains(&self.nanos) && self.nanos != -1024 * NANOS;
        self.format == QuantityFormat::BinarySi && !small && self.nanos % NANOS == 0
    }

    fn write_binary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.nanos / NANOS;
        let mut power = 0;
        while value % 1024 == 0 && power + 1 < BINARY_SUFFIXES.len() {
            value /= 1024;
            power += 1;
        }
        write!(f, "{value}{}", BINARY_SUFFIXES[power])
    }

    fn write_decimal(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |exponent: i32| self.nanos % power_of_ten(exponent + 9) == 0;
        if self.format == QuantityFormat::DecimalExponent {
            let exponent = (-9..=27).rev().step_by(3).find(|exponent| fits(*exponent)).unwrap_or(-9);
            let value = self.nanos / power_of_ten(exponent + 9);
            return match exponent {
                0 => write!(f, "{value}"),
                exponent => write!(f, "{value}e{exponent}"),
            };
        }
        let found = DECIMAL_SUFFIXES.iter().find(|(_, exponent)| fits(*exponent));
        let (suffix, exponent) = found.copied().unwrap_or(("n", -9));
        write!(f, "{}{suffix}", self.nanos / power_of_ten(exponent + 9))
    }
}

/// Powers that an `i128` holds; greater ones are the greatest.
fn power_of_ten(exponent: i32) -> i128 {
    u32::try_from(exponent).map_or(1, |exponent| 10_i128.saturating_pow(exponent))
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => f.write_str(text),
            None if self.is_zero() => f.write_str("0"),
            None if self.is_binary() => self.write_binary(f),
            None => self.write_decimal(f),
        }
    }
}

/// Zero takes the format of what is added to it.
impl std::ops::AddAssign<&Self> for Quantity {
    fn add_assign(&mut self, other: &Self) {
        if self.is_zero() {
            self.format = other.format;
        }
        self.nanos = self.nanos.saturating_add(other.nanos);
        self.text = None;
    }
}

/// Zero takes the format of what is taken from it.
impl std::ops::SubAssign<&Self> for Quantity {
    fn sub_assign(&mut self, other: &Self) {
        if self.is_zero() {
            self.format = other.format;
        }
        self.nanos = self.nanos.saturating_sub(other.nanos);
        self.text = None;
    }
}

/// Quantities are compared by what they amount to, however they are written.
impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

#[cfg(test)]
#[path = "quantity/tests.rs"]
mod tests;
