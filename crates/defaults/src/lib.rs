//! What built-in kinds have where a client says nothing.
//!
//! Defaults are applied in the version that a client speaks, to objects in the form that `concord-schema` gives them:
//! no unknown fields, and zeros left out where Go leaves them out. What Kubernetes fills in stands in the tables in
//! `facts/`, each default once, by the type that has it; `table` says how to read them. Code is only what a table
//! cannot say. A few effects of upstream's conversions that clients see like defaults are here too, such as
//! `serviceAccount` beside `serviceAccountName`.
//!
//! The crate never refuses an object, and what a client says it changes only where those conversions do. It survives
//! objects of any shape, knows no clock (so the time at which a device was tainted is not filled in here) and no store.
//!
//! Start with [`of`] and [`Defaults::apply`].

mod apply;
mod code;
mod parse;
mod table;

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::table::{Table, TypeId};

type Object = Map<String, Value>;

const TEXTS: [&str; 3] = [
    include_str!("../facts/core.txt"),
    include_str!("../facts/workloads.txt"),
    include_str!("../facts/cluster.txt"),
];

// The tables are part of the program, and tests read them.
static TABLE: LazyLock<Table> =
    LazyLock::new(|| parse::table(&TEXTS).expect("the tables of defaults are well formed"));

/// The defaults of one kind in one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults(TypeId);

/// The defaults of a kind in a version, if it has any.
pub fn of(api_version: &str, kind: &str) -> Option<Defaults> {
    TABLE.kind(api_version, kind).map(Defaults)
}

impl Defaults {
    /// Fills in what is missing. To do it twice changes nothing.
    pub fn apply(self, object: &mut Map<String, Value>) {
        apply::apply(&TABLE, self.0, object);
    }
}

#[cfg(test)]
mod rows;
