//! Quantities.

use std::cmp::Ordering;
use std::sync::Arc;

use concord_meta::QuantityFormat;

use super::{Run, no_overload};
use crate::error::EvalError;
use crate::eval::Context;
use crate::value::Val;

/// An amount of a resource.
#[derive(Debug, Clone)]
pub struct Quantity(concord_meta::Quantity);

type Answer<'a> = Result<Val<'a>, EvalError>;

impl Quantity {
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }

    /// The value, when it is a whole number that fits.
    fn as_integer(&self) -> Option<i64> {
        let value = self.0.value();
        (concord_meta::Quantity::new(value, self.0.format()) == self.0).then_some(value)
    }

    /// The value as it is written, with its suffix multiplied out.
    fn as_float(&self) -> f64 {
        let text = self.0.to_string();
        let end =
            text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+'))).unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let number: f64 = number.parse().unwrap_or(0.0);
        let decimal = |exponent: i32| number * 10f64.powi(exponent);
        match suffix {
            "n" => decimal(-9),
            "u" => decimal(-6),
            "m" => decimal(-3),
            "k" => decimal(3),
            "M" => decimal(6),
            "G" => decimal(9),
            "T" => decimal(12),
            "P" => decimal(15),
            "E" => decimal(18),
            "Ki" => number * 2f64.powi(10),
            "Mi" => number * 2f64.powi(20),
            "Gi" => number * 2f64.powi(30),
            "Ti" => number * 2f64.powi(40),
            "Pi" => number * 2f64.powi(50),
            "Ei" => number * 2f64.powi(60),
            _ => match suffix.strip_prefix(['e', 'E']).and_then(|exponent| exponent.parse().ok()) {
                Some(exponent) => decimal(exponent),
                None => number,
            },
        }
    }

    fn sign(&self) -> i64 {
        match self.0.cmp(&concord_meta::Quantity::new(0, self.0.format())) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }
}

pub(super) fn find(name: &str) -> Option<Run> {
    Some(match name {
        "quantity" => parse,
        "isQuantity" => is_quantity,
        "sign" => |args, _| read(args, |quantity| Ok(Val::Int(quantity.sign()))),
        "isInteger" => |args, _| read(args, |quantity| Ok(Val::Bool(quantity.as_integer().is_some()))),
        "asInteger" => |args, _| {
            read(args, |quantity| match quantity.as_integer() {
                Some(value) => Ok(Val::Int(value)),
                None => Err(EvalError::new("cannot convert value to integer")),
            })
        },
        "asApproximateFloat" => |args, _| read(args, |quantity| Ok(Val::Double(quantity.as_float()))),
        "isGreaterThan" => |args, _| compare(args, |order| Val::Bool(order.is_gt())),
        "isLessThan" => |args, _| compare(args, |order| Val::Bool(order.is_lt())),
        "compareTo" => |args, _| compare(args, |order| Val::Int(order as i64)),
        "add" => |args, _| combine(args, |a, b| *a += b),
        "sub" => |args, _| combine(args, |a, b| *a -= b),
        _ => return None,
    })
}

fn parse<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::String(text)] => match text.parse() {
            Ok(quantity) => Ok(Val::Quantity(Arc::new(Quantity(quantity)))),
            Err(error) => {
                let error: concord_meta::QuantityError = error;
                Err(EvalError::new(error.to_string()))
            }
        },
        _ => Err(no_overload()),
    }
}

fn is_quantity<'a>(args: &[Val<'a>], _: &mut Context<'_>) -> Answer<'a> {
    match args {
        [Val::String(text)] => Ok(Val::Bool(text.parse::<concord_meta::Quantity>().is_ok())),
        _ => Err(no_overload()),
    }
}

fn read<'a>(args: &[Val<'a>], with: fn(&Quantity) -> Answer<'static>) -> Answer<'a> {
    match args {
        [Val::Quantity(quantity)] => with(quantity),
        _ => Err(no_overload()),
    }
}

/// The order of two quantities or of two versions: both have these functions.
fn compare<'a>(args: &[Val<'a>], with: fn(Ordering) -> Val<'static>) -> Answer<'a> {
    match args {
        [Val::Quantity(a), Val::Quantity(b)] => Ok(with(a.compare(b))),
        [Val::Semver(a), Val::Semver(b)] => Ok(with(a.compare(b))),
        _ => Err(no_overload()),
    }
}

fn combine<'a>(
    args: &[Val<'a>],
    with: fn(&mut concord_meta::Quantity, &concord_meta::Quantity),
) -> Answer<'a> {
    let (a, b) = match args {
        [Val::Quantity(a), Val::Quantity(b)] => (a, b.0.clone()),
        [Val::Quantity(a), Val::Int(b)] => {
            (a, concord_meta::Quantity::new(*b, QuantityFormat::DecimalExponent))
        }
        _ => return Err(no_overload()),
    };
    let mut result = a.0.clone();
    with(&mut result, &b);
    Ok(Val::Quantity(Arc::new(Quantity(result))))
}
