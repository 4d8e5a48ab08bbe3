//! What a call costs when it is made. The numbers are upstream's.

use crate::value::{List, MapValue, Val};

const STRING: f64 = 0.1;
const REGEX: f64 = 0.25;
/// What an authorization check costs: an expression can make two of them.
pub(crate) const CHECK: u64 = 350_000;

/// How the cost of a call is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallCost {
    Fixed(u64),
    /// A tenth of the size of the first argument, times a factor.
    Traversal(u32),
    /// A tenth of the size of the result, twice.
    Result,
    /// All the data of the first argument.
    Deep,
    /// The string and the pattern.
    Regex,
    /// The size of the list on the right.
    Search,
    /// The smaller of two.
    Comparison,
    /// Both together.
    Sum,
    /// Each character of one against each of the other.
    Product,
    /// A selector in the second argument.
    Selector,
    /// A prefix against an address, which may have to be parsed.
    ContainsIp {
        parse: bool,
    },
    /// A prefix against another, which may have to be parsed.
    ContainsCidr {
        parse: bool,
    },
    /// A string against a named format.
    Format,
    /// A new list: its length, a call and the list itself.
    NewList,
    /// The list, as often as it is deep.
    Flatten,
    /// Every element of the list at this index against every other.
    SelfCompare(usize),
    /// Every element of one list against every element of another, times a factor.
    Pairs(u64),
}

/// A call and a new list.
const ALLOCATION: u64 = 11;

impl CallCost {
    /// The rule of a function; the overload is empty when more than one is possible.
    pub(crate) fn of(function: &str, overload: &str) -> Self {
        match function {
            "check" => return Self::Fixed(CHECK),
            "fieldSelector" | "labelSelector" => return Self::Selector,
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => return Self::Deep,
            "url"
            | "lowerAscii"
            | "upperAscii"
            | "substring"
            | "trim"
            | "jsonpatch.escapeKey"
            | "cidr"
            | "isIP"
            | "isCIDR"
            | "quantity"
            | "isQuantity"
            | "semver"
            | "isSemver" => {
                return Self::Traversal(1);
            }
            "replace" | "split" | "ip.isCanonical" => return Self::Traversal(2),
            "join" => return Self::Result,
            "find" | "findAll" => return Self::Regex,
            "ip" => return if overload == "cidr_ip" { Self::Fixed(1) } else { Self::Traversal(1) },
            "containsIP" => return Self::ContainsIp { parse: overload == "cidr_contains_ip_string" },
            "containsCIDR" => return Self::ContainsCidr { parse: overload == "cidr_contains_cidr_string" },
            "validate" => return Self::Format,
            _ => {}
        }
        Self::of_overload(overload)
    }

    fn of_overload(overload: &str) -> Self {
        let ordered = ["less_", "less_equals_", "greater_", "greater_equals_"];
        match overload {
            "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
            | "strings_quote" | "string_format" => Self::Traversal(1),
            "in_list" => Self::Search,
            "add_string" | "add_bytes" => Self::Sum,
            "matches_string" => Self::Regex,
            "contains_string" => Self::Product,
            "list_slice" | "lists_range" | "list_reverse" => Self::NewList,
            "list_flatten" | "list_flatten_int" => Self::Flatten,
            "list_distinct" => Self::SelfCompare(0),
            "list_sets_contains_list" | "list_sets_intersects_list" => Self::Pairs(1),
            "list_sets_equivalent_list" => Self::Pairs(2),
            _ if overload.ends_with("_sort") => Self::SelfCompare(0),
            _ if overload.ends_with("_sortByAssociatedKeys") => Self::SelfCompare(1),
            _ if ordered.iter().any(|prefix| {
                overload.strip_prefix(prefix).is_some_and(|rest| matches!(rest, "string" | "bytes"))
            }) =>
            {
                Self::Comparison
            }
            _ => Self::Fixed(1),
        }
    }

    /// What the call costs with these arguments.
    pub(crate) fn before(self, args: &[Val<'_>]) -> u64 {
        let size = |i: usize| args.get(i).map_or(1, Val::cost_size);
        match self {
            Self::Fixed(cost) => cost,
            Self::Traversal(times) => ceil(size(0) as f64 * f64::from(times) * STRING),
            Self::Result | Self::NewList => 0,
            Self::Flatten => {
                let depth = match args.get(1) {
                    Some(Val::Int(depth)) => *depth as f64,
                    _ => 1.0,
                };
                ((size(0) as f64 * depth) as u64).saturating_add(ALLOCATION)
            }
            Self::SelfCompare(index) => args.get(index).map_or(1, self_compare),
            Self::Pairs(factor) => size(0).saturating_mul(size(1)).saturating_mul(factor).saturating_add(1),
            Self::Deep => args.first().map_or(0, deep),
            Self::Regex => ceil((1.0 + size(0) as f64) * STRING).saturating_mul(ceil(size(1) as f64 * REGEX)),
            Self::Search => size(1),
            Self::Comparison => ceil(size(0).min(size(1)) as f64 * STRING),
            Self::Sum => ceil(size(0).saturating_add(size(1)) as f64 * STRING),
            Self::Product => traversal(size(0)).saturating_mul(traversal(size(1))),
            // A list, and for every other character a requirement of a struct and a list.
            Self::Selector => 10 + traversal(size(1)) + ceil(ceil(size(1) as f64 * 0.5) as f64 * 50.0),
            Self::ContainsIp { parse } => traversal(2 * size(0)) + if parse { traversal(size(1)) } else { 0 },
            Self::ContainsCidr { parse } => {
                traversal(2 * size(0)) + traversal(size(0)) + 1 + if parse { traversal(size(1)) } else { 0 }
            }
            Self::Format => match args.first() {
                Some(Val::Format(format)) => {
                    let regex = ceil(format.max_regex_size as f64 * REGEX);
                    ceil((1.0 + size(1) as f64) * STRING).saturating_mul(regex)
                }
                _ => 1,
            },
        }
    }

    /// What the call costs besides, once its result is known. An error counts as one element.
    pub(crate) fn after(self, result: Option<&Val<'_>>) -> u64 {
        let size = result.map_or(1, Val::cost_size);
        match self {
            Self::Result => ceil(size as f64 * 2.0 * STRING),
            Self::NewList => size.saturating_add(ALLOCATION),
            _ => 0,
        }
    }
}

/// What the comparison of two values costs.
pub(super) fn equality(a: &Val<'_>, b: &Val<'_>) -> u64 {
    let unit = matches!(
        a,
        Val::Quantity(_)
            | Val::Ip(_)
            | Val::Cidr(_)
            | Val::Format(_)
            | Val::Url(_)
            | Val::Semver(_)
            | Val::Authorizer(_)
    );
    if unit { 1 } else { traversal(a.cost_size().min(b.cost_size())) }
}

/// What sorting costs: comparing strings costs more.
fn self_compare(value: &Val<'_>) -> u64 {
    let size = value.cost_size();
    let first = match value {
        Val::List(list) => list.get(0).and_then(Result::ok),
        _ => None,
    };
    let factor = if matches!(first, Some(Val::String(_) | Val::Bytes(_))) { 2.0 + STRING } else { 2.0 };
    ((size.saturating_mul(size) as f64 * factor) as u64).saturating_add(ALLOCATION)
}

fn ceil(cost: f64) -> u64 {
    cost.ceil() as u64
}

fn traversal(size: u64) -> u64 {
    ceil(size as f64 * STRING)
}

/// The cost of reading everything in a value.
fn deep(value: &Val<'_>) -> u64 {
    match value {
        Val::String(text) => (text.len() as f64 * STRING) as u64,
        Val::Bytes(bytes) => (bytes.len() as f64 * STRING) as u64,
        Val::List(list) => deep_list(list),
        Val::Map(map) => deep_map(map),
        _ => 1,
    }
}

fn deep_list(list: &List<'_>) -> u64 {
    list.iter().map(|item| item.map_or(1, |item| deep(&item))).fold(0, u64::saturating_add)
}

fn deep_map<'a>(map: &MapValue<'a>) -> u64 {
    let entry = |key: Val<'a>| {
        let value = map.get(&key).and_then(Result::ok).map_or(1, |value| deep(&value));
        deep(&key).saturating_add(value)
    };
    map.keys().into_iter().map(entry).fold(0, u64::saturating_add)
}
