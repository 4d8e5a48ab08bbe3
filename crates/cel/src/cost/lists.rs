//! The cost of the list and set libraries, which bring their own estimates.

use super::calls::{CallEstimate, Called, STRING};
use super::{Argument, CostEstimate, Coster, SizeEstimate};
use crate::ast::{Kind, Literal};

/// A call and a new list.
const ALLOCATION: u64 = 11;

impl<'e> Coster<'e> {
    pub(super) fn list_function(&self, called: &Called<'_, 'e>) -> Option<CallEstimate> {
        let target = called.target.map(|target| self.argument_size(target));
        let first = called.args.first();
        match called.overload {
            "list_slice" => {
                let end = literal_or(called.args.get(1)?, target?.max);
                let length = end.wrapping_sub(literal_or(first?, 0));
                allocating(1.0, SizeEstimate::fixed(length))
            }
            "lists_range" => allocating(1.0, SizeEstimate::fixed(literal_or(first?, u64::MAX))),
            "list_reverse" | "list_flatten" => allocating(1.0, target?),
            "list_flatten_int" => allocating(literal_or(first?, u64::MAX) as f64, target?),
            "list_distinct" => allocating(2.0, target?.product(target?)),
            "list_sets_contains_list" | "list_sets_intersects_list" => self.sets(called, 1.0),
            "list_sets_equivalent_list" => self.sets(called, 2.0),
            overload => {
                let (kind, size) = match overload.strip_suffix("_sort") {
                    Some(kind) => (kind, target?),
                    None => (overload.strip_suffix("_sortByAssociatedKeys")?, self.argument_size(first?)),
                };
                let reading = if matches!(kind, "list_string" | "list_bytes") { STRING } else { 0.0 };
                allocating(2.0 + reading, size.product(size))
            }
        }
    }

    fn sets(&self, called: &Called<'_, 'e>, factor: f64) -> Option<CallEstimate> {
        let [left, right] = called.args else { return None };
        let pairs = self.argument_size(left).product(self.argument_size(right));
        CallEstimate::of(pairs.cost(factor).plus(CostEstimate::fixed(1)))
    }
}

/// The value of an integer literal.
fn literal_or(argument: &Argument<'_>, otherwise: u64) -> u64 {
    match argument.expr.map(|expr| &expr.kind) {
        Some(Kind::Literal(Literal::Int(value))) => u64::try_from(*value).unwrap_or(0),
        _ => otherwise,
    }
}

fn allocating(factor: f64, size: SizeEstimate) -> Option<CallEstimate> {
    CallEstimate::sized(size.cost(factor).plus(CostEstimate::fixed(ALLOCATION)), size)
}
