//! Patterns.

use std::borrow::Cow;

use regex::Regex;

use super::{Run, no_overload};
use crate::error::EvalError;
use crate::eval::Context;
use crate::value::Val;

type Answer<'a> = Result<Val<'a>, EvalError>;

pub(super) fn find(name: &str) -> Option<Run> {
    Some(match name {
        "matches" => matches,
        "find" => find_first,
        "findAll" => find_all,
        _ => return None,
    })
}

/// The compiled pattern: the one of the program when it is constant.
fn compiled<'c>(context: &Context<'c>, pattern: &str) -> Result<Cow<'c, Regex>, EvalError> {
    if let Some(regex) = context.regex {
        return Ok(Cow::Borrowed(regex));
    }
    concord_re2::compile(pattern).map(Cow::Owned).map_err(|error| EvalError::new(error.to_string()))
}

fn illegal(error: &EvalError) -> EvalError {
    EvalError::new(format!("Illegal regex: {error}"))
}

fn matches<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::String(text), Val::String(pattern)] => {
            Ok(Val::Bool(compiled(context, pattern)?.is_match(text)))
        }
        _ => Err(no_overload()),
    }
}

fn find_first<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::String(text), Val::String(pattern)] => {
            let regex = compiled(context, pattern).map_err(|error| illegal(&error))?;
            Ok(Val::text(regex.find(text).map_or("", |found| found.as_str())))
        }
        _ => Err(no_overload()),
    }
}

fn find_all<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    let (text, pattern, count) = match args {
        [Val::String(text), Val::String(pattern)] => (text, pattern, -1),
        [Val::String(text), Val::String(pattern), Val::Int(count)] => (text, pattern, *count),
        _ => return Err(no_overload()),
    };
    let regex = compiled(context, pattern).map_err(|error| illegal(&error))?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    context.work.steps(text.len())?;
    let found = regex.find_iter(text).take(count).map(|found| Val::text(found.as_str()));
    Ok(Val::list(found.collect()))
}
