//! Reading what the build script wrote.
//!
//! First a line per kind, with tabs between group, version, kind and the number of its type; then an empty
//! line; then a line per type, from number 2 on:
//!
//! ```text
//! s  <name>  <scalar>
//! m  <name>  <type of values>  a?
//! l  <name>  <type of items>   set | map=<keys> | nothing
//! e  <name>  <type of object>  <type of list>?  b?
//! t  <name>  a?  <field>...
//! ```
//!
//! where `a` stands for atomic and `b` for "or a boolean". A name is that of an OpenAPI definition, which ends
//! in Go's name of the type, or Go's name alone. A field is `name:<type><presence>`, followed by words:
//! `required=`, `retain=`, `in=` the embedded struct, `merge=` or `replace=` with the merge key, `default=` a JSON value,
//! `since=` the release that introduced it, `until=` the last one that has it, `gate=` the features that it belongs to.

use std::{collections::HashMap, sync::Arc};

use concord_merge::strategic::PatchStrategy;
use concord_schema::{Builder, Field, ListType, Presence, Scalar, Schema, Shape, TypeId};

use super::{KEEP_EMPTY_LISTS, Key};
use crate::Release;

/// What the names of all definitions begin with, and none of Go's.
const DEFINITION: &str = "io.k8s.";

/// The schemas of a release by group, version and kind; `None` if the text is not as described.
pub(super) fn read(text: &'static str, release: Release) -> Option<HashMap<Key, Arc<Schema>>> {
    let (index, lines) = text.split_once("\n\n")?;
    let mut reader = Reader { release, types: Builder::new(), ids: Vec::new() };
    reader.declare(lines)?;
    for (at, line) in lines.lines().enumerate() {
        let shape = reader.shape(line)?;
        reader.types.define(reader.ids[at], shape);
    }
    let Reader { types, ids, .. } = reader;
    let types = types.finish();
    let mut schemas = HashMap::new();
    for line in index.lines() {
        let [group, version, kind, id] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
        let mut schema = Schema::new(types.place(*ids.get(id.parse::<usize>().ok()?.checked_sub(2)?)?));
        if KEEP_EMPTY_LISTS.contains(&group) {
            schema = schema.keeping_empty_lists();
        }
        schemas.insert((group, version, kind), Arc::new(schema));
    }
    Some(schemas)
}

struct Reader {
    release: Release,
    types: Builder,
    ids: Vec<TypeId>,
}

impl Reader {
    /// Types refer to later ones, so each gets its place first.
    fn declare(&mut self, lines: &str) -> Option<()> {
        for line in lines.lines() {
            let name = line.split('\t').nth(1)?;
            let definition = name.starts_with(DEFINITION).then_some(name);
            let id = self.types.declare(definition.map_or(name, go_name));
            if let Some(definition) = definition {
                self.types.set_definition(id, definition);
            }
            self.ids.push(id);
        }
        Some(())
    }

    fn id(&self, number: &str) -> Option<TypeId> {
        self.ids.get(number.parse::<usize>().ok()?.checked_sub(2)?).copied()
    }

    fn shape(&mut self, line: &str) -> Option<Shape> {
        let mut parts = line.split('\t');
        let sort = parts.next()?;
        let _go = parts.next()?;
        let first = parts.next()?;
        match sort {
            "s" => Some(Shape::Scalar(scalar(first)?)),
            "m" => Some(Shape::Map { values: self.id(first)?, atomic: parts.next()? == "a" }),
            "l" => Some(Shape::List { items: self.id(first)?, list_type: list_type(parts.next()?)? }),
            "e" => {
                let list = parts.next()?;
                let list = if list.is_empty() { None } else { Some(self.id(list)?) };
                Some(Shape::Either { object: self.id(first)?, list, boolean: parts.next()? == "b" })
            }
            "t" => {
                let fields = parts.map(|field| self.field(field)).collect::<Option<Vec<_>>>()?;
                let fields = fields.into_iter().flatten().collect();
                Some(Shape::Struct { fields, atomic: first == "a" })
            }
            _ => None,
        }
    }

    /// The field, if the release has it; the outer `None` if it cannot be read.
    fn field(&mut self, text: &str) -> Option<Option<Field>> {
        let mut words = text.split(' ');
        let (name, ty) = words.next()?.split_once(':')?;
        let (number, presence) = ty.split_at_checked(ty.len().checked_sub(1)?)?;
        let mut field = Field::new(self.types.name(name), self.id(number)?, self::presence(presence)?);
        for word in words {
            let (word, value) = word.split_once('=')?;
            let name = (!value.is_empty()).then(|| self.types.name(value));
            field = match word {
                "required" => field.required(),
                "retain" => field.retaining_keys(),
                "in" => field.embedded(name?),
                "merge" => field.patch(PatchStrategy::Merge, name),
                "replace" => field.patch(PatchStrategy::Replace, name),
                "default" => field.default_value(serde_json::from_str(value).ok()?),
                "gate" => field.of_feature(name?),
                "since" if value.parse::<Release>().ok()? > self.release => return Some(None),
                "until" if value.parse::<Release>().ok()? < self.release => return Some(None),
                "since" | "until" => field,
                _ => return None,
            };
        }
        Some(Some(field))
    }
}

/// `v1.PodSpec`, of `io.k8s.api.core.v1.PodSpec`.
fn go_name(definition: &str) -> &str {
    definition.rmatch_indices('.').nth(1).map_or(definition, |(at, _)| &definition[at + 1..])
}

fn presence(code: &str) -> Option<Presence> {
    match code {
        "g" => Some(Presence::Given),
        "z" => Some(Presence::NonZero),
        "a" => Some(Presence::Always),
        "n" => Some(Presence::Nullable),
        _ => None,
    }
}

fn list_type(text: &str) -> Option<ListType> {
    match text {
        "" => Some(ListType::Atomic),
        "set" => Some(ListType::Set),
        _ => Some(ListType::Map(text.strip_prefix("map=")?.split(',').map(str::to_owned).collect())),
    }
}

fn scalar(word: &str) -> Option<Scalar> {
    Some(match word {
        "string" => Scalar::String,
        "bool" => Scalar::Bool,
        "int32" => Scalar::Int32,
        "int64" => Scalar::Int64,
        "float64" => Scalar::Float64,
        "bytes" => Scalar::Bytes,
        "time" => Scalar::Time,
        "micro-time" => Scalar::MicroTime,
        "quantity" => Scalar::Quantity,
        "int-or-string" => Scalar::IntOrString,
        "raw" => Scalar::Raw,
        "free-form" => Scalar::FreeForm,
        "fields-v1" => Scalar::FieldsV1,
        _ => return None,
    })
}
