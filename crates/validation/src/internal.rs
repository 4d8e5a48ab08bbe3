//! Values as upstream's own types show them.
//!
//! Where an error shows a whole structure, kube-apiserver prints the form it works with inside: all fields, absent ones
//! too, in the order and under the names of its Go types. `internal.txt` is the table of those types. A line is a type
//! and its fields, `Name:type` or `Name=member:type` where the member of the API has another name than the field with a
//! small letter; `+Type` takes the fields of another type in, `^` takes the member from the object around.
//! Types are `s`tring, `i`nteger, `o`: one that is left out if it is zero, `b`oolean, `q`uantity, `t`ime, label se`L`ector, `j`: what JSON has, or another
//! type's name, after `*` for what may be absent, `[]` for lists and `{}` for maps.

use std::{collections::HashMap, sync::LazyLock};

use concord_meta::{field::BadValue, go, objectmeta::MEMBERS};
use serde_json::{Map, Value};

type Types = HashMap<&'static str, Vec<Field>>;

enum Field {
    Inline(&'static str),
    Member { name: &'static str, member: String, of_parent: bool, shape: &'static str },
}

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    let line = |line: &'static str| {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        (name, words.filter_map(field).collect())
    };
    include_str!("internal.txt").lines().map(line).collect()
});

fn field(word: &'static str) -> Option<Field> {
    if let Some(inline) = word.strip_prefix('+') {
        return Some(Field::Inline(inline));
    }
    let (name, shape) = word.split_once(':')?;
    let (of_parent, name) = name.strip_prefix('^').map_or((false, name), |name| (true, name));
    let (name, member) = match name.split_once('=') {
        Some((name, member)) => (name, member.to_owned()),
        None => {
            (name, name.chars().take(1).flat_map(char::to_lowercase).chain(name.chars().skip(1)).collect())
        }
    };
    Some(Field::Member { name, member, of_parent, shape })
}

/// A value of one of upstream's types as an error shows it.
pub(crate) fn shown(type_name: &'static str, value: Option<&Value>) -> BadValue {
    BadValue::verbatim(compact(&of(type_name, value)))
}

/// A list of such values.
pub(crate) fn shown_list(type_name: &'static str, values: &[Value]) -> BadValue {
    let items: Vec<String> = values.iter().map(|value| compact(&of(type_name, Some(value)))).collect();
    BadValue::verbatim(if items.is_empty() { "null".to_owned() } else { format!("[{}]", items.join(",")) })
}

/// The difference between two values of one of upstream's types.
pub(crate) fn difference(type_name: &'static str, old: Option<&Value>, new: Option<&Value>) -> String {
    crate::diff::unified(&pretty(&of(type_name, old)), &pretty(&of(type_name, new)))
}

/// The difference between two lists of such values.
pub(crate) fn list_difference(type_name: &'static str, old: &[Value], new: &[Value]) -> String {
    let list = |values: &[Value]| match values {
        [] => null(),
        values => Shown::List(values.iter().map(|value| of(type_name, Some(value))).collect()),
    };
    crate::diff::unified(&pretty(&list(old)), &pretty(&list(new)))
}

/// A value in the order of Go's fields, which no sorted map can hold.
enum Shown {
    Plain(String),
    List(Vec<Shown>),
    Object(Vec<(String, Shown)>),
}

fn null() -> Shown {
    Shown::Plain("null".to_owned())
}

fn of(type_name: &str, value: Option<&Value>) -> Shown {
    let empty = Map::new();
    let object = value.and_then(Value::as_object).unwrap_or(&empty);
    let mut members = Vec::new();
    push(&mut members, type_name, object, object);
    Shown::Object(members)
}

fn push(
    members: &mut Vec<(String, Shown)>,
    type_name: &str,
    object: &Map<String, Value>,
    parent: &Map<String, Value>,
) {
    if type_name == "ObjectMeta" {
        let metadata = |name: &&str| object.get("metadata")?.get(name);
        // Metadata is the same inside and outside: absent members are left out.
        let present = MEMBERS.iter().filter_map(|name| Some(((*name).to_owned(), metadata(name)?)));
        members.extend(present.map(|(name, value)| (name, as_it_is(value))));
        return;
    }
    for field in TYPES.get(type_name).into_iter().flatten() {
        match field {
            Field::Inline(inline) => push(members, inline, object, parent),
            Field::Member { name, member, of_parent, shape } => {
                let source = if *of_parent { parent } else { object };
                let value = source.get(member).filter(|value| !value.is_null());
                if *shape == "o" && value.is_none_or(|value| *value == 0) {
                    continue;
                }
                members.push(((*name).to_owned(), shaped(shape, value, object)));
            }
        }
    }
}

fn shaped(shape: &str, value: Option<&Value>, parent: &Map<String, Value>) -> Shown {
    if let Some(inner) = shape.strip_prefix('*') {
        // The security context of a pod is never absent inside: it also holds fields of the spec.
        return match value {
            None if inner != "PodSecurityContext" => null(),
            value => shaped(inner, value, parent),
        };
    }
    if let Some(inner) = shape.strip_prefix("[]") {
        let items = value.and_then(Value::as_array);
        return items.map_or_else(null, |items| {
            Shown::List(items.iter().map(|item| shaped(inner, Some(item), parent)).collect())
        });
    }
    if let Some(inner) = shape.strip_prefix("{}") {
        let entries = value.and_then(Value::as_object);
        let entry = |(key, value): (&String, &Value)| (key.clone(), shaped(inner, Some(value), parent));
        return entries.map_or_else(null, |entries| Shown::Object(entries.iter().map(entry).collect()));
    }
    let plain = |zero: &str| Shown::Plain(value.map_or_else(|| zero.to_owned(), go::json));
    match shape {
        "s" => plain("\"\""),
        "q" => plain("\"0\""),
        "i" | "j" | "o" => plain("0"),
        "b" => plain("false"),
        "t" => plain("null"),
        "L" => selector(value),
        name => {
            let empty = Map::new();
            let object = value.and_then(Value::as_object).unwrap_or(&empty);
            let mut members = Vec::new();
            push(&mut members, name, object, parent);
            Shown::Object(members)
        }
    }
}

fn as_it_is(value: &Value) -> Shown {
    match value {
        Value::Array(items) => Shown::List(items.iter().map(as_it_is).collect()),
        Value::Object(members) => {
            Shown::Object(members.iter().map(|(name, value)| (name.clone(), as_it_is(value))).collect())
        }
        plain => Shown::Plain(go::json(plain)),
    }
}

/// Selectors are the same inside and outside: absent members are left out.
fn selector(value: Option<&Value>) -> Shown {
    let mut members = Vec::new();
    if let Some(labels) = value.and_then(|value| value.get("matchLabels")).and_then(Value::as_object) {
        let labels = labels.iter().map(|(key, value)| (key.clone(), Shown::Plain(go::json(value))));
        members.push(("matchLabels".to_owned(), Shown::Object(labels.collect())));
    }
    if let Some(expressions) = value.and_then(|value| value.get("matchExpressions")).and_then(Value::as_array)
    {
        let plain = |value: &Value| Shown::Plain(go::json(value));
        let expression = |item: &Value| {
            let names = ["key", "operator", "values"].into_iter();
            let present = names.filter_map(|name| Some((name.to_owned(), item.get(name)?)));
            Shown::Object(
                present
                    .map(|(name, value)| match value.as_array() {
                        Some(values) => (name, Shown::List(values.iter().map(plain).collect())),
                        None => (name, plain(value)),
                    })
                    .collect(),
            )
        };
        members
            .push(("matchExpressions".to_owned(), Shown::List(expressions.iter().map(expression).collect())));
    }
    Shown::Object(members)
}

fn compact(shown: &Shown) -> String {
    match shown {
        Shown::Plain(text) => text.clone(),
        Shown::List(items) => format!("[{}]", items.iter().map(compact).collect::<Vec<_>>().join(",")),
        Shown::Object(members) => {
            let member = |(name, value): &(String, Shown)| {
                format!("{}:{}", go::json(&Value::from(name.as_str())), compact(value))
            };
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
        }
    }
}

/// With one space for each level, as upstream prints it before it compares.
fn pretty(shown: &Shown) -> String {
    let mut out = String::new();
    write_pretty(&mut out, shown, 0);
    out
}

fn write_pretty(out: &mut String, shown: &Shown, level: usize) {
    let line = |out: &mut String, level: usize| {
        out.push('\n');
        (0..level).for_each(|_| out.push(' '));
    };
    match shown {
        Shown::Plain(text) => out.push_str(text),
        Shown::List(items) if items.is_empty() => out.push_str("[]"),
        Shown::Object(members) if members.is_empty() => out.push_str("{}"),
        Shown::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                line(out, level + 1);
                write_pretty(out, item, level + 1);
            }
            line(out, level);
            out.push(']');
        }
        Shown::Object(members) => {
            out.push('{');
            for (at, (name, value)) in members.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                line(out, level + 1);
                out.push_str(&go::json(&Value::from(name.as_str())));
                out.push_str(": ");
                write_pretty(out, value, level + 1);
            }
            line(out, level);
            out.push('}');
        }
    }
}
