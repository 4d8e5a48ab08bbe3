//! The estimated cost of an expression: how much it can cost for the largest data that its variables can have.
//!
//! A custom resource definition whose rules may cost too much is refused by this number, so it has to be upstream's.

mod calls;
mod estimate;
mod lists;
mod nodes;
mod sizes;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{Expr, Id, Kind, Name};
use crate::check::Checked;
use crate::decl::Decl;
use crate::types::Type;

pub use estimate::CostEstimate;
pub(crate) use estimate::SizeEstimate;

/// Estimates a checked expression. Sizes come from the declaration of the root variable.
pub(crate) fn estimate(expr: &Expr, checked: &Checked, root: Option<&Decl>) -> CostEstimate {
    let mut coster = Coster {
        checked,
        root,
        paths: BTreeMap::new(),
        sizes: BTreeMap::new(),
        entries: BTreeMap::new(),
        scopes: Vec::new(),
    };
    coster.cost(expr)
}

/// Where in the declared data a value comes from.
type Path = Vec<Name>;

/// The sizes of the keys and values of a list or map.
#[derive(Debug, Clone, Copy)]
struct EntrySize {
    list: bool,
    key: SizeEstimate,
    value: SizeEstimate,
}

impl EntrySize {
    fn union(self, other: Self) -> Self {
        Self { list: self.list, key: self.key.union(other.key), value: self.value.union(other.value) }
    }
}

/// A variable of a comprehension.
#[derive(Debug)]
struct Local {
    name: Name,
    path: Path,
    size: Option<SizeEstimate>,
    entry: Option<EntrySize>,
}

struct Coster<'e> {
    checked: &'e Checked,
    root: Option<&'e Decl>,
    paths: BTreeMap<Id, Path>,
    sizes: BTreeMap<Id, SizeEstimate>,
    entries: BTreeMap<Id, EntrySize>,
    scopes: Vec<Local>,
}

/// A node as the cost of a call sees it.
#[derive(Debug, Clone)]
struct Argument<'e> {
    path: Path,
    found: Type,
    expr: Option<&'e Expr>,
    size: Option<SizeEstimate>,
}

impl<'e> Coster<'e> {
    fn type_of(&self, expr: &Expr) -> &'e Type {
        self.checked.type_of(expr)
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.scopes.iter().rev().find(|local| &*local.name == name)
    }

    fn path(&self, expr: &Expr) -> Path {
        if let Kind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&expr.id).cloned().unwrap_or_default()
    }

    /// The path of something inside.
    fn subpath(&self, expr: &Expr, step: &str) -> Path {
        let mut path = self.path(expr);
        path.push(Arc::from(step));
        path
    }

    fn argument(&mut self, expr: &'e Expr) -> Argument<'e> {
        let mut path = self.path(expr);
        if path.first().is_some_and(|first| &**first == crate::ast::ACCUMULATOR) {
            path.clear();
        }
        let size = self.size(expr);
        Argument { path, found: self.type_of(expr).clone(), expr: Some(expr), size }
    }
}
