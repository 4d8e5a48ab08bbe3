//! One node, as others ask for it.

use serde_json::Value;

use super::{
    ALLOWED, Data, Extra, FORBIDDEN, Kind, Limits, ListType, Member, NO_FORMAT, NONE, NodeId, Pattern, ROOT,
    Schema, flag,
};
use crate::{formats::Format, rules::Rule};

/// A place of a schema: a small handle.
///
/// It says everything that a type checker of rules needs: [`kind`](Self::kind), [`format`](Self::format),
/// [`items`](Self::items), [`properties`](Self::properties), [`additional`](Self::additional) and the bounds.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    pub(super) schema: &'a Schema,
    pub(super) id: NodeId,
}

/// `additionalProperties`.
#[derive(Clone, Copy)]
pub enum Additional<'a> {
    /// Not given.
    Unset,
    /// `true`, or `false`.
    Bool(bool),
    /// What the values are.
    Schema(Node<'a>),
}

impl<'a> Additional<'a> {
    /// The schema of the values, if there is one.
    #[must_use]
    pub fn schema(self) -> Option<Node<'a>> {
        match self {
            Self::Schema(node) => Some(node),
            Self::Unset | Self::Bool(_) => None,
        }
    }
}

static NO_LIMITS: Limits = Limits {
    maximum: None,
    minimum: None,
    multiple_of: None,
    max_length: None,
    min_length: None,
    max_items: None,
    min_items: None,
    max_properties: None,
    min_properties: None,
};

impl<'a> Node<'a> {
    fn data(self) -> &'a Data {
        self.schema.data(self.id)
    }

    fn extra(self) -> Option<&'a Extra> {
        self.schema.extras.get(self.data().extra as usize)
    }

    fn is(self, flag: u16) -> bool {
        self.data().flags & flag != 0
    }

    fn child(self, id: NodeId) -> Option<Self> {
        (id != NONE).then_some(Self { id, ..self })
    }

    fn members(self) -> &'a [Member] {
        let (start, end) = self.data().members;
        &self.schema.members[start as usize..end as usize]
    }

    pub(crate) fn id(self) -> NodeId {
        self.id
    }

    /// Whether this is the root of the schema.
    #[must_use]
    pub fn is_root(self) -> bool {
        self.id == ROOT
    }

    /// The declared type.
    #[must_use]
    pub fn kind(self) -> Kind {
        self.data().kind
    }

    /// The declared format; empty when there is none.
    #[must_use]
    pub fn format(self) -> &'a str {
        let format = self.schema.formats.get(usize::from(self.data().format));
        format.map_or("", |format| self.schema.text(format.name))
    }

    /// What the format demands.
    pub(crate) fn checked_format(self) -> Option<Format> {
        let format = self.data().format;
        (format != NO_FORMAT).then(|| self.schema.formats[usize::from(format)].format)
    }

    /// Whether null is a value of this place.
    #[must_use]
    pub fn is_nullable(self) -> bool {
        self.is(flag::NULLABLE)
    }

    /// `x-kubernetes-int-or-string`.
    #[must_use]
    pub fn is_int_or_string(self) -> bool {
        self.is(flag::INT_OR_STRING)
    }

    /// `x-kubernetes-embedded-resource`.
    #[must_use]
    pub fn is_embedded_resource(self) -> bool {
        self.is(flag::EMBEDDED)
    }

    /// `x-kubernetes-preserve-unknown-fields`.
    #[must_use]
    pub fn preserves_unknown_fields(self) -> bool {
        self.is(flag::PRESERVE)
    }

    /// Whether this node or one above it preserves unknown fields.
    pub(crate) fn is_preserved(self) -> bool {
        self.is(flag::PRESERVE | flag::INSIDE_PRESERVED)
    }

    /// Whether `x-kubernetes-map-type` is `atomic`.
    #[must_use]
    pub fn is_atomic_map(self) -> bool {
        self.is(flag::ATOMIC_MAP)
    }

    pub(crate) fn has_defaults_below(self) -> bool {
        self.is(flag::DEFAULTS_BELOW)
    }

    pub(crate) fn has_embedded_below(self) -> bool {
        self.is(flag::EMBEDDED_BELOW)
    }

    pub(crate) fn has_lists_below(self) -> bool {
        self.is(flag::LISTS_BELOW)
    }

    /// Whether this node or one below it has rules: where there are none, nothing has to be looked into.
    #[must_use]
    pub fn has_rules_below(self) -> bool {
        self.is(flag::RULES_BELOW)
    }

    pub(crate) fn is_exclusive_minimum(self) -> bool {
        self.is(flag::EXCLUSIVE_MINIMUM)
    }

    pub(crate) fn is_exclusive_maximum(self) -> bool {
        self.is(flag::EXCLUSIVE_MAXIMUM)
    }

    pub(crate) fn has_unique_items(self) -> bool {
        self.is(flag::UNIQUE)
    }

    /// `x-kubernetes-list-type`.
    #[must_use]
    pub fn list_type(self) -> ListType {
        self.data().list_type
    }

    /// `x-kubernetes-list-map-keys`.
    #[must_use]
    pub fn map_keys(self) -> &'a [String] {
        self.extra().map_or(&[], |extra| &extra.map_keys)
    }

    /// The schema of the items.
    #[must_use]
    pub fn items(self) -> Option<Self> {
        self.child(self.data().items)
    }

    /// The declared properties, by name.
    pub fn properties(self) -> impl ExactSizeIterator<Item = (&'a str, Self)> {
        let schema = self.schema;
        self.members().iter().map(move |member| (schema.text(member.name), schema.at(member.node)))
    }

    /// A declared property.
    #[must_use]
    pub fn property(self, name: &str) -> Option<Self> {
        let members = self.members();
        let at = members.binary_search_by(|member| self.schema.text(member.name).cmp(name)).ok()?;
        self.child(members[at].node)
    }

    /// What may stand beside the declared properties.
    #[must_use]
    pub fn additional(self) -> Additional<'a> {
        match self.data().additional {
            NONE => Additional::Unset,
            ALLOWED => Additional::Bool(true),
            FORBIDDEN => Additional::Bool(false),
            id => Additional::Schema(Self { id, ..self }),
        }
    }

    /// The schema of a member: that of the property, or else of the additional properties.
    pub(crate) fn member(self, name: &str) -> Option<Self> {
        self.property(name).or_else(|| self.additional().schema())
    }

    /// The default.
    #[must_use]
    pub fn default_value(self) -> Option<&'a Value> {
        self.extra()?.default.as_deref()
    }

    /// The values of the enumeration; empty when there is none.
    #[must_use]
    pub fn enumeration(self) -> &'a [Value] {
        self.extra().map_or(&[], |extra| &extra.enumeration)
    }

    /// The names of the properties that must be given.
    pub fn required(self) -> impl Iterator<Item = &'a str> {
        let names = self.extra().map_or(&[][..], |extra| &extra.required);
        names.iter().map(move |name| self.schema.text(*name))
    }

    pub(crate) fn limits(self) -> &'a Limits {
        self.extra()
            .and_then(|extra| extra.limits)
            .map_or(&NO_LIMITS, |number| &self.schema.limits[number as usize])
    }

    /// `maxLength`.
    #[must_use]
    pub fn max_length(self) -> Option<i64> {
        self.limits().max_length
    }

    /// `maxItems`.
    #[must_use]
    pub fn max_items(self) -> Option<i64> {
        self.limits().max_items
    }

    /// `maxProperties`.
    #[must_use]
    pub fn max_properties(self) -> Option<i64> {
        self.limits().max_properties
    }

    /// The rules of this place: `x-kubernetes-validations`.
    #[must_use]
    pub fn rules(self) -> &'a [Rule] {
        self.extra().map_or(&[], |extra| &extra.rules)
    }

    pub(crate) fn pattern(self) -> Option<&'a Pattern> {
        let index = self.extra()?.pattern?;
        self.schema.patterns.get(index as usize)
    }

    pub(crate) fn all_of(self) -> impl ExactSizeIterator<Item = Self> {
        self.junctor(|junctors| &junctors.all_of)
    }

    pub(crate) fn any_of(self) -> impl ExactSizeIterator<Item = Self> {
        self.junctor(|junctors| &junctors.any_of)
    }

    pub(crate) fn one_of(self) -> impl ExactSizeIterator<Item = Self> {
        self.junctor(|junctors| &junctors.one_of)
    }

    pub(crate) fn not(self) -> Option<Self> {
        let not = self.extra()?.junctors.as_ref()?.not?;
        self.child(not)
    }

    fn junctor(self, choose: fn(&'a super::Junctors) -> &'a [NodeId]) -> impl ExactSizeIterator<Item = Self> {
        let junctors = self.extra().and_then(|extra| extra.junctors.as_deref());
        junctors.map_or(&[][..], choose).iter().map(move |id| self.schema.at(*id))
    }

    /// Whether a junctor is checked here.
    pub(crate) fn has_junctors(self) -> bool {
        self.extra().is_some_and(|extra| extra.junctors.is_some())
    }
}

impl std::fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node({} {})", self.id.0, self.kind().name())
    }
}
