//! Lists.

use std::cmp::Ordering;

use super::{Run, no_overload};
use crate::error::EvalError;
use crate::eval::Context;
use crate::value::{List, Val, compare, equal};

type Answer<'a> = Result<Val<'a>, EvalError>;

pub(super) fn find(name: &str) -> Option<Run> {
    Some(match name {
        "isSorted" => is_sorted,
        "sum" => sum,
        "min" => |args, _| extreme(args, Ordering::is_lt, "min"),
        "max" => |args, _| extreme(args, Ordering::is_gt, "max"),
        "first" => |args, _| end(args, |list| list.get(0)),
        "last" => |args, _| end(args, |list| list.get(list.len().checked_sub(1)?)),
        "slice" => slice,
        "flatten" => flatten,
        "sort" => sort,
        "@sortByAssociatedKeys" => sort_by,
        "lists.range" => range,
        "reverse" => reverse,
        "distinct" => distinct,
        _ => return None,
    })
}

/// The elements of a list, each counted as a step.
fn elements<'a>(list: &List<'a>, context: &mut Context<'_>) -> Result<Vec<Val<'a>>, EvalError> {
    context.work.steps(list.len())?;
    list.iter().collect()
}

fn order(a: &Val<'_>, b: &Val<'_>) -> Result<Ordering, EvalError> {
    compare(a, b).unwrap_or_else(|| Err(no_overload()))
}

pub(super) fn index_of<'a>(list: &List<'a>, value: &Val<'a>, context: &mut Context<'_>) -> Answer<'a> {
    for (i, item) in list.iter().enumerate() {
        if equal(&item?, value, context.work)? {
            return Ok(Val::Int(i as i64));
        }
    }
    Ok(Val::Int(-1))
}

pub(super) fn last_index_of<'a>(list: &List<'a>, value: &Val<'a>, context: &mut Context<'_>) -> Answer<'a> {
    let mut found = -1;
    for (i, item) in list.iter().enumerate() {
        if equal(&item?, value, context.work)? {
            found = i as i64;
        }
    }
    Ok(Val::Int(found))
}

fn is_sorted<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    let [Val::List(list)] = args else { return Err(no_overload()) };
    let mut previous: Option<Val<'a>> = None;
    for item in list.iter() {
        let item = item?;
        if let Some(previous) = &previous
            && order(previous, &item)?.is_gt()
        {
            return Ok(Val::Bool(false));
        }
        previous = Some(item);
    }
    Ok(Val::Bool(true))
}

/// An empty list has the sum zero, of whatever type: the checker knows, so an integer stands for all.
fn sum<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    let [Val::List(list)] = args else { return Err(no_overload()) };
    let add = super::find("_+_").ok_or_else(no_overload)?;
    let mut total: Option<Val<'a>> = None;
    for item in list.iter() {
        let item = item?;
        total = Some(match total {
            None => item,
            Some(total) => add(&[total, item], context)?,
        });
    }
    Ok(total.unwrap_or(Val::Int(0)))
}

fn extreme<'a>(args: &[Val<'a>], better: fn(Ordering) -> bool, name: &str) -> Answer<'a> {
    let [Val::List(list)] = args else { return Err(no_overload()) };
    let mut best: Option<Val<'a>> = None;
    for item in list.iter() {
        let item = item?;
        best = match best {
            Some(best) if !better(order(&item, &best)?) => Some(best),
            _ => Some(item),
        };
    }
    best.ok_or_else(|| EvalError::new(format!("{name} called on empty list")))
}

fn end<'a>(args: &[Val<'a>], which: impl Fn(&List<'a>) -> Option<Answer<'a>>) -> Answer<'a> {
    let [Val::List(list)] = args else { return Err(no_overload()) };
    which(list).map_or(Ok(Val::NONE), |value| value.map(Val::some))
}

fn slice<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    let [Val::List(list), Val::Int(start), Val::Int(end)] = args else { return Err(no_overload()) };
    let error = |message: String| Err(EvalError::new(message));
    let length = list.len() as i64;
    if *start < 0 || *end < 0 {
        return error(format!("cannot slice({start}, {end}), negative indexes not supported"));
    }
    if start > end {
        return error(format!(
            "cannot slice({start}, {end}), start index must be less than or equal to end index"
        ));
    }
    if length < *end {
        return error(format!("cannot slice({start}, {end}), list is length {length}"));
    }
    let values = elements(list, context)?;
    Ok(Val::list(values[*start as usize..*end as usize].to_vec()))
}

fn flatten<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    let (list, depth) = match args {
        [Val::List(list)] => (list, 1),
        [Val::List(list), Val::Int(depth)] => (list, *depth),
        _ => return Err(no_overload()),
    };
    if depth < 0 {
        return Err(EvalError::new("level must be non-negative"));
    }
    let mut flat = Vec::new();
    flatten_into(list, depth, context, &mut flat)?;
    Ok(Val::list(flat))
}

fn flatten_into<'a>(
    list: &List<'a>,
    depth: i64,
    context: &mut Context<'_>,
    out: &mut Vec<Val<'a>>,
) -> Result<(), EvalError> {
    for item in list.iter() {
        context.work.step()?;
        match item? {
            Val::List(inner) if depth > 0 => flatten_into(&inner, depth - 1, context, out)?,
            other => out.push(other),
        }
    }
    Ok(())
}

fn sort<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    let [Val::List(list)] = args else { return Err(no_overload()) };
    let values = elements(list, context)?;
    sorted(values.iter().cloned().zip(values.iter().cloned()).collect(), context)
}

fn sort_by<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    let [Val::List(list), Val::List(keys)] = args else { return Err(no_overload()) };
    if list.len() != keys.len() {
        let message = format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} elements respectively",
            list.len(),
            keys.len()
        );
        return Err(EvalError::new(message));
    }
    let keys = elements(keys, context)?;
    let values = elements(list, context)?;
    sorted(keys.into_iter().zip(values).collect(), context)
}

/// Sorts pairs by their first part, which must all have the same type.
fn sorted<'a>(mut pairs: Vec<(Val<'a>, Val<'a>)>, context: &mut Context<'_>) -> Answer<'a> {
    if let Some((first, _)) = pairs.first() {
        let kind = first.type_name();
        if compare(first, first).is_none() {
            return Err(EvalError::new("list elements must be comparable"));
        }
        if pairs.iter().any(|(key, _)| key.type_name() != kind) {
            return Err(EvalError::new("list elements must have the same type"));
        }
    }
    let levels = usize::BITS - pairs.len().leading_zeros();
    context.work.steps(pairs.len().saturating_mul(levels as usize))?;
    pairs.sort_by(|(a, _), (b, _)| order(a, b).unwrap_or(Ordering::Equal));
    Ok(Val::list(pairs.into_iter().map(|(_, value)| value).collect()))
}

fn range<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    let [Val::Int(end)] = args else { return Err(no_overload()) };
    let length = usize::try_from(*end).unwrap_or(0);
    context.work.steps(length)?;
    Ok(Val::list((0..length as i64).map(Val::Int).collect()))
}

fn reverse<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    let [Val::List(list)] = args else { return Err(no_overload()) };
    let mut values = elements(list, context)?;
    values.reverse();
    Ok(Val::list(values))
}

fn distinct<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    let [Val::List(list)] = args else { return Err(no_overload()) };
    let mut unique: Vec<Val<'a>> = Vec::new();
    for item in list.iter() {
        let item = item?;
        if !is_among(&unique, &item, context)? {
            unique.push(item);
        }
    }
    Ok(Val::list(unique))
}

fn is_among<'a>(values: &[Val<'a>], value: &Val<'a>, context: &mut Context<'_>) -> Result<bool, EvalError> {
    for other in values {
        if equal(other, value, context.work)? {
            return Ok(true);
        }
    }
    Ok(false)
}
