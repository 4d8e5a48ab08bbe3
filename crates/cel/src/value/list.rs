//! Lists.

use std::sync::Arc;

use serde_json::Value;

use super::{Val, from_json};
use crate::decl::{Decl, ListSemantics};
use crate::error::EvalError;

/// A list.
#[derive(Debug, Clone)]
pub enum List<'a> {
    /// Part of an object, with the declaration of its elements.
    Json(&'a [Value], &'a Decl, &'a ListSemantics),
    /// Made by an expression.
    Owned(Arc<Vec<Val<'a>>>),
    /// The sum of a list of type set or map and another: it still is of that type.
    Merged(Arc<Vec<Val<'a>>>, &'a ListSemantics),
    /// One after the other. Adding costs one however long the lists are, so it must not copy them.
    Concat(Arc<Concat<'a>>),
}

/// Two lists, one after the other.
#[derive(Debug)]
pub struct Concat<'a> {
    left: List<'a>,
    right: List<'a>,
    length: usize,
}

/// Up to this length, copying is cheaper than another level.
const COPY_LIMIT: usize = 64;

impl<'a> List<'a> {
    pub(crate) fn owned(values: Vec<Val<'a>>) -> Self {
        Self::Owned(Arc::new(values))
    }

    /// How the list compares and adds.
    pub(crate) fn semantics(&self) -> &'a ListSemantics {
        match self {
            Self::Json(_, _, semantics) | Self::Merged(_, semantics) => semantics,
            _ => &ListSemantics::Atomic,
        }
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Json(values, ..) => values.len(),
            Self::Owned(values) | Self::Merged(values, _) => values.len(),
            Self::Concat(concat) => concat.length,
        }
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All elements; those that cannot be read are null.
    pub fn to_vec(&self) -> Vec<Val<'a>> {
        self.iter().map(|item| item.unwrap_or(Val::Null)).collect()
    }

    /// The element at an index.
    pub(crate) fn get(&self, index: usize) -> Option<Result<Val<'a>, EvalError>> {
        match self {
            Self::Json(values, element, _) => Some(from_json(values.get(index)?, element)),
            Self::Owned(values) | Self::Merged(values, _) => values.get(index).cloned().map(Ok),
            Self::Concat(concat) => match index.checked_sub(concat.left.len()) {
                Some(rest) => concat.right.get(rest),
                None => concat.left.get(index),
            },
        }
    }

    /// The elements in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Result<Val<'a>, EvalError>> + use<'a> {
        Iter { stack: vec![self.clone()], index: 0 }
    }

    /// This list and then another.
    pub(crate) fn concat(self, right: Self) -> Self {
        if self.is_empty() {
            return right;
        }
        if right.is_empty() {
            return self;
        }
        let length = self.len().saturating_add(right.len());
        if length <= COPY_LIMIT {
            let all: Result<Vec<_>, _> = self.iter().chain(right.iter()).collect();
            if let Ok(values) = all {
                return Self::owned(values);
            }
        }
        Self::Concat(Arc::new(Concat { left: self, right, length }))
    }
}

/// Walks a tree of lists without recursion.
struct Iter<'a> {
    /// What is still to come, the next last.
    stack: Vec<List<'a>>,
    index: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Result<Val<'a>, EvalError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let List::Concat(concat) = self.stack.last()? {
                let concat = Arc::clone(concat);
                self.stack.pop();
                self.stack.push(concat.right.clone());
                self.stack.push(concat.left.clone());
                continue;
            }
            if let Some(value) = self.stack.last()?.get(self.index) {
                self.index += 1;
                return Some(value);
            }
            self.index = 0;
            self.stack.pop();
        }
    }
}
