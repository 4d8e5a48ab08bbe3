//! resource.k8s.io: v1beta1 asks for devices and describes them in a flatter way than v1beta2 and v1, and v1alpha3 has
//! capacities that are nothing but quantities.

use serde_json::{Map, Value};

use crate::{Change, Object, member, put, take};

/// The fields of a request for exactly one sort of device. Up to v1beta1 they stand in the request itself.
const EXACT: [&str; 7] =
    ["adminAccess", "allocationMode", "capacity", "count", "deviceClassName", "selectors", "tolerations"];

/// The shape of a version.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// v1alpha3: as v1beta1, with capacities that are quantities.
    Plain,
    /// v1beta1: requests have the fields of an exact one, devices are basic ones.
    Flat,
    /// v1beta2 and v1.
    Nested,
}

impl Shape {
    fn of(version: &str) -> Option<Self> {
        match version {
            "v1alpha3" => Some(Self::Plain),
            "v1beta1" => Some(Self::Flat),
            "v1beta2" | "v1" => Some(Self::Nested),
            _ => None,
        }
    }
}

/// What makes a kind of one version one of another.
pub(crate) fn change(kind: &str, from: &str, to: &str) -> Option<Change> {
    use Shape::{Flat, Nested, Plain};
    let shapes = (Shape::of(from)?, Shape::of(to)?);
    match (kind, shapes) {
        ("ResourceClaim", (Plain | Flat, Nested)) => Some(|claim| each_request(claim, nest_request)),
        ("ResourceClaim", (Nested, Plain | Flat)) => Some(|claim| each_request(claim, flatten_request)),
        ("ResourceClaimTemplate", (Plain | Flat, Nested)) => {
            Some(|template| in_template(template, nest_request))
        }
        ("ResourceClaimTemplate", (Nested, Plain | Flat)) => {
            Some(|template| in_template(template, flatten_request))
        }
        ("ResourceClaim" | "ResourceClaimTemplate", (Plain, Flat) | (Flat, Plain)) => Some(|_| ()),
        ("ResourceSlice", (Plain, Flat)) => {
            Some(|slice| each_device(slice, |device| in_basic(device, describe_capacity)))
        }
        ("ResourceSlice", (Flat, Plain)) => {
            Some(|slice| each_device(slice, |device| in_basic(device, plain_capacity)))
        }
        ("ResourceSlice", (Flat, Nested)) => Some(|slice| {
            drop_zeros(slice);
            each_device(slice, nest_device);
        }),
        ("ResourceSlice", (Nested, Flat)) => Some(|slice| {
            each_device(slice, flatten_device);
            drop_zeros(slice);
        }),
        ("ResourceSlice", (Plain, Nested)) => Some(|slice| {
            drop_zeros(slice);
            each_device(slice, |device| {
                in_basic(device, describe_capacity);
                nest_device(device);
            });
        }),
        ("ResourceSlice", (Nested, Plain)) => Some(|slice| {
            each_device(slice, |device| {
                flatten_device(device);
                in_basic(device, plain_capacity);
            });
            drop_zeros(slice);
        }),
        _ => None,
    }
}

fn each_request(claim: &mut Object, change: fn(&mut Object)) {
    let devices = member(claim, "spec").and_then(|spec| member(spec, "devices"));
    devices.into_iter().flat_map(|devices| crate::items(devices, "requests")).for_each(change);
}

/// A template has a claim's spec in its own.
fn in_template(template: &mut Object, change: fn(&mut Object)) {
    if let Some(claim) = member(template, "spec") {
        each_request(claim, change);
    }
}

/// Fields that are set make an exact request; without any of them it is one of alternatives.
fn nest_request(request: &mut Object) {
    let set = EXACT.iter().any(|name| request.get(*name).is_some_and(|value| !is_zero(value)));
    let exact: Object =
        EXACT.iter().filter_map(|name| Some(((*name).to_owned(), take(request, name)?))).collect();
    if set {
        request.insert("exactly".to_owned(), exact.into());
    }
}

fn flatten_request(request: &mut Object) {
    if let Some(Value::Object(mut exact)) = take(request, "exactly") {
        request.append(&mut exact);
    }
}

/// As Go sees it: lists, maps and pointers that were given count, even if there is nothing in them.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

fn each_device(slice: &mut Object, change: fn(&mut Object)) {
    let spec = member(slice, "spec");
    spec.into_iter().flat_map(|spec| crate::items(spec, "devices")).for_each(change);
}

fn nest_device(device: &mut Object) {
    if let Some(Value::Object(mut basic)) = take(device, "basic") {
        device.append(&mut basic);
    }
}

fn flatten_device(device: &mut Object) {
    let name = take(device, "name");
    let basic = std::mem::take(device);
    put(device, "name", name);
    device.insert("basic".to_owned(), basic.into());
}

/// Whether a slice is of one node or of all is a pointer in one version and a value in the other, where its zero is
/// nothing.
fn drop_zeros(slice: &mut Object) {
    let Some(spec) = member(slice, "spec") else { return };
    if spec.get("nodeName").is_some_and(|name| name == "") {
        spec.remove("nodeName");
    }
    if spec.get("allNodes").is_some_and(|all| all == &Value::Bool(false)) {
        spec.remove("allNodes");
    }
}

fn in_basic(device: &mut Object, change: fn(&mut Value)) {
    let capacity = member(device, "basic").and_then(|basic| member(basic, "capacity"));
    capacity.into_iter().flat_map(Map::values_mut).for_each(change);
}

fn describe_capacity(capacity: &mut Value) {
    let value = capacity.take();
    *capacity = Value::Object(Object::from_iter([("value".to_owned(), value)]));
}

fn plain_capacity(capacity: &mut Value) {
    *capacity = capacity.get_mut("value").map(Value::take).unwrap_or_else(|| "0".into());
}
