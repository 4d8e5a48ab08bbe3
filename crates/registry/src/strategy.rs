use std::{borrow::Cow, time::Duration};

use concord_merge::apply::ResetFields;
use concord_meta::{GroupVersion, field, fields::KnownFields, names::NameRule, options::DeleteOptions};

use crate::{Context, Object};

/// Which face of an object a write goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// The resource itself.
    Main,
    /// A subresource that is a view of the same object, such as `status`.
    Sub(&'a str),
}

impl<'a> Part<'a> {
    /// The subresource; empty for the resource itself.
    pub fn subresource(self) -> &'a str {
        match self {
            Self::Main => "",
            Self::Sub(name) => name,
        }
    }
}

/// What happens to dependents when a delete does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultDeletion {
    /// They are deleted by the garbage collector.
    Dependents,
    /// They are orphaned.
    Orphan,
    /// The kind has no dependents and takes no finalizers for them.
    Unsupported,
}

/// Where a field that can be selected on is found: the names of the members on the way.
pub type FieldPath = &'static [&'static str];

/// What is particular to a kind.
///
/// Objects are in the storage version except where a method says otherwise. No method does I/O; what needs
/// the log is [`crate::Admission`].
pub trait Strategy: Send + Sync + 'static {
    /// What names are allowed.
    fn name_rule(&self) -> NameRule {
        NameRule::Dns1123Subdomain
    }

    /// Why an object in a served version cannot be read, although its fields have the right types: a text may have to be a
    /// number. Asked before defaults are filled in.
    fn unreadable(&self, _object: &Object) -> Option<String> {
        None
    }

    /// Fills in what clients may leave out, in a served version. Called for whatever a client sends and
    /// after every patch.
    fn default(&self, _api_version: &str, _object: &mut Object) {}

    /// Whether an object without a name, for which none is to be generated, gets one all the same.
    fn names_itself(&self) -> bool {
        false
    }

    /// Brings a new object into the state in which objects of the kind begin.
    fn prepare_for_create(&self, _context: &Context, _object: &mut Object) {}

    /// Undoes what this part may not change, and maintains what the server maintains, such as the generation.
    fn prepare_for_update(&self, _context: &Context, _part: Part<'_>, _new: &mut Object, _old: &Object) {}

    /// Adds what a reader would find in the object anyway, before it becomes what is stored: so that the stored bytes
    /// are what is read.
    fn before_encoding(&self, _object: &mut Object) {}

    /// Whether the metadata of a new object is looked at only if nothing else is wrong with it.
    fn metadata_comes_last(&self) -> bool {
        false
    }

    /// What is wrong with a new object beyond its metadata.
    fn validate_create(&self, _context: &Context, _object: &Object) -> Vec<field::Error> {
        Vec::new()
    }

    /// What is wrong with a changed object beyond its metadata.
    fn validate_update(
        &self,
        _context: &Context,
        _part: Part<'_>,
        _new: &Object,
        _old: &Object,
    ) -> Vec<field::Error> {
        Vec::new()
    }

    /// What else is wrong with an object that comes through a version, whatever it is stored in; `old` is what it was
    /// before, if it was. Both are in the version of the storage.
    fn validate_through(
        &self,
        _version: &GroupVersion,
        _new: &Object,
        _old: Option<&Object>,
    ) -> Vec<field::Error> {
        Vec::new()
    }

    /// What to tell the client about an object it wrote.
    fn warnings(
        &self,
        _context: &Context,
        _part: Part<'_>,
        _new: &Object,
        _old: Option<&Object>,
    ) -> Vec<String> {
        Vec::new()
    }

    /// The fields that this part does not take from clients, for the record of who owns what.
    fn reset_fields(&self, _part: Part<'_>) -> ResetFields {
        ResetFields::none()
    }

    /// Whether an update of an object that does not exist creates it.
    fn allow_create_on_update(&self) -> bool {
        false
    }

    /// Whether an update may leave out the resource version.
    fn allow_unconditional_update(&self) -> bool {
        true
    }

    /// Whether a finished delete answers with the object instead of a Status.
    fn return_deleted_object(&self) -> bool {
        false
    }

    /// What happens to dependents when a delete does not say.
    fn default_deletion(&self) -> DefaultDeletion {
        DefaultDeletion::Dependents
    }

    /// What to tell who deletes an object without saying what becomes of its dependents.
    fn deletion_warning(&self) -> Option<&'static str> {
        None
    }

    /// How long the deletion of this object is to take, in seconds; `None` if the kind is deleted at once.
    fn graceful_deletion(&self, _object: &Object, _options: &DeleteOptions) -> Option<i64> {
        None
    }

    /// Whether something other than `metadata.finalizers` keeps the object from going away.
    fn is_held(&self, _object: &Object) -> bool {
        false
    }

    /// Whether the deletion of objects is the kind's own affair, which says nothing about how long it takes.
    fn has_own_deletion(&self) -> bool {
        false
    }

    /// Called when the deletion of an object that stays for now begins.
    fn begin_deletion(&self, _object: &mut Object) {}

    /// Why an object may not be deleted: the text after `is forbidden: `.
    fn forbid_delete(&self, _name: &str) -> Option<&'static str> {
        None
    }

    /// When the stored object expires.
    fn time_to_live(&self) -> Option<Duration> {
        None
    }

    /// The fields that can be selected on besides the name and the namespace.
    fn known_fields(&self) -> KnownFields<'_> {
        KnownFields::Metadata
    }

    /// The value of such a field.
    fn field<'a>(&self, _object: &'a Object, _field: &str) -> Cow<'a, str> {
        Cow::Borrowed("")
    }
}
