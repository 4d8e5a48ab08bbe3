//! Numbers and their bounds.
//!
//! Upstream compares an integer with bounds that it cuts to integers, unless a bound does not fit the declared type:
//! then that is an error too, and floats are compared.

use concord_meta::field::{BadValue, Error};
use serde_json::Number;

use super::{Walk, scalar::is_json_integer};
use crate::{
    formats::Format,
    go,
    schema::{Kind, Node},
};

/// A bound or a value, as Go has it.
#[derive(Clone, Copy)]
enum Num {
    Int(i64),
    Float(f64),
}

impl Num {
    fn of(number: &Number) -> Self {
        match number.as_i64() {
            Some(int) => Self::Int(int),
            None => Self::Float(number.as_f64().unwrap_or_default()),
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "the loss is upstream's")]
    fn float(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Float(float) => float,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Int(int) => int.to_string(),
            Self::Float(float) => go::float(float),
        }
    }
}

impl From<Num> for BadValue {
    fn from(number: Num) -> Self {
        Self::verbatim(number.text())
    }
}

/// A float cut to an integer as Go does it on a common machine.
pub(super) fn truncated(float: f64) -> i64 {
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float);
    #[allow(clippy::cast_possible_truncation, reason = "cutting is what is asked for, and it fits")]
    if fits { float as i64 } else { i64::MIN }
}

/// The type that numbers of a node are held to, and its format.
#[derive(Clone, Copy)]
struct Range {
    kind: Kind,
    format: Option<Format>,
}

impl Range {
    fn of(node: Node<'_>) -> Self {
        let kind = match node.kind() {
            kind @ (Kind::Integer | Kind::Number) if !node.is_int_or_string() => kind,
            _ => return Self { kind: Kind::Any, format: None },
        };
        Self { kind, format: node.checked_format().filter(|format| *format != Format::Unknown) }
    }

    fn holds(self, number: Num) -> bool {
        match (self.kind, self.format, number) {
            (Kind::Integer, Some(Format::Int32), Num::Int(int)) => i32::try_from(int).is_ok(),
            (Kind::Integer, Some(Format::Int32), Num::Float(float)) => {
                float.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&float)
            }
            (Kind::Integer, _, Num::Float(float)) => {
                float.fract() == 0.0
                    && (truncated(float) != i64::MIN || float == -9_223_372_036_854_775_808.0)
            }
            (Kind::Number, Some(Format::Float), number) => {
                #[allow(clippy::cast_possible_truncation, reason = "too large ones become infinite")]
                let single = number.float() as f32;
                single.is_finite()
            }
            _ => true,
        }
    }

    fn text(self) -> String {
        let format = match self.format {
            Some(Format::Int32) => "int32",
            Some(Format::Int64) => "int64",
            Some(Format::Float) => "float",
            Some(Format::Double) => "double",
            _ => return format!("{} (default format)", self.kind.name()),
        };
        format!("{} with format {format}", self.kind.name())
    }
}

impl<'a> Walk<'a> {
    pub(super) fn number(&mut self, node: Node<'a>, number: &Number) {
        let (value, range, limits) = (Num::of(number), Range::of(node), node.limits());
        self.in_range(range, value, "Checked");
        if let Some(factor) = limits.multiple_of {
            let native = self.in_range(range, Num::Float(factor), "MultipleOf");
            self.multiple_of(value, factor, native);
        }
        if let Some(min) = limits.minimum {
            let native = self.in_range(range, Num::Float(min), "Minimum boundary");
            self.bound(value, min, native, node.is_exclusive_minimum(), Bound::Minimum);
        }
        if let Some(max) = limits.maximum {
            let native = self.in_range(range, Num::Float(max), "Maximum boundary");
            self.bound(value, max, native, node.is_exclusive_maximum(), Bound::Maximum);
        }
    }

    fn in_range(&mut self, range: Range, number: Num, what: &str) -> bool {
        let holds = range.holds(number);
        if !holds {
            let name = self.trail.name();
            self.add_placeless(format!("{what} value must be of type {} in {name}", range.text()));
        }
        holds
    }

    fn multiple_of(&mut self, value: Num, factor: f64, native: bool) {
        let (factor, is_multiple) = match value {
            Num::Int(int) if native => {
                let factor = truncated(factor);
                (Num::Int(factor), factor > 0 && int % factor == 0)
            }
            _ => {
                let float = value.float();
                let times = if factor < 1.0 { 1.0 / factor * float } else { float / factor };
                (Num::Float(factor), is_json_integer(times))
            }
        };
        if factor.float() <= 0.0 {
            self.add_here(|field, name| {
                let detail =
                    format!("factor MultipleOf declared for {name} must be positive: {}", factor.text());
                Error::invalid(field, factor, detail)
            });
        } else if !is_multiple {
            let value = if native { value } else { Num::Float(value.float()) };
            self.add_here(|field, name| {
                let detail = format!("{name} in body should be a multiple of {}", factor.text());
                Error::invalid(field, value, detail)
            });
        }
    }

    fn bound(&mut self, value: Num, bound: f64, native: bool, exclusive: bool, side: Bound) {
        let (value, bound, order) = match value {
            Num::Int(int) if native => {
                let bound = truncated(bound);
                (value, Num::Int(bound), int.partial_cmp(&bound))
            }
            _ => {
                let float = value.float();
                (Num::Float(float), Num::Float(bound), float.partial_cmp(&bound))
            }
        };
        let Some(order) = order else { return };
        let outside = match side {
            Bound::Minimum => order.is_lt(),
            Bound::Maximum => order.is_gt(),
        };
        if outside || (exclusive && order.is_eq()) {
            self.add_here(|field, name| {
                let detail = format!("{name} in body should be {} {}", side.words(exclusive), bound.text());
                Error::invalid(field, value, detail)
            });
        }
    }
}

#[derive(Clone, Copy)]
enum Bound {
    Minimum,
    Maximum,
}

impl Bound {
    fn words(self, exclusive: bool) -> &'static str {
        match (self, exclusive) {
            (Self::Minimum, false) => "greater than or equal to",
            (Self::Minimum, true) => "greater than",
            (Self::Maximum, false) => "less than or equal to",
            (Self::Maximum, true) => "less than",
        }
    }
}
