//! Unification of types, as cel-go does it: dynamic types fit everything, parameters take the most general type.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::types::Type;

/// What is known of type parameters.
#[derive(Debug, Default)]
pub(super) struct Substitution {
    bound: BTreeMap<Arc<str>, Type>,
    /// What a failed unification has to take back.
    undo: Vec<(Arc<str>, Option<Type>)>,
}

impl Substitution {
    /// Unifies two lists of types. What was learned stays only when all of them fit.
    pub(super) fn unify(&mut self, a: &[Type], b: &[Type]) -> bool {
        self.undo.clear();
        let fits = self.all_assignable(a, b);
        if !fits {
            while let Some((name, before)) = self.undo.pop() {
                match before {
                    Some(before) => self.bound.insert(name, before),
                    None => self.bound.remove(&name),
                };
            }
        }
        fits
    }

    pub(super) fn bind(&mut self, name: &Arc<str>, to: Type) {
        let before = self.bound.insert(Arc::clone(name), to);
        self.undo.push((Arc::clone(name), before));
    }

    fn all_assignable(&mut self, a: &[Type], b: &[Type]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.assignable(a, b))
    }

    fn assignable(&mut self, a: &Type, b: &Type) -> bool {
        if let Type::Param(name) = b {
            let (valid, had) = self.try_bind(a, b, name);
            if valid || had {
                return valid;
            }
        }
        if let Type::Param(name) = a {
            return self.try_bind(b, a, name).0;
        }
        if a.is_dyn_or_error() || b.is_dyn_or_error() {
            return true;
        }
        if matches!(a, Type::Null) || matches!(b, Type::Null) {
            let other = if matches!(a, Type::Null) { b } else { a };
            return nullable(other);
        }
        match (a, b) {
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(a), Type::List(b)) => self.assignable(a, b),
            (Type::Map(a, c), Type::Map(b, d)) => self.assignable(a, b) && self.assignable(c, d),
            (Type::Opaque(a, p), Type::Opaque(b, q)) => a == b && self.all_assignable(p, q),
            _ => a == b,
        }
    }

    /// Tries to let the parameter stand for a type. Says whether that fits, and whether it stood for one before.
    fn try_bind(&mut self, to: &Type, param: &Type, name: &Arc<str>) -> (bool, bool) {
        if to == param {
            return (true, true);
        }
        if let Some(bound) = self.bound.get(name).cloned() {
            if &bound == to {
                return (true, true);
            }
            if !self.assignable(to, &bound) {
                return (false, true);
            }
            let general = most_general(to, &bound).clone();
            if !self.occurs(param, &general) {
                self.bind(name, general);
            }
            return (true, true);
        }
        if self.occurs(param, to) {
            return (false, false);
        }
        self.bind(name, to.clone());
        (true, false)
    }

    /// Whether a parameter is part of a type.
    fn occurs(&self, param: &Type, within: &Type) -> bool {
        if param == within {
            return true;
        }
        match within {
            Type::Param(name) => self.bound.get(name).is_some_and(|bound| self.occurs(param, bound)),
            Type::List(element) => self.occurs(param, element),
            Type::Map(key, value) => self.occurs(param, key) || self.occurs(param, value),
            Type::Opaque(_, params) => params.iter().any(|inner| self.occurs(param, inner)),
            Type::Type(Some(inner)) => self.occurs(param, inner),
            _ => false,
        }
    }

    /// The type with its parameters replaced; those that stand for nothing become dynamic when asked.
    pub(super) fn apply(&self, of: &Type, to_dyn: bool) -> Type {
        match of {
            Type::Param(name) => match self.bound.get(name) {
                Some(bound) => self.apply(bound, to_dyn),
                None if to_dyn => Type::Dyn,
                None => of.clone(),
            },
            Type::List(element) => Type::list(self.apply(element, to_dyn)),
            Type::Map(key, value) => Type::map(self.apply(key, to_dyn), self.apply(value, to_dyn)),
            Type::Opaque(name, params) => {
                Type::Opaque(Arc::clone(name), params.iter().map(|param| self.apply(param, to_dyn)).collect())
            }
            Type::Type(Some(inner)) => Type::Type(Some(Arc::new(self.apply(inner, to_dyn)))),
            _ => of.clone(),
        }
    }
}

fn nullable(of: &Type) -> bool {
    matches!(of, Type::Opaque(..) | Type::Object(_) | Type::Duration | Type::Timestamp | Type::Null)
}

/// The more general of two types that fit each other.
pub(super) fn most_general<'t>(a: &'t Type, b: &'t Type) -> &'t Type {
    if less_specific(a, b) { a } else { b }
}

fn less_specific(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Dyn | Type::Param(_), _) | (Type::Type(_), Type::Type(_)) => true,
        (_, Type::Dyn | Type::Param(_)) => false,
        (Type::List(a), Type::List(b)) => less_specific(a, b),
        (Type::Map(a, c), Type::Map(b, d)) => less_specific(a, b) && less_specific(c, d),
        (Type::Opaque(a, p), Type::Opaque(b, q)) => {
            a == b && p.len() == q.len() && p.iter().zip(q).all(|(p, q)| less_specific(p, q))
        }
        _ => a == b,
    }
}
