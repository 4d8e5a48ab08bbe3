//! The parsed expression, after macros were expanded.

use std::sync::Arc;

/// A number that every node of one expression has for itself.
pub(crate) type Id = u32;

/// A name.
pub(crate) type Name = Arc<str>;

/// The variable in which comprehensions collect their result. No source can name it.
pub(crate) const ACCUMULATOR: &str = "@result";

/// One node.
#[derive(Debug, Clone)]
pub(crate) struct Expr {
    pub(crate) id: Id,
    /// Where the node is in the source, as a byte offset: for operators the operator, for calls the parenthesis.
    pub(crate) at: u32,
    pub(crate) kind: Kind,
}

/// What a node is.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Literal(Literal),
    Ident(Name),
    Select(Box<Select>),
    Call(Box<Call>),
    List(Vec<Element>),
    Map(Vec<Entry>),
    Struct(Box<Struct>),
    Comprehension(Box<Comprehension>),
}

/// A constant of the source.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Name),
    Bytes(Arc<[u8]>),
}

/// `operand.field`, or the test of `has(operand.field)`.
#[derive(Debug, Clone)]
pub(crate) struct Select {
    pub(crate) operand: Expr,
    pub(crate) field: Name,
    pub(crate) test_only: bool,
}

/// A function or operator with its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) target: Option<Expr>,
    pub(crate) function: Name,
    pub(crate) args: Vec<Expr>,
}

/// An element of a list literal; an optional one (`[?a]`) is left out when it has no value.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// An entry of a map literal.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// A message literal. Only the types of mutations can be built so; of others the checker says that they are unknown.
#[derive(Debug, Clone)]
pub(crate) struct Struct {
    pub(crate) name: Name,
    pub(crate) fields: Vec<Field>,
}

/// A field of a message literal.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: Name,
    /// Where the colon is, to which upstream ascribes a value of a wrong type.
    pub(crate) colon: u32,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// What every macro that loops expands to.
#[derive(Debug, Clone)]
pub(crate) struct Comprehension {
    pub(crate) range: Expr,
    pub(crate) var: Name,
    /// The second variable of a two-variable comprehension.
    pub(crate) var2: Option<Name>,
    pub(crate) accu: Name,
    pub(crate) init: Expr,
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

impl Comprehension {
    /// Whether this only gives a value a name: it loops over nothing and its condition is false.
    pub(crate) fn is_bind(&self) -> bool {
        matches!(&self.range.kind, Kind::List(elements) if elements.is_empty())
            && matches!(self.condition.kind, Kind::Literal(Literal::Bool(false)))
            && &*self.accu != ACCUMULATOR
    }
}

impl Expr {
    /// The name `a.b.c` when the node is nothing but identifiers.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some(name.to_string()),
            Kind::Select(select) if !select.test_only => {
                Some(format!("{}.{}", select.operand.qualified_name()?, select.field))
            }
            _ => None,
        }
    }
}
