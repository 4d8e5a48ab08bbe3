//! JSON paths of printer columns and selectable fields, as kubectl's library reads them.
//!
//! Fields, `[0]`, `[1:3]`, `[*]`, `.*`, `..`, `['key']`, unions and filters such as `[?(@.type=="Ready")]`. Templates
//! of text and `range` are for kubectl's own output and are refused.

mod parse;

use std::cmp::Ordering;

use serde_json::Value;

use crate::{Object, resource::go_print};

/// How many values a path may find in an object.
const MAX_FOUND: usize = 10_000;

/// A path that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath(Vec<Step>);

/// A path that cannot be read, or not be followed in an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonPathError {
    /// The path is no path.
    #[error("{0}")]
    Syntax(String),
    /// What is indexed or filtered is no list.
    #[error("{0} is not array or slice")]
    NotAList(String),
    /// An index is beyond the end of a list.
    #[error("array index out of bounds: index {index}, length {length}")]
    OutOfBounds {
        /// The index.
        index: i64,
        /// The length of the list.
        length: i64,
    },
    /// Something cannot be compared.
    #[error("{0}")]
    Comparison(&'static str),
    /// The path finds more than anybody asks for.
    #[error("too many results")]
    TooMany,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Wildcard,
    Recursive,
    Slice(Slice),
    Union(Vec<Vec<Step>>),
    Filter { left: Vec<Step>, comparison: Option<(Operator, Vec<Step>)> },
    Literal(Value),
}

/// `[from:to:step]`; without a colon `to` follows from `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slice {
    from: Option<i64>,
    to: To,
    step: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    /// The end of the list.
    End,
    Given(i64),
    /// One item was asked for.
    Next,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Less,
    Greater,
    Equal,
    NotEqual,
    LessOrEqual,
    GreaterOrEqual,
}

type Found<'a> = Vec<&'a Value>;

impl JsonPath {
    /// Reads a path such as `.spec.replicas`.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in the library's words.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        parse::parse(text).map(Self)
    }

    /// What the path leads to in an object: nothing when a field on the way is missing.
    ///
    /// # Errors
    ///
    /// When the path and the object do not go together.
    pub fn find<'a>(&'a self, object: &'a Object) -> Result<Found<'a>, JsonPathError> {
        match self.0.split_first() {
            Some((Step::Field(name), rest)) => follow(rest, object.get(name).into_iter().collect()),
            Some((Step::Wildcard, rest)) => follow(rest, object.values().collect()),
            _ => Err(JsonPathError::Syntax("the path must begin with a field".to_owned())),
        }
    }

    /// The first value the path leads to: what a column shows and a selector compares.
    #[must_use]
    pub fn first<'a>(&'a self, object: &'a Object) -> Option<&'a Value> {
        self.find(object).ok()?.first().copied()
    }
}

/// A value as a column of type string shows it: texts as they are, lists and objects as JSON, and null as Go's templates
/// show what is not there.
#[must_use]
pub fn print(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::Array(_) | Value::Object(_) => concord_meta::go::json(value),
        scalar => go_print(scalar),
    }
}

fn follow<'a>(steps: &'a [Step], mut found: Found<'a>) -> Result<Found<'a>, JsonPathError> {
    for step in steps {
        found = take(step, found)?;
        if found.len() > MAX_FOUND {
            return Err(JsonPathError::TooMany);
        }
    }
    Ok(found)
}

fn take<'a>(step: &'a Step, found: Found<'a>) -> Result<Found<'a>, JsonPathError> {
    Ok(match step {
        Step::Field(name) => found.into_iter().filter_map(|value| value.as_object()?.get(name)).collect(),
        Step::Wildcard => found.into_iter().flat_map(children).collect(),
        Step::Recursive => {
            let mut all = Vec::new();
            found.into_iter().for_each(|value| descend(value, &mut all));
            all
        }
        Step::Literal(literal) => found.iter().map(|_| literal).collect(),
        Step::Slice(slice) => {
            let mut items = Vec::new();
            for value in found.into_iter().filter(|value| !value.is_null()) {
                items.extend(slice.of(list(value)?)?);
            }
            items
        }
        Step::Union(paths) => {
            let mut all = Vec::new();
            for path in paths {
                all.extend(follow(path, found.clone())?);
            }
            all
        }
        Step::Filter { left, comparison } => {
            let mut kept = Vec::new();
            for value in found {
                for item in list(value)? {
                    if passes(item, left, comparison.as_ref())? {
                        kept.push(item);
                    }
                }
            }
            kept
        }
    })
}

fn list(value: &Value) -> Result<&[Value], JsonPathError> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| JsonPathError::NotAList(go_print(value)))
}

fn children(value: &Value) -> Found<'_> {
    match value {
        Value::Object(members) => members.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    }
}

/// A value and everything in it that has something in it.
fn descend<'a>(value: &'a Value, all: &mut Found<'a>) {
    let children = children(value);
    if !children.is_empty() {
        all.push(value);
        children.into_iter().for_each(|child| descend(child, all));
    }
}

impl Slice {
    fn of(self, items: &[Value]) -> Result<impl Iterator<Item = &Value>, JsonPathError> {
        let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let out = |index: i64| JsonPathError::OutOfBounds { index, length };
        let given = self.from.unwrap_or(0);
        let from = if given < 0 { given + length } else { given };
        let to = match self.to {
            To::End => length,
            To::Next if given == -1 => length,
            To::Next => from + 1,
            To::Given(to) if to < 0 => to + length,
            To::Given(to) => to,
        };
        let step = self.step.unwrap_or(1);
        if from != to {
            if from >= length || from < 0 {
                return Err(out(from));
            }
            if to > length || to < 0 || from > to {
                return Err(out(to - 1));
            }
        }
        let step = usize::try_from(step).ok().filter(|step| *step > 0);
        let step = step.ok_or(JsonPathError::Comparison("step must be > 0"))?;
        let range = usize::try_from(from).ok().zip(usize::try_from(to).ok());
        let items = range.and_then(|(from, to)| items.get(from..to)).unwrap_or(&[]);
        Ok(items.iter().step_by(step))
    }
}

fn passes<'a>(
    item: &'a Value,
    left: &'a [Step],
    comparison: Option<&'a (Operator, Vec<Step>)>,
) -> Result<bool, JsonPathError> {
    let lefts = follow(left, vec![item]);
    let Some((operator, right)) = comparison else { return Ok(lefts.is_ok_and(|found| !found.is_empty())) };
    let (lefts, rights) = (lefts?, follow(right, vec![item])?);
    if lefts.len() > 1 || rights.len() > 1 {
        return Err(JsonPathError::Comparison("can only compare one element at a time"));
    }
    match (lefts.first(), rights.first()) {
        (Some(left), Some(right)) => compare(*operator, left, right),
        _ => Ok(false),
    }
}

fn compare(operator: Operator, left: &Value, right: &Value) -> Result<bool, JsonPathError> {
    let order = order(left, right)?;
    Ok(match operator {
        Operator::Equal => order.is_eq(),
        Operator::NotEqual => order.is_ne(),
        _ if left.is_boolean() => return Err(JsonPathError::Comparison("invalid type for comparison")),
        Operator::Less => order.is_lt(),
        Operator::Greater => order.is_gt(),
        Operator::LessOrEqual => order.is_le(),
        Operator::GreaterOrEqual => order.is_ge(),
    })
}

/// Go compares only what has the same type.
fn order(left: &Value, right: &Value) -> Result<Ordering, JsonPathError> {
    let order = match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            (None, None) => left.as_f64().partial_cmp(&right.as_f64()),
            _ => None,
        },
        _ => None,
    };
    order.ok_or(JsonPathError::Comparison("incompatible types for comparison"))
}

#[cfg(test)]
mod tests;
