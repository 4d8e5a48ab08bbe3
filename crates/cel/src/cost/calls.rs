//! The cost of calls.

use super::{Argument, CostEstimate, Coster, SizeEstimate};
use crate::ast::{Call, Expr, Kind, Literal};
use crate::check::Reference;
use crate::eval::CHECK_COST;
use crate::types::Type;

pub(super) const STRING: f64 = 0.1;
pub(super) const REGEX: f64 = 0.25;

/// What a call costs without its arguments, and how large its result is.
pub(super) struct CallEstimate {
    pub(super) cost: CostEstimate,
    pub(super) size: Option<SizeEstimate>,
}

impl CallEstimate {
    pub(super) fn of(cost: CostEstimate) -> Option<Self> {
        Some(Self { cost, size: None })
    }

    pub(super) fn sized(cost: CostEstimate, size: SizeEstimate) -> Option<Self> {
        Some(Self { cost, size: Some(size) })
    }

    fn fixed(cost: u64) -> Option<Self> {
        Self::of(CostEstimate::fixed(cost))
    }
}

/// A call with what is known of its arguments.
pub(super) struct Called<'c, 'e> {
    pub(super) function: &'c str,
    pub(super) overload: &'c str,
    pub(super) target: Option<&'c Argument<'e>>,
    pub(super) args: &'c [Argument<'e>],
    /// What each argument costs.
    costs: &'c [CostEstimate],
}

impl<'e> Coster<'e> {
    pub(super) fn call(&mut self, expr: &Expr, call: &'e Call) -> CostEstimate {
        let checked = self.checked;
        let Some(Reference::Overloads(function)) = checked.reference(expr) else { return CostEstimate::ZERO };
        if &*function.name == "dyn"
            && let [argument] = &call.args[..]
        {
            let cost = self.cost(argument).plus(CostEstimate::fixed(1));
            self.copy_sizes(expr, argument);
            return cost;
        }
        let costs: Vec<CostEstimate> = call.args.iter().map(|arg| self.cost(arg)).collect();
        let args: Vec<Argument<'e>> = call.args.iter().map(|arg| self.argument(arg)).collect();
        let mut sum = CostEstimate::ZERO;
        let target = call.target.as_ref().filter(|_| !function.namespaced).map(|target| {
            sum = sum.plus(self.cost(target));
            self.argument(target)
        });
        let mut most = CostEstimate { min: u64::MAX, max: 0 };
        let mut size: Option<SizeEstimate> = None;
        for overload in &function.overloads {
            let called = Called {
                function: &function.name,
                overload,
                target: target.as_ref(),
                args: &args,
                costs: &costs,
            };
            let estimate = self.overload(expr, &called);
            most = most.union(estimate.cost);
            size = match (size, estimate.size) {
                (Some(a), Some(b)) => Some(a.union(b)),
                (a, b) => a.or(b),
            };
            self.index_path(expr, overload, &call.args, &mut size);
            size = size.or_else(|| self.size(expr));
        }
        self.set_size(expr, size);
        sum.plus(most)
    }

    /// An index leads to a path of its own.
    fn index_path(&mut self, expr: &Expr, overload: &str, args: &[Expr], size: &mut Option<SizeEstimate>) {
        let step = match overload {
            "index_list" => "@items",
            "index_map" => "@values",
            _ => return,
        };
        let Some(operand) = args.first() else { return };
        *size = self.entry(operand).map(|entry| entry.value);
        let path = self.subpath(operand, step);
        self.paths.insert(expr.id, path);
    }

    fn overload(&mut self, expr: &Expr, called: &Called<'_, 'e>) -> CallEstimate {
        let arguments = called.costs.iter().fold(CostEstimate::ZERO, |sum, cost| sum.plus(*cost));
        let with_arguments = |estimate: CallEstimate| CallEstimate {
            cost: estimate.cost.plus(arguments),
            size: estimate.size,
        };
        if let Some(estimate) = self.list_function(called) {
            return with_arguments(estimate);
        }
        if let Some(estimate) = self.kubernetes_function(called) {
            return with_arguments(estimate);
        }
        match called.overload {
            "logical_and" | "logical_or" => {
                let [left, right] = called.costs else { return with_arguments(unit()) };
                // The right side may not be evaluated.
                let cost = CostEstimate { min: left.min, max: left.plus(*right).max };
                CallEstimate { cost, size: None }
            }
            "conditional" => self.conditional(expr, called),
            _ => with_arguments(self.standard_function(expr, called).unwrap_or_else(unit)),
        }
    }

    fn conditional(&mut self, expr: &Expr, called: &Called<'_, 'e>) -> CallEstimate {
        let ([_, then, otherwise], [test, then_cost, otherwise_cost]) = (called.args, called.costs) else {
            return unit();
        };
        let known = |argument: &Argument<'_>| argument.size.unwrap_or(SizeEstimate::UNKNOWN);
        let size = known(then).union(known(otherwise));
        let entries =
            then.expr.and_then(|then| self.entry(then)).zip(otherwise.expr.and_then(|e| self.entry(e)));
        self.set_entry(expr, entries.map(|(a, b)| a.union(b)));
        CallEstimate { cost: test.plus(then_cost.union(*otherwise_cost)), size: Some(size) }
    }

    fn standard_function(&mut self, expr: &Expr, called: &Called<'_, 'e>) -> Option<CallEstimate> {
        let size = |argument: Option<&Argument<'_>>| {
            argument.and_then(|argument| argument.size).unwrap_or(SizeEstimate::UNKNOWN)
        };
        let (first, second) = (size(called.args.first()), size(called.args.get(1)));
        let target = size(called.target);
        match called.overload {
            "string_format" => CallEstimate::of(target.cost(STRING)),
            "string_to_bytes" => {
                let size = SizeEstimate { min: first.min, max: first.max.wrapping_mul(4) };
                CallEstimate::sized(first.cost(STRING), size)
            }
            "bytes_to_string" => {
                let size = SizeEstimate { min: first.min / 4, max: first.max };
                CallEstimate::sized(first.cost(STRING), size)
            }
            "strings_quote" => {
                let size = SizeEstimate {
                    min: first.min.wrapping_add(2),
                    max: first.max.wrapping_mul(2).wrapping_add(2),
                };
                CallEstimate::sized(first.cost(STRING), size)
            }
            "starts_with_string" | "ends_with_string" => CallEstimate::of(first.cost(STRING)),
            "in_list" => CallEstimate::of(second.cost(1.0)),
            "matches_string" => {
                let text = target.plus(SizeEstimate::fixed(1)).cost(STRING);
                CallEstimate::of(text.product(first.cost(REGEX)))
            }
            "contains_string" => CallEstimate::of(target.cost(STRING).product(first.cost(STRING))),
            "add_string" | "add_bytes" | "add_list" => {
                self.add_entries(expr, called);
                let size = first.plus(second);
                let cost =
                    if called.overload == "add_list" { CostEstimate::fixed(1) } else { size.cost(STRING) };
                CallEstimate::sized(cost, size)
            }
            overload if is_comparison(overload) => {
                let max = first.max.min(second.max);
                let least = CostEstimate { min: u64::from(max > 0), max };
                CallEstimate::of(least.times(STRING))
            }
            _ => None,
        }
    }

    fn add_entries(&mut self, expr: &Expr, called: &Called<'_, 'e>) {
        let [left, right] = called.args else { return };
        let entries = left.expr.and_then(|e| self.entry(e)).zip(right.expr.and_then(|e| self.entry(e)));
        self.set_entry(expr, entries.map(|(a, b)| a.union(b)));
    }

    fn kubernetes_function(&mut self, called: &Called<'_, 'e>) -> Option<CallEstimate> {
        let args = called.args;
        let first = args.first().map(|argument| self.argument_size(argument));
        let target = called.target.map(|target| self.argument_size(target));
        match called.function {
            "check" => CallEstimate::fixed(CHECK_COST),
            "serviceAccount"
            | "path"
            | "group"
            | "resource"
            | "subresource"
            | "namespace"
            | "name"
            | "allowed"
            | "reason"
            | "error"
            | "errored"
            | "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery" => CallEstimate::fixed(1),
            "fieldSelector" | "labelSelector" if args.len() == 1 => {
                let requirements = first?.cost(0.5).times(50.0);
                CallEstimate::of(CostEstimate::fixed(10).plus(first?.cost(STRING)).plus(requirements))
            }
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => self.whole_list(called.target?),
            "url" | "jsonpatch.escapeKey" => CallEstimate::sized(first?.cost(STRING), first?),
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                CallEstimate::sized(target?.cost(STRING), target?)
            }
            "replace" => self.replace(called),
            "split" => self.split(called),
            "join" => self.join(called),
            "find" | "findAll" => {
                let text = target?.plus(SizeEstimate::fixed(1)).cost(STRING);
                let size = SizeEstimate { min: 0, max: target?.max };
                CallEstimate::sized(text.product(first?.cost(REGEX)), size)
            }
            "ip" if called.overload == "cidr_ip" => CallEstimate::fixed(1),
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                CallEstimate::of(first?.cost(STRING))
            }
            "ip.isCanonical" => CallEstimate::of(first?.cost(2.0 * STRING)),
            "containsIP" | "containsCIDR" => contains_address(called, first?),
            "validate" => CallEstimate::of(first?.cost(STRING).times(128.0 * REGEX)),
            "_==_" => equal_libraries(args),
            _ => None,
        }
    }

    /// One unit for each element, and what it takes to read it.
    fn whole_list(&mut self, target: &Argument<'e>) -> Option<CallEstimate> {
        let size = self.argument_size(target);
        let Some(element) = self.element(target) else { return CallEstimate::of(size.cost(STRING)) };
        let mut each = CostEstimate::fixed(1);
        if matches!(element.found, Type::String | Type::Bytes) {
            each = each.plus(self.argument_size(&element).cost(STRING));
        }
        CallEstimate::of(size.times_cost(each))
    }

    fn split(&mut self, called: &Called<'_, 'e>) -> Option<CallEstimate> {
        let size = self.argument_size(called.target?);
        let limit = called.args.get(1).and_then(|limit| match &limit.expr?.kind {
            Kind::Literal(Literal::Int(limit)) => Some(*limit as u64),
            _ => None,
        });
        let parts = SizeEstimate { min: 0, max: limit.unwrap_or(size.max) };
        CallEstimate::sized(size.cost(2.0 * STRING), parts)
    }

    fn join(&mut self, called: &Called<'_, 'e>) -> Option<CallEstimate> {
        let target = called.target?;
        let count = self.argument_size(target);
        let mut size = match self.element(target) {
            Some(element) => count.product(self.argument_size(&element)),
            None => SizeEstimate::fixed(0),
        };
        if let Some(separator) = called.args.first() {
            let gaps = SizeEstimate { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
            size = size.plus(self.argument_size(separator).product(gaps));
        }
        CallEstimate::sized(size.cost(STRING), size)
    }

    fn replace(&mut self, called: &Called<'_, 'e>) -> Option<CallEstimate> {
        let [from, to, ..] = called.args else { return None };
        let size = self.argument_size(called.target?);
        let (from, to) = (self.argument_size(from), self.argument_size(to));
        let (mut count, mut kept) = (SizeEstimate::fixed(0), SizeEstimate::fixed(0));
        if from.min == 0 {
            // Replacing nothing puts the replacement around every character.
            count.max = size.max.saturating_add(1);
            kept.max = size.max;
        } else if to.max <= from.min {
            kept.max = size.max;
        } else {
            count.max = (size.max as f64 / from.min as f64).ceil() as u64;
        }
        if from.max == 0 {
            count.min = size.min.saturating_add(1);
            kept.min = size.min;
        } else if from.max <= to.min {
            kept.min = size.min;
        } else {
            count.min = (size.min as f64 / from.max as f64).ceil() as u64;
        }
        CallEstimate::sized(size.cost(2.0 * STRING), count.product(to).plus(kept))
    }
}

fn unit() -> CallEstimate {
    CallEstimate { cost: CostEstimate::fixed(1), size: None }
}

fn is_comparison(overload: &str) -> bool {
    let ordered = ["less_equals_", "greater_equals_", "less_", "greater_"];
    let of_text = ordered.iter().find_map(|prefix| overload.strip_prefix(prefix));
    matches!(overload, "equals" | "not_equals") || matches!(of_text, Some("string" | "bytes"))
}

/// An address has four or sixteen bytes.
fn contains_address(called: &Called<'_, '_>, text: SizeEstimate) -> Option<CallEstimate> {
    let address = SizeEstimate { min: 4, max: 16 };
    let mut cost = address.plus(address).cost(STRING);
    if called.function == "containsCIDR" {
        cost = cost.plus(address.cost(STRING)).plus(CostEstimate::fixed(1));
    }
    if called.overload.ends_with("_string") {
        cost = cost.plus(text.cost(STRING));
    }
    CallEstimate::of(cost)
}

/// Comparing two values of a library.
fn equal_libraries(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let [left, right] = args else { return None };
    let (Type::Opaque(a, _), Type::Opaque(b, _)) = (&left.found, &right.found) else { return None };
    match &**a {
        _ if a != b => None,
        "optional_type" => None,
        "kubernetes.NamedFormat" => CallEstimate::of(CostEstimate { min: 1, max: 64 }.times(STRING)),
        "kubernetes.URL" => {
            let max = right.size.map_or(1, |size| size.max);
            CallEstimate::of(CostEstimate { min: 1, max }.times(STRING))
        }
        _ => CallEstimate::fixed(1),
    }
}
