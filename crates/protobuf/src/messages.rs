//! Schemas and numbers put together.

use std::{collections::HashMap, fmt, sync::Arc};

use concord_merge::typed::Type as _;
use concord_schema::{Place, Presence, Scalar, Shape};

use crate::numbers::{Numbered, Numbers};

/// The messages of a set of kinds.
pub struct Messages(Box<[Message]>);

/// Reads and writes the objects of one kind. Cheap to clone.
#[derive(Clone)]
pub struct Codec {
    messages: Arc<Messages>,
    root: usize,
}

/// A message: what a struct is on the wire.
pub(crate) struct Message {
    pub(crate) name: Box<str>,
    /// Sorted by number.
    pub(crate) fields: Box<[Field]>,
}

pub(crate) struct Field {
    pub(crate) number: u32,
    /// The name in JSON; empty for an embedded struct.
    pub(crate) name: Box<str>,
    /// Whether it is written even if it is not there: it is no pointer in Go.
    pub(crate) always: bool,
    pub(crate) kind: Kind,
}

pub(crate) enum Kind {
    /// One value.
    One(Type),
    /// A value each time that the field is there.
    Many(Type),
    /// A message of a key and a value each time that the field is there.
    Map(Type),
    /// A message whose fields are those of the object around it.
    Embedded(usize),
}

/// What a value is.
pub(crate) enum Type {
    Scalar(Scalar),
    Message(usize),
    /// A message with a list in it, where a list itself cannot be.
    Wrapped(Box<Type>),
    /// A schema, or what may stand in its place.
    Either {
        object: usize,
        list: Option<Box<Type>>,
    },
}

impl Messages {
    pub(crate) fn get(&self, id: usize) -> &Message {
        &self.0[id]
    }
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Messages({})", self.0.len())
    }
}

impl Codec {
    pub(crate) fn messages(&self) -> &Messages {
        &self.messages
    }

    pub(crate) fn root(&self) -> usize {
        self.root
    }
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Codec({})", self.messages.get(self.root).name)
    }
}

impl Message {
    pub(crate) fn field(&self, number: u32) -> Option<&Field> {
        // Most messages have their fields at 1, 2, 3 and so on.
        let guess = self.fields.get(number as usize - 1).filter(|field| field.number == number);
        guess.or_else(|| {
            let at = self.fields.binary_search_by_key(&number, |field| field.number);
            at.ok().map(|at| &self.fields[at])
        })
    }
}

/// Puts together the messages of a set of kinds.
pub struct MessagesBuilder<'a> {
    numbers: &'a Numbers,
    messages: Vec<Option<Message>>,
    ids: HashMap<(String, String), usize>,
    kinds: Vec<usize>,
}

impl<'a> MessagesBuilder<'a> {
    /// No messages yet.
    pub fn new(numbers: &'a Numbers) -> Self {
        Self { numbers, messages: Vec::new(), ids: HashMap::new(), kinds: Vec::new() }
    }

    /// Adds a kind, whose objects are messages of this name. `None` if the table of numbers does not have it, or if it
    /// does not fit the schema.
    pub fn kind(&mut self, place: &Place, package: &str, message: &str) -> Option<()> {
        let id = self.message(place, package, message)?;
        self.kinds.push(id);
        Some(())
    }

    /// What reads and writes the kinds, in the order in which they were added.
    pub fn finish(self) -> Vec<Codec> {
        // Every message is there by now, unless the kind that it belongs to was refused.
        let none = || Message { name: Box::default(), fields: Box::default() };
        let messages = self.messages.into_iter().map(|message| message.unwrap_or_else(none)).collect();
        let messages = Arc::new(Messages(messages));
        self.kinds.into_iter().map(|root| Codec { messages: Arc::clone(&messages), root }).collect()
    }

    fn message(&mut self, place: &Place, package: &str, name: &str) -> Option<usize> {
        let key = (package.to_owned(), name.to_owned());
        if let Some(id) = self.ids.get(&key) {
            return Some(*id);
        }
        let fields = self.numbers.fields(package, name)?;
        // The place is taken before the fields are looked at: some messages contain themselves.
        let id = self.messages.len();
        self.ids.insert(key, id);
        self.messages.push(None);
        let fields =
            fields.into_iter().map(|field| self.field(place, package, field)).collect::<Option<_>>()?;
        self.messages[id] = Some(Message { name: name.into(), fields });
        Some(id)
    }

    fn field(&mut self, place: &Place, package: &str, field: Numbered) -> Option<Field> {
        if field.embedded {
            let (package, name) = match field.name.split_once('.') {
                Some((version, name)) => (in_version(package, version), name),
                None => (package.to_owned(), field.name),
            };
            let kind = Kind::Embedded(self.message(place, &package, name)?);
            return Some(Field { number: field.number, name: Box::default(), always: true, kind });
        }
        let value = place.field(field.name)?;
        let presence = place.presence(field.name)?;
        let kind = match value.shape() {
            Shape::List { .. } => Kind::Many(self.ty(&value.items()?, package)?),
            Shape::Map { .. } => Kind::Map(self.ty(&value.values()?, package)?),
            _ => Kind::One(self.ty(&value, package)?),
        };
        let always = matches!(presence, Presence::Always | Presence::NonZero) && has_zero(&kind);
        Some(Field { number: field.number, name: field.name.into(), always, kind })
    }

    fn ty(&mut self, place: &Place, package: &str) -> Option<Type> {
        Some(match place.shape() {
            Shape::Scalar(scalar) => Type::Scalar(*scalar),
            Shape::List { .. } => Type::Wrapped(Box::new(self.ty(&place.items()?, package)?)),
            Shape::Struct { .. } => {
                let (version, name) = place.go_name().split_once('.')?;
                let package = self.package(package, version, name)?;
                Type::Message(self.message(place, &package, name)?)
            }
            Shape::Either { object, list, .. } => {
                let Type::Message(object) = self.ty(&place.at(*object), package)? else { return None };
                let list = list.map(|list| place.at(list).items().and_then(|items| self.ty(&items, package)));
                let list = match list {
                    Some(list) => Some(Box::new(list?)),
                    None => None,
                };
                Type::Either { object, list }
            }
            // Protobuf has no map of maps, and neither do the APIs.
            Shape::Map { .. } => return None,
        })
    }

    /// The package of a message that a message of another package uses: Go's names have the version only.
    fn package(&self, of: &str, version: &str, name: &str) -> Option<String> {
        let packages = [of, "core.v1", "meta.v1"].map(|package| in_version(package, version));
        packages.into_iter().find(|package| self.numbers.contains(package, name))
    }
}

fn in_version(package: &str, version: &str) -> String {
    let group = package.split_once('.').map_or(package, |(group, _)| group);
    format!("{group}.{version}")
}

/// Whether Go has a value when there is none. Lists, maps and bytes are nil then.
fn has_zero(kind: &Kind) -> bool {
    matches!(kind, Kind::One(ty) if !matches!(ty, Type::Scalar(Scalar::Bytes)))
}
