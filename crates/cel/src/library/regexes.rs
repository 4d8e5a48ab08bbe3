//! Patterns.

use concord_re2::Regex;

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

/// Uses the compiled pattern: the one of the program when it is constant.
fn with<T>(context: &Context<'_>, pattern: &str, use_it: impl FnOnce(&Regex) -> T) -> Result<T, EvalError> {
    let used = match context.regex {
        Some(constant) => constant.with(use_it),
        None => concord_re2::with(pattern, use_it),
    };
    used.map_err(|error| EvalError::new(error.to_string()))
}

fn illegal(error: &EvalError) -> EvalError {
    EvalError::new(format!("Illegal regex: {error}"))
}

fn matches<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::String(text), Val::String(pattern)] => {
            with(context, pattern, |regex| regex.is_match(text)).map(Val::Bool)
        }
        _ => Err(no_overload()),
    }
}

fn find_first<'a>(args: &[Val<'a>], context: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::String(text), Val::String(pattern)] => {
            let found = with(context, pattern, |regex| regex.find(text).unwrap_or_default());
            found.map(Val::text).map_err(|error| illegal(&error))
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
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let steps = context.work.steps(text.len());
    let found = with(context, pattern, |regex| {
        steps?;
        Ok(Val::list(regex.find_iter(text).take(count).map(Val::text).collect()))
    });
    found.map_err(|error| illegal(&error))?
}
