//! Documents as protobuf messages: what old clients ask for.
//!
//! A document is written from its JSON, as the tables `v2.txt` and `v3.txt` say. The messages cannot say all that JSON
//! can: a zero is written although proto3 would leave it out, and a default that is neither text, truth nor a number that
//! a double holds is repeated as an extension, [`DEFAULT`].

#[cfg(test)]
mod read;
mod table;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use read::decode;

use std::sync::LazyLock;

use concord_codec::encode_yaml;
use serde_json::{Map, Value};

use table::{Member, Messages, Type};

use crate::components::Dialect;

/// The extension that has a default which its message cannot hold, as JSON.
const DEFAULT: &str = "x-kubernetes-default-json";

static V3: LazyLock<Messages> = LazyLock::new(|| Messages::read(include_str!("v3.txt")));
static V2: LazyLock<Messages> = LazyLock::new(|| Messages::read(include_str!("v2.txt")));

fn messages(dialect: Dialect) -> &'static Messages {
    match dialect {
        Dialect::V3 => &V3,
        Dialect::V2 => &V2,
    }
}

/// The message of a document.
pub(crate) fn encode(document: &Value, dialect: Dialect) -> Vec<u8> {
    let mut out = Vec::new();
    Encoder { messages: messages(dialect) }.message("Document", document, &mut out);
    out
}

struct Encoder {
    messages: &'static Messages,
}

impl Encoder {
    /// Writes the fields of a message. Documents are as deep as schemas are, which is bounded.
    fn message(&self, name: &str, value: &Value, out: &mut Vec<u8>) {
        let members = self.messages.members(name);
        if let Some((field, ty)) = choose(members, value) {
            return match value {
                Value::Array(items) => items.iter().for_each(|item| self.field(field, ty, item, out)),
                value => self.field(field, ty, value, out),
            };
        }
        let Value::Object(object) = value else { return };
        for member in members {
            match member {
                Member::Named { name, field, ty, list } => {
                    let Some(value) = object.get(name.as_str()) else { continue };
                    match value {
                        Value::Array(items) if *list => {
                            items.iter().for_each(|item| self.field(*field, ty, item, out));
                        }
                        value => self.field(*field, ty, value, out),
                    }
                }
                Member::Others { field, ty } => {
                    let others = object.iter().filter(|(name, _)| is_other(members, name));
                    others.for_each(|(name, value)| self.named(*field, ty, name, value, out));
                }
                Member::Extensions { field } => self.extensions(*field, members, object, out),
                Member::Choice { .. } => {}
            }
        }
    }

    fn extensions(&self, field: u32, members: &[Member], object: &Map<String, Value>, out: &mut Vec<u8>) {
        for (name, value) in object.iter().filter(|(name, _)| name.starts_with("x-")) {
            self.named(field, &Type::Any, name, value, out);
        }
        let has_defaults =
            |member: &Member| matches!(member, Member::Named { ty: Type::Message("Default"), .. });
        let default = object.get("default").filter(|default| !is_simple(default));
        if let Some(default) = default.filter(|_| members.iter().any(has_defaults)) {
            self.named(field, &Type::Any, DEFAULT, &Value::String(default.to_string()), out);
        }
    }

    fn named(&self, field: u32, ty: &Type, name: &str, value: &Value, out: &mut Vec<u8>) {
        let mut message = Vec::new();
        bytes(1, name.as_bytes(), &mut message);
        self.field(2, ty, value, &mut message);
        bytes(field, &message, out);
    }

    fn field(&self, field: u32, ty: &Type, value: &Value, out: &mut Vec<u8>) {
        match ty {
            Type::String => bytes(field, value.as_str().unwrap_or_default().as_bytes(), out),
            Type::Bool => number(field, u64::from(*value == Value::Bool(true)), out),
            Type::Int => {
                let whole = value.as_i64().or_else(|| value.as_f64().map(|value| value as i64));
                number(field, whole.unwrap_or_default().cast_unsigned(), out);
            }
            Type::Double => {
                tag(field, 1, out);
                out.extend(value.as_f64().unwrap_or_default().to_le_bytes());
            }
            Type::Any => {
                let mut text = Vec::new();
                encode_yaml(value, &mut text);
                let mut message = Vec::new();
                bytes(2, &text, &mut message);
                bytes(field, &message, out);
            }
            Type::Message(name) => {
                let mut message = Vec::new();
                self.message(name, value, &mut message);
                bytes(field, &message, out);
            }
        }
    }
}

/// Whether no member is named so.
fn is_other(members: &[Member], name: &str) -> bool {
    let is_named = |member: &Member| matches!(member, Member::Named { name: own, .. } if own == name);
    let extends = |member: &Member| matches!(member, Member::Extensions { .. }) && name.starts_with("x-");
    !members.iter().any(|member| is_named(member) || extends(member))
}

/// The first field that the value itself can stand in.
fn choose<'a>(members: &'a [Member], value: &Value) -> Option<(u32, &'a Type)> {
    members.iter().find_map(|member| match member {
        Member::Choice { condition, field, ty, list } => {
            let fits = if *list { value.is_array() } else { ty.fits(value) };
            (fits && condition.holds(value)).then_some((*field, ty))
        }
        _ => None,
    })
}

/// Whether the message of defaults holds it.
fn is_simple(default: &Value) -> bool {
    const EXACT: u64 = 1 << 53;
    match default {
        Value::String(_) | Value::Bool(_) => true,
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.unsigned_abs() <= EXACT,
            None => number.is_f64(),
        },
        _ => false,
    }
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn tag(field: u32, wire: u32, out: &mut Vec<u8>) {
    varint(u64::from(field << 3 | wire), out);
}

fn number(field: u32, value: u64, out: &mut Vec<u8>) {
    tag(field, 0, out);
    varint(value, out);
}

fn bytes(field: u32, value: &[u8], out: &mut Vec<u8>) {
    tag(field, 2, out);
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}
