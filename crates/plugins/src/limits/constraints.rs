//! Whether amounts keep to limits, in upstream's words.

use concord_meta::Quantity;
use concord_registry::Object;
use serde_json::Value;

use crate::{
    amounts::{self, Amounts},
    at,
};

/// Up to here amounts are compared in thousandths: `math.MaxInt64 / 1000`.
const MAX_MILLI: i64 = i64::MAX / 1000;

/// What asks for resources.
struct Asked<'a> {
    /// The type of the limit that it is judged by.
    kind: &'a str,
    requests: Amounts,
    limits: Amounts,
}

/// What is wrong with a claim. Only what it requests counts.
pub(super) fn of_claim<'a>(claim: &Object, limits: impl Iterator<Item = &'a Object>) -> Vec<String> {
    let kind = "PersistentVolumeClaim";
    let requests = amounts::amounts(at(claim, &["spec", "resources", "requests"]));
    let asked = Asked { kind, requests, limits: Amounts::new() };
    let mut errors = Vec::new();
    for limit in limits.filter(|limit| is(limit, kind)) {
        let each = |list: &str| amounts::amounts(limit.get(list)).into_iter();
        errors.extend(each("min").filter_map(|(name, least)| asked.min(&name, &least)));
        errors.extend(each("max").filter_map(|(name, most)| asked.max_request(&name, &most)));
    }
    errors
}

/// What is wrong with a pod and its containers.
pub(super) fn of_pod<'a>(pod: &Object, limits: impl Iterator<Item = &'a Object>) -> Vec<String> {
    let mut errors = Vec::new();
    for limit in limits {
        if is(limit, "Container") {
            for list in ["containers", "initContainers"] {
                let containers = at(pod, &["spec", list]).and_then(Value::as_array).into_iter().flatten();
                errors.extend(containers.flat_map(|container| container_asks(container).errors(limit)));
            }
        }
        if is(limit, "Pod") {
            let asked = |list: &str| amounts::of_pod(pod, list);
            let asked = Asked { kind: "Pod", requests: asked("requests"), limits: asked("limits") };
            errors.extend(asked.errors(limit));
        }
    }
    errors
}

fn is(limit: &Object, kind: &str) -> bool {
    limit.get("type").and_then(Value::as_str) == Some(kind)
}

fn container_asks(container: &Value) -> Asked<'static> {
    let own = |list: &str| amounts::amounts(container.get("resources").and_then(|all| all.get(list)));
    Asked { kind: "Container", requests: own("requests"), limits: own("limits") }
}

/// Amounts in the same unit: thousandths, if all of them fit.
fn comparable<const N: usize>(amounts: [Option<&Quantity>; N]) -> [i64; N] {
    let values = amounts.map(|amount| amount.map_or(0, Quantity::value));
    if values.iter().all(|value| *value <= MAX_MILLI) {
        return amounts.map(|amount| amount.map_or(0, Quantity::milli_value));
    }
    values
}

impl Asked<'_> {
    fn errors(&self, limit: &Object) -> Vec<String> {
        let each = |list: &str| amounts::amounts(limit.get(list)).into_iter();
        let mut errors: Vec<String> = Vec::new();
        errors.extend(each("min").filter_map(|(name, least)| self.min(&name, &least)));
        errors.extend(each("max").filter_map(|(name, most)| self.max(&name, &most)));
        errors.extend(each("maxLimitRequestRatio").filter_map(|(name, most)| self.ratio(&name, &most)));
        errors
    }

    fn min(&self, name: &str, least: &Quantity) -> Option<String> {
        let (request, limit) = (self.requests.get(name), self.limits.get(name));
        let [requested, limited, enforced] = comparable([request, limit, Some(least)]);
        let rule = format!("minimum {name} usage per {} is {least}", self.kind);
        match (request, limit) {
            (None, _) => Some(format!("{rule}.  No request is specified")),
            (Some(request), _) if requested < enforced => Some(format!("{rule}, but request is {request}")),
            (_, Some(limit)) if limited < enforced => Some(format!("{rule}, but limit is {limit}")),
            _ => None,
        }
    }

    fn max(&self, name: &str, most: &Quantity) -> Option<String> {
        let (request, limit) = (self.requests.get(name), self.limits.get(name));
        let [requested, limited, enforced] = comparable([request, limit, Some(most)]);
        let rule = format!("maximum {name} usage per {} is {most}", self.kind);
        match (request, limit) {
            (_, None) => Some(format!("{rule}.  No limit is specified")),
            (_, Some(limit)) if limited > enforced => Some(format!("{rule}, but limit is {limit}")),
            (Some(request), _) if requested > enforced => Some(format!("{rule}, but request is {request}")),
            _ => None,
        }
    }

    /// For what has no limits of its own.
    fn max_request(&self, name: &str, most: &Quantity) -> Option<String> {
        let request = self.requests.get(name);
        let [requested, enforced] = comparable([request, Some(most)]);
        let rule = format!("maximum {name} usage per {} is {most}", self.kind);
        match request {
            None => Some(format!("{rule}.  No request is specified")),
            Some(request) if requested > enforced => Some(format!("{rule}, but request is {request}")),
            Some(_) => None,
        }
    }

    /// How many times its request a limit may be.
    #[expect(clippy::cast_precision_loss, reason = "upstream's ratios are floats, too")]
    fn ratio(&self, name: &str, most: &Quantity) -> Option<String> {
        let (request, limit) = (self.requests.get(name), self.limits.get(name));
        let [requested, limited, _] = comparable([request, limit, Some(most)]);
        let rule = format!("{name} max limit to request ratio per {} is {most}", self.kind);
        if requested == 0 {
            return Some(format!("{rule}, but no request is specified or request is 0"));
        }
        if limited == 0 {
            return Some(format!("{rule}, but no limit is specified or limit is 0"));
        }
        let ratio = limited as f64 / requested as f64;
        let exceeds = match most.value() <= MAX_MILLI {
            true => ratio * 1000.0 > most.milli_value() as f64,
            false => ratio > most.value() as f64,
        };
        exceeds.then(|| format!("{rule}, but provided ratio is {ratio:.6}"))
    }
}
