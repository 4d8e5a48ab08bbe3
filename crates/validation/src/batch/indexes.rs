//! Lists of indexes such as `1,3-5`.

use concord_meta::go;

fn index(text: &str, completions: i64) -> Result<i64, String> {
    let number = go::parse_int(text)
        .map_err(|_| format!("cannot convert string to integer for index: {}", go::quote(text)))?;
    if number >= completions { Err(format!("too large index: {}", go::quote(text))) } else { Ok(number) }
}

fn interval(text: &str, completions: i64) -> Result<(i64, i64), String> {
    let limits: Vec<&str> = text.split('-').collect();
    match limits.as_slice() {
        [one] => index(one, completions).map(|one| (one, one)),
        [low, high] => {
            let (low, high) = (index(low, completions)?, index(high, completions)?);
            if low >= high {
                return Err(format!("non-increasing order, previous: {low}, current: {high}"));
            }
            Ok((low, high))
        }
        _ => Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
            go::quote(text)
        )),
    }
}

/// How many indexes a list names, or what is wrong with it.
pub(super) fn count(text: &str, completions: i64) -> Result<i64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let (mut last, mut total) = (None, 0);
    for part in text.split(',') {
        let (low, high) = interval(part, completions)?;
        if let Some(last) = last
            && last >= low
        {
            return Err(format!("non-increasing order, previous: {last}, current: {low}"));
        }
        total += high - low + 1;
        last = Some(high);
    }
    Ok(total)
}

/// The first index that two lists share.
pub(super) fn overlap(a: &str, b: &str, completions: i64) -> Option<i64> {
    let read = |text: &str| -> Vec<(i64, i64)> {
        text.split(',').filter_map(|part| interval(part, completions).ok()).collect()
    };
    let (a, b) = (read(a), read(b));
    let (mut i, mut j) = (0, 0);
    while let (Some((a_low, a_high)), Some((b_low, b_high))) = (a.get(i), b.get(j)) {
        if a_low <= b_high && b_low <= a_high {
            return Some(*a_low.max(b_low));
        }
        if a_low <= b_low { i += 1 } else { j += 1 }
    }
    None
}
