//! From a checked tree to one that is evaluated: names become slots, calls become functions, constants are folded.
//!
//! The shape follows cel-go's planner, because the measured cost of an expression is defined on that shape: a chain of
//! selections is one attribute with qualifiers, a constant list costs nothing.

mod build;
mod folds;

use std::sync::Arc;

use concord_re2::Pattern;

use crate::ast::Name;
use crate::eval::CallCost;
use crate::library::Run;
use crate::value::Val;

pub(crate) use build::plan;

/// A node that can be evaluated.
#[derive(Debug)]
pub(crate) enum Node {
    Const(Val<'static>),
    Attribute(Attribute),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Equal {
        sides: Box<[Node; 2]>,
        negated: bool,
    },
    /// `x in [constants]`
    InSet {
        value: Box<Node>,
        set: Vec<Val<'static>>,
    },
    /// `a.or(b)` and `a.orValue(b)`: the second only when the first has no value, and for free.
    OrElse {
        sides: Box<[Node; 2]>,
        unwrap: bool,
    },
    /// The loop condition of quantifiers: true unless the argument is false, whatever error it has.
    NotStrictlyFalse(Box<Node>),
    Call(Box<CallNode>),
    List {
        elements: Vec<Node>,
        optional: Vec<bool>,
    },
    Map {
        entries: Vec<(Node, Node)>,
        optional: Vec<bool>,
    },
    /// A message: its type, and its fields in order.
    Message {
        name: Name,
        fields: Vec<(Name, Node)>,
        optional: Vec<bool>,
    },
    Fold(Box<Fold>),
    /// A value with a name: the slot is empty until the name is first read.
    Bind {
        slot: usize,
        body: Box<Node>,
    },
    /// The accumulator of a fold with one element more, without copying it.
    Append {
        slot: usize,
        element: Box<Node>,
        constant: bool,
    },
    /// The accumulator of a fold with entries more, without copying it.
    Insert {
        slot: usize,
        args: Vec<Node>,
    },
}

/// A function call.
#[derive(Debug)]
pub(crate) struct CallNode {
    pub(crate) function: Name,
    pub(crate) run: Run,
    pub(crate) args: Vec<Node>,
    pub(crate) cost: CallCost,
    /// The pattern of a call, when it is constant.
    pub(crate) regex: Option<Pattern>,
}

/// A value and what is selected from it.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) base: Base,
    pub(crate) qualifiers: Vec<Qualifier>,
}

/// Where an attribute starts.
#[derive(Debug)]
pub(crate) enum Base {
    /// A variable of the environment.
    Global(usize),
    /// A variable of a comprehension.
    Local(usize),
    /// A named value, computed when first read: its slot and the index of its expression.
    Bound(usize, usize),
    Node(Box<Node>),
    Conditional(Box<[Node; 3]>),
}

/// One selection.
#[derive(Debug)]
pub(crate) struct Qualifier {
    pub(crate) kind: QualifierKind,
    pub(crate) optional: bool,
}

/// What is selected.
#[derive(Debug)]
pub(crate) enum QualifierKind {
    Field(Name),
    /// Only whether the field is there.
    Has(Name),
    Constant(Val<'static>),
    /// Any other expression.
    Node(Box<Node>),
}

/// A loop.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) range: Node,
    pub(crate) var: usize,
    pub(crate) var2: Option<usize>,
    pub(crate) accu: usize,
    pub(crate) init: Node,
    pub(crate) condition: Node,
    pub(crate) step: Node,
    pub(crate) result: Node,
}

/// A planned expression.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) root: Node,
    /// The expressions of named values.
    pub(crate) bound: Vec<Node>,
    /// The variables of the environment that are used.
    pub(crate) globals: Vec<Name>,
    /// How many variables comprehensions have.
    pub(crate) slots: usize,
}

impl Node {
    pub(crate) fn as_const(&self) -> Option<&Val<'static>> {
        match self {
            Self::Const(value) => Some(value),
            _ => None,
        }
    }

    fn boxed(self) -> Box<Self> {
        Box::new(self)
    }
}

impl From<Attribute> for Node {
    fn from(attribute: Attribute) -> Self {
        Self::Attribute(attribute)
    }
}

fn text(name: &Name) -> Val<'static> {
    Val::text(Arc::clone(name))
}
