//! The type checker.

mod calls;
mod nodes;
mod unify;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{Expr, Id, Kind, Literal, Name};
use crate::source::Issues;
use crate::types::Type;
use crate::version::Version;
use unify::Substitution;

/// What an identifier or a call refers to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reference {
    /// A variable, of the environment or of a comprehension, by its name.
    Variable(Name),
    /// A type used as a value.
    TypeName(Type),
    /// The overloads that a call may have.
    Overloads(Function),
}

/// A resolved function.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Function {
    /// The name with its namespace.
    pub(crate) name: Name,
    /// The overloads that fit the types; more than one when a type is dynamic.
    pub(crate) overloads: Vec<&'static str>,
    /// Whether what looked like a receiver is part of the name.
    pub(crate) namespaced: bool,
}

/// The result of checking.
#[derive(Debug)]
pub(crate) struct Checked {
    types: Vec<Type>,
    references: BTreeMap<Id, Reference>,
}

impl Checked {
    pub(crate) fn type_of(&self, expr: &Expr) -> &Type {
        &self.types[expr.id as usize]
    }

    pub(crate) fn reference(&self, expr: &Expr) -> Option<&Reference> {
        self.references.get(&expr.id)
    }

    /// Whether a variable of the environment is used.
    pub(crate) fn uses(&self, variable: &str) -> bool {
        self.references
            .values()
            .any(|reference| matches!(reference, Reference::Variable(name) if &**name == variable))
    }
}

/// Checks an expression against the declared variables.
pub(crate) fn check(
    source: &str,
    expr: &Expr,
    ids: Id,
    variables: &BTreeMap<String, Type>,
    (version, patch_types): (Version, bool),
) -> Result<Checked, Issues> {
    let mut checker = Checker {
        version,
        patch_types,
        scopes: Vec::new(),
        variables,
        types: vec![Type::Error; ids as usize],
        references: BTreeMap::new(),
        substitution: Substitution::default(),
        type_variables: 0,
        issues: Issues::new(source),
    };
    checker.check(expr);
    if !checker.issues.is_empty() {
        return Err(checker.issues);
    }
    let substitution = &checker.substitution;
    let types = checker.types.iter().map(|found| substitution.apply(found, true)).collect();
    Ok(Checked { types, references: checker.references })
}

struct Checker<'e> {
    version: Version,
    /// Whether there are the types that mutations are made of.
    patch_types: bool,
    /// The variables of the comprehensions around, innermost last.
    scopes: Vec<(Name, Type)>,
    variables: &'e BTreeMap<String, Type>,
    types: Vec<Type>,
    references: BTreeMap<Id, Reference>,
    substitution: Substitution,
    type_variables: u32,
    issues: Issues,
}

impl Checker<'_> {
    fn check(&mut self, expr: &Expr) {
        let found = match &expr.kind {
            Kind::Literal(literal) => literal_type(literal),
            Kind::Ident(name) => self.check_ident(expr, name),
            Kind::Select(select) => self.check_select(expr, select),
            Kind::Call(call) => self.check_call(expr, call),
            Kind::List(elements) => self.check_list(elements),
            Kind::Map(entries) => self.check_map(entries),
            Kind::Struct(message) => self.check_message(expr, message),
            Kind::Comprehension(fold) => self.check_comprehension(fold),
        };
        self.types[expr.id as usize] = found;
    }

    fn type_of(&self, expr: &Expr) -> &Type {
        &self.types[expr.id as usize]
    }

    /// The type of a node with what is known of its parameters so far.
    fn known_type(&self, expr: &Expr) -> Type {
        self.substitution.apply(self.type_of(expr), false)
    }

    fn report(&mut self, expr: &Expr, message: String) {
        self.issues.report(expr.at, message);
    }

    fn undeclared(&mut self, expr: &Expr, name: &str) {
        self.report(expr, format!("undeclared reference to '{name}' (in container '')"));
    }

    fn mismatch(&mut self, expr: &Expr, expected: &Type, actual: &Type) {
        self.report(expr, format!("expected type '{expected}' but found '{actual}'"));
    }

    fn new_type_variable(&mut self) -> Type {
        self.type_variables += 1;
        Type::Param(Arc::from(format!("_var{}", self.type_variables - 1)))
    }

    /// Unifies two types, keeping what was learned only when it works.
    fn assignable(&mut self, a: &Type, b: &Type) -> bool {
        self.substitution.unify(std::slice::from_ref(a), std::slice::from_ref(b))
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}
