//! Operators on numbers, times, and what can be added.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Run, no_overload, time};
use crate::decl::ListSemantics;
use crate::error::EvalError;
use crate::eval::Context;
use crate::value::{self, List, Text, Val};

type Answer<'a> = Result<Val<'a>, EvalError>;

pub(super) fn find(name: &str) -> Option<Run> {
    Some(match name {
        "_+_" => add,
        "_-_" => subtract,
        "_*_" => multiply,
        "_/_" => divide,
        "_%_" => modulo,
        "-_" => negate,
        "!_" => not,
        "_<_" => |args, _| ordered(args, Ordering::is_lt),
        "_<=_" => |args, _| ordered(args, Ordering::is_le),
        "_>_" => |args, _| ordered(args, Ordering::is_gt),
        "_>=_" => |args, _| ordered(args, Ordering::is_ge),
        "@in" => contains,
        "size" => size,
        _ => return None,
    })
}

fn overflow(what: &str) -> EvalError {
    EvalError::new(format!("{what} overflow"))
}

fn int<'a>(value: Option<i64>) -> Answer<'a> {
    value.map(Val::Int).ok_or_else(|| overflow("integer"))
}

fn uint<'a>(value: Option<u64>) -> Answer<'a> {
    value.map(Val::Uint).ok_or_else(|| overflow("unsigned integer"))
}

fn duration<'a>(value: Option<i64>) -> Answer<'a> {
    value.map(Val::Duration).ok_or_else(|| overflow("integer"))
}

fn add<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::Int(a), Val::Int(b)] => int(a.checked_add(*b)),
        [Val::Uint(a), Val::Uint(b)] => uint(a.checked_add(*b)),
        [Val::Double(a), Val::Double(b)] => Ok(Val::Double(a + b)),
        [Val::String(a), Val::String(b)] => {
            let mut text = String::with_capacity(a.len() + b.len());
            text.push_str(a);
            text.push_str(b);
            Ok(Val::String(Text::from(text)))
        }
        [Val::Bytes(a), Val::Bytes(b)] => Ok(Val::Bytes(Arc::from([&**a, &**b].concat()))),
        [Val::List(a), Val::List(b)] => add_lists(a, b, context),
        [Val::Duration(a), Val::Duration(b)] => duration(a.checked_add(*b)),
        [Val::Timestamp(at), Val::Duration(by)] | [Val::Duration(by), Val::Timestamp(at)] => {
            time::shift(*at, i128::from(*by)).map(Val::Timestamp)
        }
        _ => Err(no_overload()),
    }
}

/// Lists of type set and map are merged, as server-side apply would.
fn add_lists<'a>(a: &List<'a>, b: &List<'a>, context: &mut Context<'_>) -> Answer<'a> {
    let semantics = a.semantics();
    let same = |x: &Val<'a>, y: &Val<'a>, context: &mut Context<'_>| match semantics {
        ListSemantics::Map(keys) => value::same_keys(x, y, keys, context.work),
        _ => value::equal(x, y, context.work),
    };
    if *semantics == ListSemantics::Atomic {
        return Ok(Val::List(a.clone().concat(b.clone())));
    }
    let mut merged: Vec<Val<'a>> = a.iter().collect::<Result<_, _>>()?;
    for item in b.iter() {
        let item = item?;
        let mut found = None;
        for (i, other) in merged.iter().enumerate() {
            if same(&item, other, context)? {
                found = Some(i);
                break;
            }
        }
        match found {
            Some(i) => merged[i] = item,
            None => merged.push(item),
        }
    }
    Ok(Val::List(List::Merged(Arc::new(merged), semantics)))
}

fn subtract<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::Int(a), Val::Int(b)] => int(a.checked_sub(*b)),
        [Val::Uint(a), Val::Uint(b)] => uint(a.checked_sub(*b)),
        [Val::Double(a), Val::Double(b)] => Ok(Val::Double(a - b)),
        [Val::Duration(a), Val::Duration(b)] => duration(a.checked_sub(*b)),
        [Val::Timestamp(at), Val::Duration(by)] => time::shift(*at, -i128::from(*by)).map(Val::Timestamp),
        [Val::Timestamp(a), Val::Timestamp(b)] => {
            let nanoseconds = a.as_nanoseconds() - b.as_nanoseconds();
            duration(i64::try_from(nanoseconds).ok())
        }
        _ => Err(no_overload()),
    }
}

fn multiply<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::Int(a), Val::Int(b)] => int(a.checked_mul(*b)),
        [Val::Uint(a), Val::Uint(b)] => uint(a.checked_mul(*b)),
        [Val::Double(a), Val::Double(b)] => Ok(Val::Double(a * b)),
        _ => Err(no_overload()),
    }
}

fn divide<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::Int(_), Val::Int(0)] | [Val::Uint(_), Val::Uint(0)] => Err(EvalError::new("division by zero")),
        [Val::Int(a), Val::Int(b)] => int(a.checked_div(*b)),
        [Val::Uint(a), Val::Uint(b)] => uint(a.checked_div(*b)),
        [Val::Double(a), Val::Double(b)] => Ok(Val::Double(a / b)),
        _ => Err(no_overload()),
    }
}

fn modulo<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::Int(_), Val::Int(0)] | [Val::Uint(_), Val::Uint(0)] => Err(EvalError::new("modulus by zero")),
        [Val::Int(a), Val::Int(b)] => int(a.checked_rem(*b)),
        [Val::Uint(a), Val::Uint(b)] => uint(a.checked_rem(*b)),
        _ => Err(no_overload()),
    }
}

fn negate<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::Int(value)] => int(value.checked_neg()),
        [Val::Double(value)] => Ok(Val::Double(-value)),
        [Val::Duration(value)] => duration(value.checked_neg()),
        _ => Err(no_overload()),
    }
}

fn not<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::Bool(value)] => Ok(Val::Bool(!value)),
        _ => Err(no_overload()),
    }
}

fn ordered<'a>(args: &[Val<'a>], holds: fn(Ordering) -> bool) -> Answer<'a> {
    match args {
        [a, b] => match value::compare(a, b) {
            Some(order) => Ok(Val::Bool(holds(order?))),
            None => Err(no_overload()),
        },
        _ => Err(no_overload()),
    }
}

fn contains<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    match args {
        [value, Val::List(list)] => value::contains(list, value, context.work).map(Val::Bool),
        [key, Val::Map(map)] => Ok(Val::Bool(map.get(key).is_some())),
        _ => Err(no_overload()),
    }
}

fn size<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [value] => match value.size() {
            Some(size) => Ok(Val::Int(i64::try_from(size).unwrap_or(i64::MAX))),
            None => Err(no_overload()),
        },
        _ => Err(no_overload()),
    }
}
