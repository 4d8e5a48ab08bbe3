//! Reading messages back into JSON, to see in tests that nothing was lost.

use concord_codec::{Options, decode_yaml};
use serde_json::{Map, Value, map::Entry};

use super::{
    DEFAULT, messages,
    table::{Member, Messages, Type},
};
use crate::components::Dialect;

/// The JSON of a document's message.
pub(crate) fn decode(message: &[u8], dialect: Dialect) -> Value {
    Decoder { messages: messages(dialect) }.message("Document", message)
}

struct Decoder {
    messages: &'static Messages,
}

/// A field of a message as it stands on the wire.
enum Wire<'a> {
    Number(u64),
    Double(f64),
    Bytes(&'a [u8]),
}

impl Decoder {
    fn message(&self, name: &str, message: &[u8]) -> Value {
        let members = self.messages.members(name);
        let mut object = Map::new();
        let mut itself: Option<Value> = None;
        for (number, wire) in fields(message) {
            let member =
                members.iter().find(|member| field(member) == number).expect("a field of the message");
            match member {
                Member::Named { name, ty, list: true, .. } => {
                    let items = object.entry(name.clone()).or_insert_with(|| Value::Array(Vec::new()));
                    items.as_array_mut().expect("a list").push(self.value(ty, &wire));
                }
                Member::Named { name, ty, .. } => unite(object.entry(name.clone()), self.value(ty, &wire)),
                Member::Others { ty, .. } => self.named(ty, &wire, &mut object),
                Member::Extensions { .. } => self.named(&Type::Any, &wire, &mut object),
                Member::Choice { ty, list: false, .. } => itself = Some(self.value(ty, &wire)),
                Member::Choice { ty, .. } => {
                    let items = itself.get_or_insert_with(|| Value::Array(Vec::new()));
                    items.as_array_mut().expect("a list").push(self.value(ty, &wire));
                }
            }
        }
        if let Some(Value::String(default)) = object.remove(DEFAULT) {
            object.insert("default".to_owned(), serde_json::from_str(&default).expect("JSON"));
        }
        let is_list = members.iter().any(|member| matches!(member, Member::Choice { list: true, .. }));
        itself.unwrap_or_else(|| if is_list { Value::Array(Vec::new()) } else { object.into() })
    }

    fn named(&self, ty: &Type, wire: &Wire<'_>, into: &mut Map<String, Value>) {
        let Wire::Bytes(message) = wire else { panic!("no message") };
        let (mut name, mut value) = (String::new(), None);
        for (number, wire) in fields(message) {
            match (number, &wire) {
                (1, Wire::Bytes(text)) => name = String::from_utf8(text.to_vec()).expect("UTF-8"),
                (2, wire) => value = Some(self.value(ty, wire)),
                _ => panic!("field {number}"),
            }
        }
        into.insert(name, value.expect("a value"));
    }

    fn value(&self, ty: &Type, wire: &Wire<'_>) -> Value {
        match (ty, wire) {
            (Type::String, Wire::Bytes(text)) => String::from_utf8(text.to_vec()).expect("UTF-8").into(),
            (Type::Bool, Wire::Number(number)) => (*number == 1).into(),
            (Type::Int, Wire::Number(number)) => number.cast_signed().into(),
            // What was written as an integer is one.
            (Type::Double, Wire::Double(number)) if number.fract() == 0.0 => (*number as i64).into(),
            (Type::Double, Wire::Double(number)) => (*number).into(),
            (Type::Any, Wire::Bytes(message)) => match fields(message).as_slice() {
                [(2, Wire::Bytes(text))] => yaml(text),
                _ => panic!("no YAML"),
            },
            (Type::Message(name), Wire::Bytes(message)) => self.message(name, message),
            _ => panic!("{ty:?} is something else"),
        }
    }
}

/// A message that comes again adds to what there is.
fn unite(entry: Entry<'_>, value: Value) {
    match (entry, value) {
        (Entry::Occupied(mut known), Value::Object(more)) => {
            for (name, value) in more {
                unite(known.get_mut().as_object_mut().expect("a message").entry(name), value);
            }
        }
        (Entry::Occupied(mut known), value) => drop(known.insert(value)),
        (Entry::Vacant(free), value) => drop(free.insert(value)),
    }
}

/// The reader of YAML wants an object, so the value is put into one.
fn yaml(text: &[u8]) -> Value {
    let text = std::str::from_utf8(text).expect("UTF-8");
    let indented: String = text.lines().map(|line| format!("  {line}\n")).collect();
    let decoded = decode_yaml(format!("value:\n{indented}").as_bytes(), &Options::default());
    decoded.expect("YAML").object.remove("value").expect("a value")
}

fn field(member: &Member) -> u32 {
    match member {
        Member::Named { field, .. }
        | Member::Others { field, .. }
        | Member::Extensions { field }
        | Member::Choice { field, .. } => *field,
    }
}

fn fields(mut message: &[u8]) -> Vec<(u32, Wire<'_>)> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        let wire = match tag & 7 {
            0 => Wire::Number(varint(&mut message)),
            1 => {
                let (number, rest) = message.split_first_chunk::<8>().expect("eight bytes");
                message = rest;
                Wire::Double(f64::from_le_bytes(*number))
            }
            2 => {
                let length = usize::try_from(varint(&mut message)).expect("a length");
                let (bytes, rest) = message.split_at(length);
                message = rest;
                Wire::Bytes(bytes)
            }
            other => panic!("wire type {other}"),
        };
        found.push((u32::try_from(tag >> 3).expect("a field number"), wire));
    }
    found
}

fn varint(message: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = message.split_first().expect("a byte");
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}
