//! Optional values.

use super::{Run, no_overload};
use crate::error::EvalError;
use crate::eval::Context;
use crate::value::Val;

type Answer<'a> = Result<Val<'a>, EvalError>;

pub(super) fn find(name: &str) -> Option<Run> {
    Some(match name {
        "optional.of" => |args, _| args.first().cloned().map(Val::some).ok_or_else(no_overload),
        "optional.none" => |_, _| Ok(Val::NONE),
        "optional.ofNonZeroValue" => of_non_zero,
        "optional.unwrap" | "unwrapOpt" => unwrap_all,
        "hasValue" => has_value,
        "value" => value,
        _ => return None,
    })
}

fn of_non_zero<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    let [value] = args else { return Err(no_overload()) };
    Ok(if is_zero(value) { Val::NONE } else { Val::some(value.clone()) })
}

fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null | Val::Optional(None) => true,
        Val::Bool(value) => !value,
        Val::Int(value) | Val::Duration(value) => *value == 0,
        Val::Uint(value) => *value == 0,
        Val::Double(value) => *value == 0.0,
        Val::String(text) => text.is_empty(),
        Val::Bytes(bytes) => bytes.is_empty(),
        Val::List(list) => list.is_empty(),
        Val::Map(map) => map.is_empty(),
        _ => false,
    }
}

fn unwrap_all<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    let [Val::List(list)] = args else { return Err(no_overload()) };
    let mut values = Vec::new();
    for item in list.iter() {
        match item? {
            Val::Optional(inner) => values.extend(inner.map(|inner| (*inner).clone())),
            _ => return Err(no_overload()),
        }
    }
    Ok(Val::list(values))
}

fn has_value<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::Optional(inner)] => Ok(Val::Bool(inner.is_some())),
        _ => Err(no_overload()),
    }
}

fn value<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::Optional(Some(inner))] => Ok((**inner).clone()),
        [Val::Optional(None)] => Err(EvalError::new("optional.none() dereference")),
        _ => Err(no_overload()),
    }
}
