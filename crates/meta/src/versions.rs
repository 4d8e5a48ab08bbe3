//! The order of versions of a group.

use std::cmp::Ordering;

/// The parts of a version that count: its stage (0 is alpha, 2 is stable), its number, and the number of its stage.
fn parts(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(end);
    let number = |digits: &str| match digits.as_bytes() {
        [b'1'..=b'9', ..] => digits.parse().ok(),
        _ => None,
    };
    let major = number(major)?;
    if rest.is_empty() {
        return Some((2, major, 0));
    }
    let (stage, rest) = match rest.strip_prefix("beta") {
        Some(rest) => (1, rest),
        None => (0, rest.strip_prefix("alpha")?),
    };
    Some((stage, major, number(rest)?))
}

/// How upstream orders versions: stable ones are the greatest, then beta, alpha, and names that are none of these, of
/// which the first in the alphabet is the greatest.
#[must_use]
pub fn compare(one: &str, other: &str) -> Ordering {
    match (parts(one), parts(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => other.cmp(one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_upstream_does() {
        let expected = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10",
            "v0",
        ];
        let mut versions = expected;
        versions.sort_unstable();
        versions.sort_by(|one, other| compare(other, one));
        assert_eq!(versions, expected);
    }
}
