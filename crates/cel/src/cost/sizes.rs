//! How large the value of a node can be.

use super::{Argument, Coster, EntrySize, Path, SizeEstimate};
use crate::ast::{Expr, Kind, Literal};
use crate::types::Type;

impl<'e> Coster<'e> {
    /// The size of a node, if anything is known of it.
    pub(super) fn size(&mut self, expr: &Expr) -> Option<SizeEstimate> {
        if let Some(size) = self.sizes.get(&expr.id) {
            return Some(*size);
        }
        if let Some(size) = literal_size(expr) {
            return Some(size);
        }
        if let Some(size) = self.declared_size(&self.path(expr)) {
            self.sizes.insert(expr.id, size);
            return Some(size);
        }
        if self.type_of(expr).is_scalar() {
            return Some(SizeEstimate::fixed(1));
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    pub(super) fn size_or_unknown(&mut self, expr: &Expr) -> SizeEstimate {
        self.size(expr).unwrap_or(SizeEstimate::UNKNOWN)
    }

    /// The size that the declaration gives to a path. Upstream starts at the root whatever the first step is.
    fn declared_size(&self, path: &Path) -> Option<SizeEstimate> {
        let (_, steps) = path.split_first()?;
        let mut decl = self.root?;
        for step in steps {
            decl = decl.step(step)?;
        }
        Some(SizeEstimate { min: 0, max: decl.max_elements })
    }

    /// The size of an argument of one of the libraries of Kubernetes.
    pub(super) fn argument_size(&self, argument: &Argument<'_>) -> SizeEstimate {
        argument.size.or_else(|| self.declared_size(&argument.path)).unwrap_or(SizeEstimate::UNKNOWN)
    }

    /// What the elements of a list look like, if the argument is one.
    pub(super) fn element(&self, list: &Argument<'e>) -> Option<Argument<'e>> {
        let found = match &list.found {
            Type::List(element) => (**element).clone(),
            Type::Map(key, _) => (**key).clone(),
            Type::Opaque(_, params) => params.first()?.clone(),
            _ => return None,
        };
        let mut path = list.path.clone();
        if !path.is_empty() {
            path.push("@items".into());
        }
        Some(Argument { path, found, expr: None, size: None })
    }

    pub(super) fn entry(&self, expr: &Expr) -> Option<EntrySize> {
        if let Some(entry) = self.entries.get(&expr.id) {
            return Some(*entry);
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.entry),
            _ => None,
        }
    }

    pub(super) fn set_size(&mut self, expr: &Expr, size: Option<SizeEstimate>) {
        if let Some(size) = size {
            self.sizes.insert(expr.id, size);
        }
    }

    pub(super) fn set_entry(&mut self, expr: &Expr, entry: Option<EntrySize>) {
        if let Some(entry) = entry {
            self.entries.insert(expr.id, entry);
        }
    }

    pub(super) fn copy_sizes(&mut self, to: &Expr, from: &Expr) {
        let (size, entry) = (self.size(from), self.entry(from));
        self.set_size(to, size);
        self.set_entry(to, entry);
    }
}

/// The size of what is written in the expression itself.
fn literal_size(expr: &Expr) -> Option<SizeEstimate> {
    let size = match &expr.kind {
        Kind::Literal(Literal::String(text)) => text.chars().count(),
        Kind::Literal(Literal::Bytes(bytes)) => bytes.len(),
        Kind::Literal(_) => 1,
        Kind::List(elements) => elements.len(),
        Kind::Map(entries) => entries.len(),
        _ => return None,
    };
    Some(SizeEstimate::fixed(size as u64))
}
