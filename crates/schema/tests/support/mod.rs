//! A small kind with one field of every sort.

use concord_merge::strategic::PatchStrategy;
use concord_schema::{Builder, ListType, Presence, Scalar, Schema, Shape, TypeId};
use serde_json::{Map, Value, json};

use Presence::{Always, Given, NonZero, Nullable};

/// The schema of the kind `Thing`.
pub(crate) fn thing() -> Schema {
    let mut types = Builder::new();
    let string = types.scalar("string", Scalar::String);
    let meta = object_meta(&mut types, string);
    let spec = spec(&mut types, string);
    let thing = types
        .structure("v1.Thing")
        .field("kind", string, NonZero)
        .embedded("TypeMeta")
        .field("apiVersion", string, NonZero)
        .embedded("TypeMeta")
        .field("metadata", meta, Always)
        .field("spec", spec, Always)
        .add();
    Schema::new(types.finish().place(thing))
}

fn object_meta(types: &mut Builder, string: TypeId) -> TypeId {
    let labels = types.map("map[string]string", string);
    let finalizers = types.list("[]string", string, ListType::Set);
    let time = types.scalar("v1.Time", Scalar::Time);
    types
        .structure("v1.ObjectMeta")
        .field("name", string, NonZero)
        .field("labels", labels, NonZero)
        .field("finalizers", finalizers, NonZero)
        .patch(PatchStrategy::Merge, None)
        .field("creationTimestamp", time, NonZero)
        .add()
}

fn spec(types: &mut Builder, string: TypeId) -> TypeId {
    let int32 = types.scalar("int32", Scalar::Int32);
    let int64 = types.scalar("int64", Scalar::Int64);
    let boolean = types.scalar("bool", Scalar::Bool);
    let float = types.scalar("float64", Scalar::Float64);
    let bytes = types.scalar("[]uint8", Scalar::Bytes);
    let data = types.map("map[string][]uint8", bytes);
    let time = types.scalar("v1.Time", Scalar::Time);
    let micro = types.scalar("v1.MicroTime", Scalar::MicroTime);
    let quantity = types.scalar("resource.Quantity", Scalar::Quantity);
    let amounts = types.map("v1.ResourceList", quantity);
    let target = types.scalar("intstr.IntOrString", Scalar::IntOrString);
    let raw = types.scalar("runtime.RawExtension", Scalar::Raw);
    let ports = ports(types, string, int32);
    let strings = types.list("[]string", string, ListType::Atomic);
    let props = props(types, string);
    types
        .structure("v1.ThingSpec")
        .field("replicas", int32, Given)
        .field("count", int64, NonZero)
        .field("on", boolean, NonZero)
        .field("weight", float, Given)
        .field("data", data, NonZero)
        .field("at", time, Always)
        .field("atMicro", micro, Given)
        .field("divisor", quantity, Always)
        .field("amounts", amounts, NonZero)
        .field("target", target, Always)
        .field("raw", raw, Always)
        .field("ports", ports, NonZero)
        .patch(PatchStrategy::Merge, Some("port"))
        .field("rules", strings, Always)
        .field("secret", string, Nullable)
        .embedded("ThingSource")
        .field("props", props, Given)
        .add()
}

fn ports(types: &mut Builder, string: TypeId, int32: TypeId) -> TypeId {
    let protocol = types.scalar("v1.Protocol", Scalar::String);
    let port = types
        .structure("v1.ThingPort")
        .field("port", int32, Always)
        .field("protocol", protocol, NonZero)
        .default_value(json!("TCP"))
        .field("name", string, NonZero)
        .add();
    types.list("[]v1.ThingPort", port, ListType::Map(["port".into(), "protocol".into()].into()))
}

/// A type that contains itself, also in place of a boolean.
fn props(types: &mut Builder, string: TypeId) -> TypeId {
    let props = types.declare("v1.Props");
    let or_bool = types.add("v1.PropsOrBool", Shape::Either { object: props, list: None, boolean: true });
    let shape = Shape::Struct {
        fields: Box::new([
            concord_schema::Field::new("more".into(), props, Given),
            concord_schema::Field::new("type".into(), string, NonZero),
            concord_schema::Field::new("additional".into(), or_bool, Given),
        ]),
        atomic: false,
    };
    types.define(props, shape);
    props
}

/// The fields of a JSON object.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}
