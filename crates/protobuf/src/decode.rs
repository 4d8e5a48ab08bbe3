//! Messages to objects.

use concord_schema::{MAX_DEPTH, Scalar, encode_base64};
use serde_json::{Map, Number, Value};

use crate::{
    Error,
    messages::{Codec, Field, Kind, Message, Messages, Type},
    read::{Reader, wire_type},
    scalar,
};

impl Codec {
    /// The object in a message, without `kind` and `apiVersion`, which are not in it.
    ///
    /// It is as the client sent it: to have the form in which Go would write it, it has to be normalised by its schema.
    /// Fields that nobody knows are left out.
    ///
    /// # Errors
    ///
    /// When the bytes are not such a message.
    pub fn decode(&self, message: &[u8]) -> Result<Map<String, Value>, Error> {
        let mut object = Map::new();
        let decoder = Decoder { messages: self.messages(), depth: 0 };
        decoder.message(self.messages().get(self.root()), message, &mut object)?;
        Ok(object)
    }
}

#[derive(Clone, Copy)]
struct Decoder<'a> {
    messages: &'a Messages,
    depth: usize,
}

impl Decoder<'_> {
    fn deeper(self) -> Result<Self, Error> {
        let depth = self.depth + 1;
        if depth < MAX_DEPTH { Ok(Self { depth, ..self }) } else { Err(Error::TooDeep) }
    }

    /// Adds the fields of a message to an object. What the object has of them is overwritten or, if it is a message or
    /// a list itself, added to.
    fn message(self, message: &Message, bytes: &[u8], object: &mut Map<String, Value>) -> Result<(), Error> {
        let mut reader = Reader(bytes);
        while let Some(tag) = reader.tag(&message.name)? {
            match message.field(tag.number) {
                Some(field) => self.field(field, tag.wire_type, &mut reader, object)?,
                None => reader.skip(tag.wire_type)?,
            }
        }
        Ok(())
    }

    fn field(
        self,
        field: &Field,
        wire_type: u8,
        reader: &mut Reader<'_>,
        object: &mut Map<String, Value>,
    ) -> Result<(), Error> {
        let wrong = || Error::WrongWireType { wire_type, field: go_name(&field.name) };
        let ty = match &field.kind {
            Kind::Embedded(id) if wire_type == wire_type::BYTES => {
                return self.deeper()?.message(self.messages.get(*id), reader.bytes()?, object);
            }
            Kind::Map(ty) if wire_type == wire_type::BYTES => {
                let (key, value) = self.entry(ty, reader.bytes()?)?;
                members(object, &field.name).insert(key, value);
                return Ok(());
            }
            Kind::Many(ty) => {
                let items = items(object, &field.name);
                if wire_type == wire_type::BYTES && wire_type_of(ty) == wire_type::VARINT {
                    let mut packed = Reader(reader.bytes()?);
                    while !packed.0.is_empty() {
                        items.push(self.value(ty, &mut packed)?);
                    }
                    return Ok(());
                }
                if wire_type != wire_type_of(ty) {
                    return Err(wrong());
                }
                items.push(self.value(ty, reader)?);
                return Ok(());
            }
            Kind::One(ty) if wire_type == wire_type_of(ty) => ty,
            _ => return Err(wrong()),
        };
        if let Type::Message(id) = ty {
            let message = self.messages.get(*id);
            return self.deeper()?.message(message, reader.bytes()?, members(object, &field.name));
        }
        let value = self.value(ty, reader)?;
        object.insert(field.name.to_string(), value);
        Ok(())
    }

    /// A key and its value.
    fn entry(self, ty: &Type, bytes: &[u8]) -> Result<(String, Value), Error> {
        let mut reader = Reader(bytes);
        let mut key = String::new();
        let mut value = None;
        while let Some(tag) = reader.tag("entry")? {
            match (tag.number, tag.wire_type) {
                (1, wire_type::BYTES) => key = scalar::text(reader.bytes()?),
                (2, wire) if wire == wire_type_of(ty) => value = Some(self.deeper()?.value(ty, &mut reader)?),
                (_, wire) => reader.skip(wire)?,
            }
        }
        Ok((key, value.map_or_else(|| self.deeper()?.value(ty, &mut Reader(&[0])), Ok)?))
    }

    fn value(self, ty: &Type, reader: &mut Reader<'_>) -> Result<Value, Error> {
        match ty {
            Type::Scalar(scalar) => self.scalar(*scalar, reader),
            Type::Message(id) => {
                let mut object = Map::new();
                self.deeper()?.message(self.messages.get(*id), reader.bytes()?, &mut object)?;
                Ok(Value::Object(object))
            }
            Type::Wrapped(items) => self.wrapped(items, reader.bytes()?),
            Type::Either { object, list } => self.either(*object, list.as_deref(), reader.bytes()?),
        }
    }

    fn scalar(self, scalar: Scalar, reader: &mut Reader<'_>) -> Result<Value, Error> {
        Ok(match scalar {
            Scalar::Bool => Value::Bool(reader.varint()? != 0),
            // As Go does, which keeps the low bits.
            Scalar::Int32 => (reader.varint()? as i32).into(),
            Scalar::Int64 => (reader.varint()? as i64).into(),
            Scalar::Float64 => {
                let float = f64::from_bits(reader.fixed64()?);
                Value::Number(Number::from_f64(float).ok_or_else(|| Error::Float(float.to_string()))?)
            }
            Scalar::String => Value::String(scalar::text(reader.bytes()?)),
            Scalar::Bytes => Value::String(encode_base64(reader.bytes()?)),
            Scalar::Time => scalar::time(reader.bytes()?, false)?,
            Scalar::MicroTime => scalar::time(reader.bytes()?, true)?,
            Scalar::Quantity => scalar::quantity(reader.bytes()?)?,
            Scalar::IntOrString => scalar::int_or_string(reader.bytes()?)?,
            Scalar::Raw | Scalar::FreeForm | Scalar::FieldsV1 => {
                scalar::json(reader.bytes()?, MAX_DEPTH - self.depth)?
            }
        })
    }

    fn wrapped(self, items: &Type, bytes: &[u8]) -> Result<Value, Error> {
        let mut reader = Reader(bytes);
        let mut list = Vec::new();
        while let Some(tag) = reader.tag("items")? {
            if tag.number == 1 && tag.wire_type == wire_type_of(items) {
                list.push(self.deeper()?.value(items, &mut reader)?);
            } else {
                reader.skip(tag.wire_type)?;
            }
        }
        Ok(Value::Array(list))
    }

    /// An object, or in its place a list if there is a type for one, else a boolean.
    fn either(self, object: usize, list: Option<&Type>, bytes: &[u8]) -> Result<Value, Error> {
        let mut reader = Reader(bytes);
        let mut schema = None;
        let mut allows = false;
        let mut items = Vec::new();
        while let Some(tag) = reader.tag("JSONSchemaProps")? {
            match (list, tag.number, tag.wire_type) {
                (None, 1, wire_type::VARINT) => allows = reader.varint()? != 0,
                (None, 2, wire_type::BYTES) | (Some(_), 1, wire_type::BYTES) => {
                    let object = self.messages.get(object);
                    let into = schema.get_or_insert_with(Map::new);
                    self.deeper()?.message(object, reader.bytes()?, into)?;
                }
                (Some(ty), 2, wire_type::BYTES) => items.push(self.deeper()?.value(ty, &mut reader)?),
                (_, _, other) => reader.skip(other)?,
            }
        }
        Ok(match (schema, list) {
            (_, Some(_)) if !items.is_empty() => Value::Array(items),
            (Some(schema), _) => Value::Object(schema),
            (None, Some(_)) => Value::Null,
            (None, None) => Value::Bool(allows),
        })
    }
}

fn members<'a>(object: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let slot = object.entry(name).or_insert_with(|| Value::Object(Map::new()));
    slot.as_object_mut().expect("a field has one kind, and no other field its name")
}

fn items<'a>(object: &'a mut Map<String, Value>, name: &str) -> &'a mut Vec<Value> {
    let slot = object.entry(name).or_insert_with(|| Value::Array(Vec::new()));
    slot.as_array_mut().expect("a field has one kind, and no other field its name")
}

fn wire_type_of(ty: &Type) -> u8 {
    match ty {
        Type::Scalar(Scalar::Bool | Scalar::Int32 | Scalar::Int64) => wire_type::VARINT,
        Type::Scalar(Scalar::Float64) => wire_type::FIXED64,
        _ => wire_type::BYTES,
    }
}

/// The name that most fields have in Go.
fn go_name(name: &str) -> String {
    match name {
        "metadata" => "ObjectMeta".to_owned(),
        _ => {
            let mut letters = name.chars();
            letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
        }
    }
}
