//! Strings.

use super::{Run, format_string, lists, no_overload};
use crate::error::EvalError;
use crate::eval::Context;
use crate::value::{Text, Val};

type Answer<'a> = Result<Val<'a>, EvalError>;

pub(super) fn find(name: &str) -> Option<Run> {
    Some(match name {
        "contains" => |args, _| test(args, |text, part| text.contains(part)),
        "startsWith" => |args, _| test(args, |text, part| text.starts_with(part)),
        "endsWith" => |args, _| test(args, |text, part| text.ends_with(part)),
        "charAt" => char_at,
        "indexOf" => index_of,
        "lastIndexOf" => last_index_of,
        "jsonpatch.escapeKey" => |args, _| change(args, |key| key.replace('~', "~0").replace('/', "~1")),
        "lowerAscii" => |args, _| change(args, |text| text.to_ascii_lowercase()),
        "upperAscii" => |args, _| change(args, |text| text.to_ascii_uppercase()),
        "trim" => |args, _| change(args, |text| text.trim().to_owned()),
        "replace" => replace,
        "split" => split,
        "substring" => substring,
        "join" => join,
        "format" => format_string::format,
        "strings.quote" => |args, _| change(args, format_string::quote),
        _ => return None,
    })
}

fn string<'a>(text: String) -> Answer<'a> {
    Ok(Val::String(Text::from(text)))
}

fn out_of_range<T>(index: i64) -> Result<T, EvalError> {
    Err(EvalError::new(format!("index out of range: {index}")))
}

fn test<'a>(args: &[Val<'a>], holds: fn(&str, &str) -> bool) -> Answer<'a> {
    match args {
        [Val::String(text), Val::String(part)] => Ok(Val::Bool(holds(text, part))),
        _ => Err(no_overload()),
    }
}

fn change<'a>(args: &[Val<'a>], with: impl Fn(&str) -> String) -> Answer<'a> {
    match args {
        [Val::String(text)] => string(with(text)),
        _ => Err(no_overload()),
    }
}

/// The byte offset of a character; the end counts as one.
fn offset(text: &str, index: i64) -> Result<usize, EvalError> {
    let Ok(wanted) = usize::try_from(index) else { return out_of_range(index) };
    let mut positions = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    positions.nth(wanted).map_or_else(|| out_of_range(index), Ok)
}

fn char_at<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::String(text), Val::Int(index)] => {
            let at = offset(text, *index)?;
            string(text[at..].chars().take(1).collect())
        }
        _ => Err(no_overload()),
    }
}

fn index_of<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    let (text, part, from) = match args {
        [Val::List(list), value] => return lists::index_of(list, value, context),
        [Val::String(text), Val::String(part)] => (text, part, 0),
        [Val::String(text), Val::String(part), Val::Int(from)] => (text, part, *from),
        _ => return Err(no_overload()),
    };
    if part.is_empty() {
        return Ok(Val::Int(from));
    }
    if from < 0 {
        return out_of_range(from);
    }
    let Ok(start) = offset(text, from) else { return Ok(Val::Int(-1)) };
    let found = text[start..].find(&**part).map(|at| from + text[start..start + at].chars().count() as i64);
    Ok(Val::Int(found.unwrap_or(-1)))
}

fn last_index_of<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    let (text, part, last) = match args {
        [Val::List(list), value] => return lists::last_index_of(list, value, context),
        [Val::String(text), Val::String(part)] => (text, part, None),
        [Val::String(text), Val::String(part), Val::Int(last)] => (text, part, Some(*last)),
        _ => return Err(no_overload()),
    };
    let length = text.chars().count() as i64;
    if part.is_empty() {
        return Ok(Val::Int(last.unwrap_or(length)));
    }
    let last = match last {
        None if text.len() < part.len() => return Ok(Val::Int(-1)),
        None => length - 1,
        Some(last) if last < 0 => return out_of_range(last),
        Some(last) if last >= length => return Ok(Val::Int(-1)),
        Some(last) => last,
    };
    let end = offset(text, last)?.saturating_add(part.len()).min(text.len());
    // The end may be inside of a character, where no part can end.
    let end = (end..=text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
    let found =
        text[..end].rfind(&**part).map(|at| text[..at].chars().count() as i64).filter(|at| *at <= last);
    Ok(Val::Int(found.unwrap_or(-1)))
}

fn replace<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    let (text, from, to, count) = match args {
        [Val::String(text), Val::String(from), Val::String(to)] => (text, from, to, -1),
        [Val::String(text), Val::String(from), Val::String(to), Val::Int(count)] => (text, from, to, *count),
        _ => return Err(no_overload()),
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let matches = text.matches(&**from).take(count).count();
    // The cost does not know the length of the result.
    context.work.steps(text.len().saturating_add(matches.saturating_mul(to.len())))?;
    string(text.replacen(&**from, to, count))
}

fn split<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    let (text, separator, count) = match args {
        [Val::String(text), Val::String(separator)] => (text, separator, -1),
        [Val::String(text), Val::String(separator), Val::Int(count)] => (text, separator, *count),
        _ => return Err(no_overload()),
    };
    context.work.steps(text.len())?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let part = |text: &str| Val::text(text);
    if count == 0 {
        return Ok(Val::list(Vec::new()));
    }
    let parts = if separator.is_empty() {
        characters(text, count)
    } else {
        text.splitn(count, &**separator).collect()
    };
    Ok(Val::list(parts.into_iter().map(part).collect()))
}

/// Every character for itself; the last part has what is left.
fn characters(text: &str, count: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if parts.len() + 1 == count {
            parts.push(rest);
            return parts;
        }
        let (first, after) = rest.split_at(c.len_utf8());
        parts.push(first);
        rest = after;
    }
    parts
}

fn substring<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::String(text), Val::Int(start)] => string(text[offset(text, *start)?..].to_owned()),
        [Val::String(_), Val::Int(start), Val::Int(end)] if start > end => {
            Err(EvalError::new(format!("invalid substring range. start: {start}, end: {end}")))
        }
        [Val::String(text), Val::Int(start), Val::Int(end)] => {
            let (start, end) = (offset(text, *start)?, offset(text, *end)?);
            string(text[start..end].to_owned())
        }
        _ => Err(no_overload()),
    }
}

fn join<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    let (list, separator) = match args {
        [Val::List(list)] => (list, ""),
        [Val::List(list), Val::String(separator)] => (list, &**separator),
        _ => return Err(no_overload()),
    };
    let mut joined = String::new();
    for (i, item) in list.iter().enumerate() {
        let item = item?;
        let Some(text) = item.as_str() else {
            let shown = format_string::show(&item).unwrap_or_else(|| item.type_name());
            return Err(EvalError::new(format!("join: invalid input: {shown}")));
        };
        context.work.steps(text.len() + separator.len())?;
        if i > 0 {
            joined.push_str(separator);
        }
        joined.push_str(text);
    }
    string(joined)
}
