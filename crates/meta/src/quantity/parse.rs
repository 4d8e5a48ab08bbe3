//! Reading a quantity.

use std::str::FromStr;

use super::{
    BINARY_SUFFIXES, DECIMAL_SUFFIXES, NANOS, Quantity, QuantityError, QuantityFormat, power_of_ten,
};
use crate::go;

/// The fraction digits of a binary quantity that count. More would not fit the arithmetic and are
/// far below a billionth but for the largest suffixes.
const MAX_BINARY_FRACTION: usize = 19;

/// The parts of a text; `whole` has no leading zeros but for a single one.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
    has_digits: bool,
}

/// What a suffix stands for.
#[derive(Clone, Copy)]
enum Factor {
    Ten(i32, QuantityFormat),
    Two(u32),
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let parts = split(text).ok_or(QuantityError::Format)?;
        let factor = interpret(parts.suffix).ok_or(QuantityError::Suffix)?;
        let extreme = matches!(factor, Factor::Two(50..) | Factor::Ten(..-9, _));
        if extreme && !parts.has_digits {
            return Err(QuantityError::Numeric);
        }
        let (magnitude, format) = match factor {
            Factor::Ten(exponent, format) => (decimal(&parts, exponent), format),
            Factor::Two(exponent) => binary(&parts, exponent),
        };
        let nanos = if parts.negative { -magnitude } else { magnitude };
        let text = keeps_text(text, &parts, factor).then(|| text.into());
        Ok(Self { nanos, format, text })
    }
}

fn split(text: &str) -> Option<Parts<'_>> {
    if text.is_empty() {
        return None;
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (all, rest) = digits(unsigned);
    let whole = Some(all.trim_start_matches('0')).filter(|whole| !whole.is_empty()).unwrap_or("0");
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
    let exponent = suffix.trim_start_matches(['e', 'E', 'i', 'n', 'u', 'm', 'k', 'K', 'M', 'G', 'T', 'P']);
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let complete = digits(exponent).1.is_empty();
    let has_digits = !(all.is_empty() && fraction.is_empty());
    complete.then_some(Parts { negative: text.starts_with('-'), whole, fraction, suffix, has_digits })
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn interpret(suffix: &str) -> Option<Factor> {
    if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        return Some(Factor::Ten(*exponent, QuantityFormat::DecimalSi));
    }
    if let Some(power) = BINARY_SUFFIXES.iter().position(|name| *name == suffix) {
        return u32::try_from(power * 10).ok().map(Factor::Two);
    }
    let exponent = go::parse_int(suffix.strip_prefix(['e', 'E'])?).ok()?;
    // Beyond this everything is too large or too small to tell apart.
    let exponent = i32::try_from(exponent.clamp(-10_000, 10_000)).ok()?;
    Some(Factor::Ten(exponent, QuantityFormat::DecimalExponent))
}

/// The absolute value in billionths.
fn decimal(parts: &Parts<'_>, exponent: i32) -> i128 {
    // The number is these digits times a power of ten; trailing zeros only make it overflow.
    let all = format!("{}{}", parts.whole, parts.fraction);
    let significant = all.trim_end_matches('0');
    let zeros = all.len() - significant.len();
    let significant = significant.trim_start_matches('0');
    let shift = i64::from(exponent) + 9 + count(zeros) - count(parts.fraction.len());
    if shift >= 0 {
        let shift = i32::try_from(shift).unwrap_or(i32::MAX);
        return number(significant).saturating_mul(power_of_ten(shift));
    }
    let dropped = usize::try_from(-shift).unwrap_or(usize::MAX).min(significant.len());
    let kept = &significant[..significant.len() - dropped];
    let remainder = !significant.is_empty();
    number(kept).saturating_add(i128::from(remainder))
}

fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX / 4)
}

/// No digits are zero; more than fit are the greatest number.
fn number(digits: &str) -> i128 {
    if digits.is_empty() { 0 } else { digits.parse().unwrap_or(i128::MAX) }
}

/// The absolute value in billionths, at most that of the greatest 64-bit number, and the format:
/// less than one is never written in powers of 1024.
fn binary(parts: &Parts<'_>, exponent: u32) -> (i128, QuantityFormat) {
    let max = i128::from(i64::MAX) * NANOS;
    let factor = 1_i128 << exponent;
    let whole = number(parts.whole).saturating_mul(factor).saturating_mul(NANOS).min(max);
    let fraction = &parts.fraction[..parts.fraction.len().min(MAX_BINARY_FRACTION)];
    let unit = power_of_ten(i32::try_from(fraction.len()).unwrap_or_default());
    let scaled = number(fraction) * factor;
    let rest = scaled % unit * NANOS;
    let rest = rest / unit + i128::from(rest % unit != 0);
    let magnitude = whole.saturating_add(scaled / unit * NANOS).saturating_add(rest).min(max);
    match magnitude {
        0 => (0, QuantityFormat::BinarySi),
        1..NANOS => (magnitude, QuantityFormat::DecimalSi),
        _ => (magnitude, QuantityFormat::BinarySi),
    }
}

/// Whether upstream takes the text for canonical without looking closely (`1.500` passes). It does
/// so only for numbers that are plainly in the range of 64 bits.
fn keeps_text(text: &str, parts: &Parts<'_>, factor: Factor) -> bool {
    let digits = parts.whole.len() + parts.fraction.len();
    match factor {
        Factor::Ten(exponent, _) => {
            let scale = i64::from(exponent) - count(parts.fraction.len());
            let shifted = format!("{}{}", parts.whole, parts.fraction);
            text == "0"
                || (digits <= 18
                    && scale >= -9
                    && scale % 3 == 0
                    && !shifted.ends_with("000")
                    && !shifted.starts_with('0'))
        }
        Factor::Two(exponent) => {
            let room = 14 - count(digits) - i64::from(exponent * 3 / 10);
            parts.fraction.is_empty() && room >= 0 && number(parts.whole) % 8 != 0
        }
    }
}
