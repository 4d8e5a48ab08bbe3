//! Objects to messages.

use concord_schema::{Scalar, decode_base64};
use serde_json::{Map, Value};

use crate::{
    messages::{Codec, Field, Kind, Messages, Type},
    scalar,
    write::Writer,
};

impl Codec {
    /// Writes an object before what is written already. It must be as its schema normalises it: what does not fit its
    /// type is written as if it were not there.
    pub(crate) fn write(&self, object: &Map<String, Value>, writer: &mut Writer) {
        Encoder { messages: self.messages(), writer }.message(self.root(), Some(object));
    }
}

struct Encoder<'a> {
    messages: &'a Messages,
    writer: &'a mut Writer,
}

impl Encoder<'_> {
    fn message(&mut self, id: usize, object: Option<&Map<String, Value>>) {
        let messages = self.messages;
        for field in messages.get(id).fields.iter().rev() {
            if let Kind::Embedded(id) = field.kind {
                self.nested(field.number, |encoder| encoder.message(id, object));
                continue;
            }
            let value = object.and_then(|object| object.get(&*field.name)).filter(|value| !value.is_null());
            if value.is_some() || field.always {
                self.field(field, value);
            }
        }
    }

    fn nested(&mut self, number: u32, write: impl FnOnce(&mut Encoder<'_>)) {
        let messages = self.messages;
        self.writer.message(number, |writer| write(&mut Encoder { messages, writer }));
    }

    fn field(&mut self, field: &Field, value: Option<&Value>) {
        match &field.kind {
            Kind::One(ty) => self.value(field.number, ty, value),
            Kind::Many(ty) => {
                for item in value.and_then(Value::as_array).into_iter().flatten().rev() {
                    self.value(field.number, ty, Some(item));
                }
            }
            Kind::Map(ty) => {
                for (key, value) in value.and_then(Value::as_object).into_iter().flatten().rev() {
                    self.nested(field.number, |encoder| {
                        encoder.value(2, ty, Some(value));
                        encoder.writer.bytes(1, key.as_bytes());
                    });
                }
            }
            Kind::Embedded(_) => {}
        }
    }

    fn value(&mut self, number: u32, ty: &Type, value: Option<&Value>) {
        let value = value.filter(|value| !value.is_null());
        match ty {
            Type::Scalar(scalar) => self.scalar(number, *scalar, value),
            Type::Message(id) => {
                self.nested(number, |encoder| encoder.message(*id, value.and_then(Value::as_object)));
            }
            Type::Wrapped(items) => self.nested(number, |encoder| {
                for item in value.and_then(Value::as_array).into_iter().flatten().rev() {
                    encoder.value(1, items, Some(item));
                }
            }),
            Type::Either { object, list } => {
                self.nested(number, |encoder| encoder.either(*object, list.as_deref(), value));
            }
        }
    }

    fn scalar(&mut self, number: u32, scalar: Scalar, value: Option<&Value>) {
        let text = || value.and_then(Value::as_str).unwrap_or_default();
        let integer = || value.and_then(Value::as_i64).unwrap_or_default();
        let writer = &mut *self.writer;
        match scalar {
            Scalar::Bool => writer.varint(number, u64::from(value == Some(&Value::Bool(true)))),
            Scalar::Int32 | Scalar::Int64 => writer.varint(number, integer() as u64),
            Scalar::Float64 => writer.double(number, value.and_then(Value::as_f64).unwrap_or_default()),
            Scalar::String => writer.bytes(number, text().as_bytes()),
            Scalar::Bytes => writer.bytes(number, &decode_base64(text().as_bytes()).unwrap_or_default()),
            Scalar::Time | Scalar::MicroTime => {
                writer.message(number, |writer| scalar::write_time(writer, value));
            }
            Scalar::Quantity => writer.message(number, |writer| scalar::write_quantity(writer, value)),
            Scalar::IntOrString => {
                writer.message(number, |writer| scalar::write_int_or_string(writer, value));
            }
            Scalar::Raw | Scalar::FreeForm | Scalar::FieldsV1 => {
                writer.message(number, |writer| scalar::write_json(writer, value));
            }
        }
    }

    fn either(&mut self, object: usize, list: Option<&Type>, value: Option<&Value>) {
        match (value, list) {
            (Some(Value::Object(schema)), Some(_)) => {
                self.nested(1, |encoder| encoder.message(object, Some(schema)));
            }
            (Some(Value::Object(schema)), None) => {
                self.nested(2, |encoder| encoder.message(object, Some(schema)));
                self.writer.varint(1, 1);
            }
            (Some(Value::Array(items)), Some(ty)) => {
                for item in items.iter().rev() {
                    self.value(2, ty, Some(item));
                }
            }
            (value, None) => self.writer.varint(1, u64::from(value == Some(&Value::Bool(true)))),
            (_, Some(_)) => {}
        }
    }
}
