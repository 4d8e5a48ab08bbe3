//! The tables of messages: `v3.txt` says how they are written.

use std::collections::HashMap;

use serde_json::Value;

/// The messages of a version, by name.
pub(super) struct Messages(HashMap<&'static str, Vec<Member>>);

/// How members of JSON become fields.
#[derive(Debug)]
pub(super) enum Member {
    /// The member of this name.
    Named { name: String, field: u32, ty: Type, list: bool },
    /// Members that are not named.
    Others { field: u32, ty: Type },
    /// Members that begin with `x-`.
    Extensions { field: u32 },
    /// The value itself.
    Choice { condition: Condition, field: u32, ty: Type, list: bool },
}

/// What a field holds.
#[derive(Debug, PartialEq)]
pub(super) enum Type {
    String,
    Int,
    Double,
    Bool,
    Any,
    Message(&'static str),
}

/// When a value stands in a field.
#[derive(Debug)]
pub(super) enum Condition {
    Always,
    /// It has a member of this name.
    Has(&'static str),
    /// A member has this value.
    Is(&'static str, &'static str),
}

impl Messages {
    /// Reads a table, which is part of the program.
    pub(super) fn read(text: &'static str) -> Self {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let read = |line: &'static str| {
            let (name, words) = line.split_once(": ").expect("a name, a colon and words");
            (name, words.split(' ').map(member).collect())
        };
        Self(lines.map(read).collect())
    }

    pub(super) fn members(&self, message: &str) -> &[Member] {
        self.0.get(message).map_or(&[], Vec::as_slice)
    }

    /// The names of all messages.
    #[cfg(test)]
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }
}

fn member(word: &'static str) -> Member {
    let (word, list) = word.strip_suffix("[]").map_or((word, false), |word| (word, true));
    let (name, rest) = word.rsplit_once('=').expect("a field number");
    let (field, ty) =
        rest.split_once(':').map_or((rest, Type::String), |(field, ty)| (field, Type::read(ty)));
    let field = field.parse().expect("a number");
    match name {
        "x" => Member::Extensions { field },
        "*" => Member::Others { field, ty },
        _ => match name.strip_prefix('.') {
            Some(condition) => Member::Choice { condition: Condition::read(condition), field, ty, list },
            None => Member::Named { name: name.to_owned(), field, ty, list },
        },
    }
}

impl Type {
    fn read(name: &'static str) -> Self {
        match name {
            "string" => Self::String,
            "int" => Self::Int,
            "double" => Self::Double,
            "bool" => Self::Bool,
            "any" => Self::Any,
            message => Self::Message(message),
        }
    }

    /// Whether a value can stand in a field of this type.
    pub(super) fn fits(&self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Int | Self::Double => value.is_number(),
            Self::Bool => value.is_boolean(),
            Self::Any => true,
            Self::Message(_) => value.is_object(),
        }
    }
}

impl Condition {
    fn read(text: &'static str) -> Self {
        match text.split_once(':') {
            Some((member, value)) => Self::Is(member, value),
            None if text.is_empty() => Self::Always,
            None => Self::Has(text),
        }
    }

    pub(super) fn holds(&self, value: &Value) -> bool {
        match self {
            Self::Always => true,
            Self::Has(member) => value.get(member).is_some(),
            Self::Is(member, is) => value.get(member).and_then(Value::as_str) == Some(is),
        }
    }
}
