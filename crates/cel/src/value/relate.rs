//! Equality and order.

use std::cmp::Ordering;

use serde_json::Value;

use super::{List, MapValue, Val};
use crate::decl::ListSemantics;
use crate::error::EvalError;
use crate::escape::escape;
use crate::eval::Work;

/// Whether two values are equal. Values of different kinds are not, except numbers.
pub(crate) fn equal<'a>(a: &Val<'a>, b: &Val<'a>, work: &mut Work) -> Result<bool, EvalError> {
    work.step()?;
    Ok(match (a, b) {
        (Val::Null, Val::Null) | (Val::Optional(None), Val::Optional(None)) => true,
        (Val::Bool(a), Val::Bool(b)) => a == b,
        (Val::String(a), Val::String(b)) => **a == **b,
        (Val::Bytes(a), Val::Bytes(b)) => a == b,
        (Val::Timestamp(a), Val::Timestamp(b)) => a == b,
        (Val::Duration(a), Val::Duration(b)) => a == b,
        (Val::List(a), Val::List(b)) => return equal_lists(a, b, work),
        (Val::Map(a), Val::Map(b)) => return equal_maps(a, b, work),
        (Val::Type(a), Val::Type(b)) => same_type(a, b),
        (Val::Optional(Some(a)), Val::Optional(Some(b))) => return equal(a, b, work),
        (Val::Quantity(a), Val::Quantity(b)) => a.compare(b) == Ordering::Equal,
        (Val::Url(a), Val::Url(b)) => a == b,
        (Val::Ip(a), Val::Ip(b)) => a == b,
        (Val::Cidr(a), Val::Cidr(b)) => a == b,
        (Val::Format(a), Val::Format(b)) => a.name == b.name,
        (Val::Semver(a), Val::Semver(b)) => a.compare(b) == Ordering::Equal,
        (Val::Authorizer(a), Val::Authorizer(b)) => a.same(b),
        (Val::Message(a), Val::Message(b)) => return a.equals(b, work),
        _ => compare_numbers(a, b) == Some(Some(Ordering::Equal)),
    })
}

/// Types are compared by name; what is inside of lists and maps does not count.
fn same_type(a: &crate::types::Type, b: &crate::types::Type) -> bool {
    use crate::types::Type;
    match (a, b) {
        (Type::List(_), Type::List(_)) | (Type::Map(..), Type::Map(..)) | (Type::Type(_), Type::Type(_)) => {
            true
        }
        (Type::Opaque(a, _), Type::Opaque(b, _)) => a == b,
        _ => a == b,
    }
}

fn equal_lists<'a>(a: &List<'a>, b: &List<'a>, work: &mut Work) -> Result<bool, EvalError> {
    if a.len() != b.len() {
        return Ok(false);
    }
    match a.semantics() {
        ListSemantics::Set => equal_sets(a, b, work),
        ListSemantics::Map(keys) => equal_by_keys(a, b, keys, work),
        ListSemantics::Atomic => {
            for (a, b) in a.iter().zip(b.iter()) {
                if !equal(&a?, &b?, work)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

fn equal_sets<'a>(a: &List<'a>, b: &List<'a>, work: &mut Work) -> Result<bool, EvalError> {
    for item in a.iter() {
        if !contains(b, &item?, work)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a list has an element equal to a value.
pub(crate) fn contains<'a>(list: &List<'a>, value: &Val<'a>, work: &mut Work) -> Result<bool, EvalError> {
    for item in list.iter() {
        if equal(value, &item?, work)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn equal_by_keys<'a>(
    a: &List<'a>,
    b: &List<'a>,
    keys: &[String],
    work: &mut Work,
) -> Result<bool, EvalError> {
    for item in a.iter() {
        let item = item?;
        let mut found = false;
        for other in b.iter() {
            let other = other?;
            if same_keys(&item, &other, keys, work)? {
                found = equal(&item, &other, work)?;
                break;
            }
        }
        if !found {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether two elements of a list of type map are the same entry.
pub(crate) fn same_keys<'a>(
    a: &Val<'a>,
    b: &Val<'a>,
    keys: &[String],
    work: &mut Work,
) -> Result<bool, EvalError> {
    let (Val::Map(a), Val::Map(b)) = (a, b) else { return Ok(false) };
    for key in keys {
        let name = crate::escape(key).unwrap_or_else(|| key.clone());
        let same = match (a.field(&name), b.field(&name)) {
            (Some(a), Some(b)) => equal(&a?, &b?, work)?,
            (None, None) => true,
            _ => false,
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_maps<'a>(a: &MapValue<'a>, b: &MapValue<'a>, work: &mut Work) -> Result<bool, EvalError> {
    if a.len() != b.len() {
        return Ok(false);
    }
    if let (MapValue::Object(members, object), MapValue::Object(others, _)) = (a, b) {
        for (name, value) in *members {
            let field = escape(name).filter(|field| object.fields.contains_key(field));
            let is_equal = match field {
                Some(field) => equal_fields(a.field(&field), b.field(&field), work)?,
                // What is not declared only has to be equal where both have it, as upstream has it.
                None => others.get(name).map_or(Ok(true), |other| equal_json(value, other, work))?,
            };
            if !is_equal {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    for key in a.keys() {
        let (Some(a), Some(b)) = (a.get(&key), b.get(&key)) else { return Ok(false) };
        if !equal(&a?, &b?, work)? {
            return Ok(false);
        }
    }
    Ok(true)
}

type Field<'a> = Option<Result<Val<'a>, EvalError>>;

/// A field is equal to another if neither is there.
fn equal_fields<'a>(a: Field<'a>, b: Field<'a>, work: &mut Work) -> Result<bool, EvalError> {
    match (a, b) {
        (None, None) => Ok(true),
        (Some(a), Some(b)) => equal(&a?, &b?, work),
        _ => Ok(false),
    }
}

/// Whether two parts of objects are the same, whatever they are.
fn equal_json(a: &Value, b: &Value, work: &mut Work) -> Result<bool, EvalError> {
    work.step()?;
    match (a, b) {
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (a, b) in a.iter().zip(b) {
                if !equal_json(a, b, work)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
            for (name, a) in a {
                let Some(b) = b.get(name) else { return Ok(false) };
                if !equal_json(a, b, work)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (a, b) => Ok(a == b),
    }
}

/// The order of two numbers. None when they are not numbers; inside, none when one is not a number.
fn compare_numbers(a: &Val<'_>, b: &Val<'_>) -> Option<Option<Ordering>> {
    Some(match (a, b) {
        (Val::Int(a), Val::Int(b)) => Some(a.cmp(b)),
        (Val::Uint(a), Val::Uint(b)) => Some(a.cmp(b)),
        (Val::Double(a), Val::Double(b)) => a.partial_cmp(b),
        (Val::Int(a), Val::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Val::Uint(a), Val::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Val::Int(a), Val::Double(b)) => compare_double(i128::from(*a), *b),
        (Val::Uint(a), Val::Double(b)) => compare_double(i128::from(*a), *b),
        (Val::Double(a), Val::Int(b)) => compare_double(i128::from(*b), *a).map(Ordering::reverse),
        (Val::Double(a), Val::Uint(b)) => compare_double(i128::from(*b), *a).map(Ordering::reverse),
        _ => return None,
    })
}

/// Compares without rounding away the difference where the double is in the range of integers.
fn compare_double(a: i128, b: f64) -> Option<Ordering> {
    if b.is_nan() {
        return None;
    }
    // Larger than every 64-bit integer, with the right sign.
    if b.abs() >= 1e20 {
        return Some(if b > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    (a as f64).partial_cmp(&b)
}

/// The order of two values of the same kind, or of two numbers. None when they have no order.
pub(crate) fn compare(a: &Val<'_>, b: &Val<'_>) -> Option<Result<Ordering, EvalError>> {
    if let Some(order) = compare_numbers(a, b) {
        return Some(order.ok_or_else(|| EvalError::new("NaN values cannot be ordered")));
    }
    Some(Ok(match (a, b) {
        (Val::Bool(a), Val::Bool(b)) => a.cmp(b),
        (Val::String(a), Val::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Val::Bytes(a), Val::Bytes(b)) => a.cmp(b),
        (Val::Timestamp(a), Val::Timestamp(b)) => a.cmp(b),
        (Val::Duration(a), Val::Duration(b)) => a.cmp(b),
        _ => return None,
    }))
}
