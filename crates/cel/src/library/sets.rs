//! Lists as sets.

use super::{Run, no_overload};
use crate::error::EvalError;
use crate::eval::{Context, Work};
use crate::value::{List, Val, contains};

type Answer<'a> = Result<Val<'a>, EvalError>;

pub(super) fn find(name: &str) -> Option<Run> {
    Some(match name {
        "sets.contains" => |args, context| both(args, context, has_all),
        "sets.equivalent" => {
            |args, context| both(args, context, |a, b, work| Ok(has_all(a, b, work)? && has_all(b, a, work)?))
        }
        "sets.intersects" => |args, context| both(args, context, intersects),
        _ => return None,
    })
}

fn both<'a>(
    args: &[Val<'a>],
    context: &mut Context<'_>,
    test: fn(&List<'a>, &List<'a>, &mut Work) -> Result<bool, EvalError>,
) -> Answer<'a> {
    match args {
        [Val::List(a), Val::List(b)] => test(a, b, context.work).map(Val::Bool),
        _ => Err(no_overload()),
    }
}

fn has_all<'a>(list: &List<'a>, parts: &List<'a>, work: &mut Work) -> Result<bool, EvalError> {
    for part in parts.iter() {
        if !contains(list, &part?, work)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects<'a>(a: &List<'a>, b: &List<'a>, work: &mut Work) -> Result<bool, EvalError> {
    for item in a.iter() {
        if contains(b, &item?, work)? {
            return Ok(true);
        }
    }
    Ok(false)
}
