//! Resources and what their verbs mean, on the log and without HTTP.
//!
//! A [`Resource`] is one served version of a kind; its [`Storage`] is shared by all versions of the kind.
//! The [`Registry`] carries out the verbs: reads from snapshots of the replica, writes as transactions of
//! the store. What is particular to a kind comes through [`Strategy`], what the server decides about a
//! request beyond that through [`Admission`].
//!
//! Objects stay bytes wherever they are only passed on: an [`Item`] is a stored value with its revision, and
//! [`Resource::write_object`] puts the revision in while copying. They are parsed for writes, for selectors
//! and where a client asked for another version than the stored one.
//!
//! This crate knows no concrete resource, no HTTP, and never acknowledges what is not durable.

mod admission;
mod audience;
mod context;
mod convert;
mod encode;
mod failure;
mod form;
mod frames;
mod gate;
mod item;
mod lifetime;
mod list;
mod object;
mod observer;
mod owners;
mod registry;
mod remote;
mod resource;
mod select;
mod storage;
mod strategy;
mod unchanged;
mod watch;
mod write;

pub use admission::{Admission, Attributes, Condition, Guard, Operation};
pub use audience::Audience;
/// What bodies are made of, for whoever answers with a [`Virtual`].
pub use concord_schema::Schema;
pub use context::{Context, Kept, Note};
pub use convert::{ConversionError, Converter, Renaming};
pub use encode::stored_version;
pub use form::Form;
pub use gate::Gate;
pub use item::Item;
pub use lifetime::Lifetime;
pub use list::{ListRequest, Listing, PlacedList};
pub use object::{Metadata, Object, metadata, metadata_mut};
pub use observer::{Observer, QueueEvent, RuleWork, observe_rules, timed_rules};
pub use owners::with_owners;
pub use registry::Registry;
pub use remote::{Remote, Translator};
pub use resource::{
    Backing, Deprecation, Invocation, Protobuf, Resource, ResourceNames, Resources, Scaling, Subresource,
    SubresourceKind, Verb, Virtual,
};
pub use select::Selection;
pub use storage::{ObjectName, Storage};
pub use strategy::{DefaultDeletion, FieldPath, Part, Strategy};
pub use watch::{Watch, WatchEnd, WatchEvent, WatchRequest};
pub use write::{Body, ConfigurationError, DeleteOutcome, PatchRequest, UpdateRequest, Written};
