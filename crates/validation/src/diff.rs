//! The difference of two texts as a unified diff with three lines of context.
//!
//! Messages about forbidden updates end in one, so this follows the algorithm behind them: the longest run of equal
//! lines first, then what is before and after it, where lines that are very frequent do not start a run. Other
//! algorithms give other, equally right diffs.

use std::collections::HashMap;

const CONTEXT: usize = 3;
/// From this many lines on, frequent lines do not count.
const POPULAR_FROM: usize = 200;
/// The work grows with the square of the lines. Nobody reads a diff of more than this, and nobody pays for one.
const MAX_LINES: usize = 10_000;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Match {
    a: usize,
    b: usize,
    size: usize,
}

#[derive(Clone, Copy)]
struct Range {
    a: (usize, usize),
    b: (usize, usize),
    equal: bool,
}

/// The diff of two texts; empty if they are equal or too long to compare.
pub(crate) fn unified(a: &str, b: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (a.split('\n').collect(), b.split('\n').collect());
    if a.len().max(b.len()) > MAX_LINES {
        return String::new();
    }
    let mut out = String::new();
    for group in groups(ranges(&matches(&a, &b))) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let from = shown(first.a.0, last.a.1);
        let to = shown(first.b.0, last.b.1);
        out.push_str(&format!("@@ -{from} +{to} @@\n"));
        for range in &group {
            let mut lines = |sign: char, lines: &[&str]| {
                for line in lines {
                    out.push(sign);
                    out.push_str(line);
                    out.push('\n');
                }
            };
            if range.equal {
                lines(' ', &a[range.a.0..range.a.1]);
            } else {
                lines('-', &a[range.a.0..range.a.1]);
                lines('+', &b[range.b.0..range.b.1]);
            }
        }
    }
    out
}

fn shown(start: usize, stop: usize) -> String {
    match stop - start {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        length => format!("{},{length}", start + 1),
    }
}

/// Where each line of `b` stands, without the frequent ones.
fn places<'t>(b: &[&'t str]) -> HashMap<&'t str, Vec<usize>> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, line) in b.iter().enumerate() {
        places.entry(line).or_default().push(at);
    }
    if b.len() >= POPULAR_FROM {
        let most = b.len() / 100 + 1;
        places.retain(|_, at| at.len() <= most);
    }
    places
}

/// The runs of equal lines, in order, adjacent ones joined, and an empty one at the end.
fn matches(a: &[&str], b: &[&str]) -> Vec<Match> {
    let places = places(b);
    let mut found = Vec::new();
    let mut open = vec![((0, a.len()), (0, b.len()))];
    while let Some(((a_low, a_high), (b_low, b_high))) = open.pop() {
        let best = longest(a, b, &places, (a_low, a_high), (b_low, b_high));
        if best.size == 0 {
            continue;
        }
        found.push(best);
        if a_low < best.a && b_low < best.b {
            open.push(((a_low, best.a), (b_low, best.b)));
        }
        let (a_end, b_end) = (best.a + best.size, best.b + best.size);
        if a_end < a_high && b_end < b_high {
            open.push(((a_end, a_high), (b_end, b_high)));
        }
    }
    found.sort_unstable_by_key(|found| (found.a, found.b));
    let mut joined: Vec<Match> = Vec::new();
    for next in found {
        match joined.last_mut() {
            Some(last) if last.a + last.size == next.a && last.b + last.size == next.b => {
                last.size += next.size
            }
            _ => joined.push(next),
        }
    }
    joined.push(Match { a: a.len(), b: b.len(), size: 0 });
    joined
}

fn longest(
    a: &[&str],
    b: &[&str],
    places: &HashMap<&str, Vec<usize>>,
    (a_low, a_high): (usize, usize),
    (b_low, b_high): (usize, usize),
) -> Match {
    let mut best = Match { a: a_low, b: b_low, size: 0 };
    let mut runs: HashMap<usize, usize> = HashMap::new();
    for (i, line) in a.iter().enumerate().take(a_high).skip(a_low) {
        let mut next = HashMap::new();
        for &j in places.get(line).into_iter().flatten().filter(|j| (b_low..b_high).contains(*j)) {
            let run = j.checked_sub(1).and_then(|before| runs.get(&before)).copied().unwrap_or_default() + 1;
            next.insert(j, run);
            if run > best.size {
                best = Match { a: i + 1 - run, b: j + 1 - run, size: run };
            }
        }
        runs = next;
    }
    while best.a > a_low && best.b > b_low && a[best.a - 1] == b[best.b - 1] {
        best = Match { a: best.a - 1, b: best.b - 1, size: best.size + 1 };
    }
    while best.a + best.size < a_high
        && best.b + best.size < b_high
        && a[best.a + best.size] == b[best.b + best.size]
    {
        best.size += 1;
    }
    best
}

fn ranges(matches: &[Match]) -> Vec<Range> {
    let (mut i, mut j) = (0, 0);
    let mut ranges = Vec::new();
    for found in matches {
        if i < found.a || j < found.b {
            ranges.push(Range { a: (i, found.a), b: (j, found.b), equal: false });
        }
        (i, j) = (found.a + found.size, found.b + found.size);
        if found.size > 0 {
            ranges.push(Range { a: (found.a, i), b: (found.b, j), equal: true });
        }
    }
    ranges
}

/// Changes with their context; those far apart are apart.
fn groups(mut ranges: Vec<Range>) -> Vec<Vec<Range>> {
    let cut_front = |range: &mut Range| {
        range.a.0 = range.a.0.max(range.a.1.saturating_sub(CONTEXT));
        range.b.0 = range.b.0.max(range.b.1.saturating_sub(CONTEXT));
    };
    let cut_back = |range: &mut Range| {
        range.a.1 = range.a.1.min(range.a.0 + CONTEXT);
        range.b.1 = range.b.1.min(range.b.0 + CONTEXT);
    };
    if let Some(first) = ranges.first_mut().filter(|range| range.equal) {
        cut_front(first);
    }
    if let Some(last) = ranges.last_mut().filter(|range| range.equal) {
        cut_back(last);
    }
    let (mut groups, mut group) = (Vec::new(), Vec::new());
    for mut range in ranges {
        if range.equal && range.a.1 - range.a.0 > 2 * CONTEXT {
            let mut end = range;
            cut_back(&mut end);
            group.push(end);
            groups.push(std::mem::take(&mut group));
            cut_front(&mut range);
        }
        group.push(range);
    }
    if group.iter().any(|range| !range.equal) {
        groups.push(group);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_stand_in_their_context() {
        let a = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16";
        let b = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n15a\n16";
        let expected = "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n@@ -13,4 +13,5 @@\n 13\n 14\n 15\n+15a\n 16\n";
        assert_eq!(unified(a, b), expected);
        assert_eq!(unified(a, a), "");
        assert_eq!(unified("a", "b"), "@@ -1 +1 @@\n-a\n+b\n");
    }

    #[test]
    fn what_is_too_long_is_not_compared() {
        let long = "x\n".repeat(MAX_LINES + 1);
        assert_eq!(unified(&long, "y"), "");
    }
}
