//! How the objects of a resource are written, named, deleted and selected.

use std::time::Duration;

/// The behaviour of a resource that is not the same for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StrategyFacts {
    /// An update of an object that does not exist creates it.
    pub create_on_update: bool,
    /// An update without resourceVersion is refused.
    pub conditional_update: bool,
    /// metadata.generation is counted.
    pub generation: bool,
    /// What happens to dependents if a deletion does not say it.
    pub propagation: Propagation,
    /// A deletion is answered with the object.
    pub returns_deleted: bool,
    /// What a name may be.
    pub name: NameRule,
    /// How long objects live.
    pub ttl: Option<Duration>,
    /// What becomes of a status that is given on creation, where the status has an endpoint of its own.
    pub status_on_create: StatusOnCreate,
    /// The fields that a selector may name besides metadata.name and metadata.namespace.
    pub fields: Vec<SelectableField>,
    /// A selector may not name metadata.namespace.
    pub no_namespace_field: bool,
    pub(super) unsupported_field: Option<&'static str>,
    pub(super) reset: Vec<&'static str>,
    pub(super) status_reset: Vec<&'static str>,
    pub(super) approval_reset: Vec<&'static str>,
    pub(super) key: Option<&'static str>,
}

/// What happens to dependents if a deletion does not say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted.
    #[default]
    DeleteDependents,
    /// They stay.
    Orphan,
    /// There can be none, and the policy of the request is ignored.
    Unsupported,
}

/// What a name may be. Every name is a path segment: not `.` or `..`, without `/` and `%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS-1123 subdomain.
    #[default]
    Subdomain,
    /// A DNS-1123 subdomain, asked of the name alone and not of a `generateName`.
    LongName,
    /// A DNS-1123 label.
    Label,
    /// A DNS-1123 label, or a DNS-1035 label where the feature RelaxedServiceNameValidation is off.
    Service,
    /// Any path segment.
    PathSegment,
    /// The key of a ConfigMap: letters, digits, `-`, `_` and `.`.
    ConfigMapKey,
    /// An IP address in canonical form.
    IpAddress,
    /// `<group>.<resource>`
    GroupDotResource,
    /// `<plural>.<group>`, as the spec says.
    PluralDotGroup,
    /// `<version>.<group>`, as the spec says.
    VersionDotGroup,
    /// Begins with the signer's name in the spec, if that is given.
    TrustBundle,
}

/// What becomes of a status that is given on creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusOnCreate {
    /// It is emptied.
    #[default]
    Empty,
    /// It is kept.
    Keep,
    /// It is emptied, and its phase is this.
    Phase(&'static str),
}

/// A field that a selector may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectableField {
    /// What the selector calls it.
    pub label: &'static str,
    /// Where its value stands in the object, with dots; the first of these that is not empty. None of them: the
    /// field may be named but is always empty.
    pub paths: Vec<&'static str>,
    /// What an absent value counts as: the zero of its type, as text.
    pub zero: &'static str,
}
