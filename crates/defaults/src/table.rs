//! The tables of defaults, read.
//!
//! A line at the margin is a type, and perhaps the kind of that name in some versions. Indented below it are its
//! rules, which are applied in their order:
//!
//! ```text
//! Deployment in apps/v1              a kind; several versions as group/{v1,v1beta1}
//! PodSpec                            any other type
//! Endpoint.discovery                 what is after a dot only tells types of one name apart
//!   dnsPolicy = "ClusterFirst"       the value of a field that is missing or zero
//!   *replicas = 1                    the same of a pointer in Go: a zero that is given stays
//!   targetPort <- port               what it is if it is missing or zero: what another field is
//!   requests += limits               a map gets the entries of another one that it lacks
//!   containers[] -> Container        what is there has the defaults of a type; [] each item, {} each value of a map
//!   like Matching                    has the defaults of another type as well
//!   drop sessionAffinityConfig       takes a field away
//!   do image_pull_policy             code, see `code`
//! ```
//!
//! Every rule may end with `if` and conditions, all of which must hold: `type is "A" or "B"`, `egress is set`,
//! `*parallelism is unset`. Paths begin at the type. Where something on the way is missing, a rule says nothing: Go's
//! structs are always there in a normal object, and its pointers are not.

use serde_json::Value;

use crate::Object;

/// The number of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypeId(pub(crate) u16);

/// All types, and which kinds are of which.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) types: Vec<Box<[Rule]>>,
    pub(crate) kinds: Vec<Kind>,
}

#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) api_version: String,
    pub(crate) name: &'static str,
    pub(crate) id: TypeId,
}

#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) conditions: Box<[Condition]>,
    pub(crate) action: Action,
}

#[derive(Debug)]
pub(crate) enum Action {
    /// `field = value`
    Set(Field, Value),
    /// `field <- other`
    Copy(Field, Field),
    /// `field += other`
    Fill(Field, Field),
    /// `drop field`
    Drop(Field),
    /// `path -> Type`
    Visit(Box<[Step]>, TypeId),
    /// `like Type`
    Like(TypeId),
    /// `do code`
    Do(fn(&mut Object)),
}

/// A field of an object, or of an object within it.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) parents: Box<[&'static str]>,
    pub(crate) name: &'static str,
    /// Whether it is a pointer in Go, so that a zero is something.
    pub(crate) pointer: bool,
}

/// One step down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// To a field.
    Field(&'static str),
    /// To each item of a list.
    Items,
    /// To each value of a map.
    Values,
}

#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) field: Field,
    pub(crate) test: Test,
}

#[derive(Debug)]
pub(crate) enum Test {
    Set,
    Unset,
    /// It is one of these.
    Is(Box<[Value]>),
}

impl Table {
    pub(crate) fn kind(&self, api_version: &str, name: &str) -> Option<TypeId> {
        let found = self.kinds.iter().find(|kind| kind.name == name && kind.api_version == api_version);
        found.map(|kind| kind.id)
    }
}
