//! Numbers with a check digit.

use std::sync::LazyLock;

use regex::Regex;

static CARD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let visa = "4[0-9]{12}(?:[0-9]{3})?";
    let master = "5[1-5][0-9]{14}";
    let discover = "6(?:011|5[0-9][0-9])[0-9]{12}";
    let express = "3[47][0-9]{13}";
    let diners = "3(?:0[0-5]|[68][0-9])[0-9]{11}";
    let jcb = "(?:2131|1800|35[0-9]{3})[0-9]{11}";
    Regex::new(&format!("^(?:{visa}|{master}|{discover}|{express}|{diners}|{jcb})$")).ok()
});

/// A card number with anything between the digits.
pub(super) fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !CARD.as_ref().is_some_and(|card| card.is_match(&digits)) {
        return false;
    }
    let weighted = digits.bytes().rev().enumerate().map(|(at, digit)| {
        let digit = u32::from(digit - b'0');
        match (at % 2, digit * 2) {
            (0, _) => digit,
            (_, double) if double >= 10 => double % 10 + 1,
            (_, double) => double,
        }
    });
    weighted.sum::<u32>().is_multiple_of(10)
}

fn without_spaces_and_dashes(text: &str) -> Vec<u8> {
    text.bytes().filter(|b| !b"\t\n\x0c\r -".contains(b)).collect()
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let text = without_spaces_and_dashes(text);
    let Some((last, digits)) = text.split_last().filter(|(_, digits)| digits.len() == 9) else {
        return false;
    };
    if !digits.iter().all(u8::is_ascii_digit) || !(last.is_ascii_digit() || *last == b'X') {
        return false;
    }
    let last = if *last == b'X' { 10 } else { u32::from(last - b'0') };
    let sum: u32 = (1..).zip(digits).map(|(weight, digit)| weight * u32::from(digit - b'0')).sum();
    (sum + 10 * last).is_multiple_of(11)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let text = without_spaces_and_dashes(text);
    if text.len() != 13 || !text.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weighted = text[..12].iter().zip([1, 3].into_iter().cycle());
    let sum: u32 = weighted.map(|(digit, weight)| weight * u32::from(digit - b'0')).sum();
    u32::from(text[12] - b'0') == (10 - sum % 10) % 10
}
