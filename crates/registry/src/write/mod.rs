//! The verbs that change something.

mod along;
mod amend;
mod attempt;
mod change;
mod collection;
mod configuration;
mod create;
mod decode;
mod delete;
mod invoke;
mod managed;
mod patch;
mod scale;
mod size;
mod system;
mod update;

pub use self::configuration::ConfigurationError;
pub use self::decode::Body;

use concord_codec::{FieldValidation, PatchType};
use concord_meta::Status;

use crate::{Item, Object, ObjectName, Part};

/// What a write left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The object.
    pub item: Item,
    /// Whether it did not exist before.
    pub created: bool,
}

/// An object that is to replace the stored one.
#[derive(Debug, Clone)]
pub struct UpdateRequest<'a> {
    /// Which object.
    pub name: ObjectName<'a>,
    /// Through which door.
    pub part: Part<'a>,
    /// What it is to be, in the version of the resource.
    pub object: Object,
}

/// A change to an object.
#[derive(Debug, Clone, Copy)]
pub struct PatchRequest<'a> {
    /// Which object.
    pub name: ObjectName<'a>,
    /// Through which door.
    pub part: Part<'a>,
    /// What kind of patch the body is.
    pub patch_type: PatchType,
    /// The patch as it was sent.
    pub body: &'a [u8],
    /// Whether an apply takes what others own.
    pub force: bool,
    /// What is done about unknown and duplicate fields.
    pub validation: FieldValidation,
}

/// What a delete did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// The object is gone, and this is what to say about it.
    Gone(Box<Status>),
    /// The object is gone; the kind answers with what it was.
    GoneObject(Item),
    /// The object is still there, being deleted.
    Pending(Item),
}
