//! The order in which Go's yaml v2 writes keys: letters after everything else, numbers by value.

/// Whether one key comes before another.
pub(super) fn less(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some(at) = a.iter().zip(&b).position(|(a, b)| a != b) else {
        return a.len() < b.len();
    };
    let (one, other) = (a[at], b[at]);
    match (one.is_alphabetic(), other.is_alphabetic()) {
        (true, true) => return one < other,
        (true, false) => return false,
        (false, true) => return true,
        (false, false) => {}
    }
    // A zero inside a longer number counts as a digit of it and not as a leading zero.
    let inside = (one == '0' || other == '0')
        && a[..at].iter().rev().take_while(|c| c.is_ascii_digit()).any(|c| *c != '0');
    let (one_value, one_end) = number(&a, at, i64::from(inside));
    let (other_value, other_end) = number(&b, at, i64::from(inside));
    (one_value, one_end, one) < (other_value, other_end, other)
}

fn number(text: &[char], start: usize, before: i64) -> (i64, usize) {
    let digits = text[start..].iter().map_while(|c| c.to_digit(10));
    let (value, count) = digits.fold((before, 0), |(value, count), digit| {
        (value.saturating_mul(10).saturating_add(i64::from(digit)), count + 1)
    });
    (value, start + count)
}

/// Sorts by [`less`], which is not promised to be a total order, as the standard library's sort wants.
pub(super) fn sort<T>(mut items: Vec<(&String, T)>) -> Vec<(&String, T)> {
    if items.len() < 2 {
        return items;
    }
    let mut right = sort(items.split_off(items.len() / 2)).into_iter().peekable();
    let mut left = sort(items).into_iter().peekable();
    let mut sorted = Vec::with_capacity(left.len() + right.len());
    while let (Some((a, _)), Some((b, _))) = (left.peek(), right.peek()) {
        let next = if less(b, a) { right.next() } else { left.next() };
        sorted.extend(next);
    }
    sorted.extend(left);
    sorted.extend(right);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_yaml_v2s_order() {
        let expected = ["_a", "1", "2", "10", "A", "a", "a_b", "a1", "a01", "a2", "a10", "ab", "b", "é"];
        let mut keys: Vec<String> = expected.iter().map(|key| (*key).to_owned()).collect();
        keys.sort();
        let sorted = sort(keys.iter().map(|key| (key, ())).collect());
        let sorted: Vec<&str> = sorted.iter().map(|(key, ())| key.as_str()).collect();
        assert_eq!(sorted, expected);
    }

    #[test]
    fn huge_numbers_do_not_overflow() {
        assert!(less("1", "99999999999999999999999"));
        assert!(!less("99999999999999999999999", "1"));
    }
}
