//! Calls: which overloads of a function fit.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Checker, Function, Reference};
use crate::ast::{Call, Expr, Kind, Literal};
use crate::functions::{self, Overload};
use crate::message;
use crate::types::{Signature, Type};

impl Checker<'_> {
    pub(super) fn check_call(&mut self, expr: &Expr, call: &Call) -> Type {
        if &*call.function == "_?._" {
            return self.check_optional_select(expr, call);
        }
        for arg in &call.args {
            self.check(arg);
        }
        let Some(target) = &call.target else {
            let name = call.function.strip_prefix('.').unwrap_or(&call.function);
            if !self.is_declared(name) {
                self.undeclared(expr, name);
                return Type::Error;
            }
            return self.resolve(expr, name, None, &call.args, false);
        };
        // What looks like a receiver may be the namespace of the function.
        if let Some(namespace) = target.qualified_name() {
            let name = format!("{namespace}.{}", call.function);
            let name = name.strip_prefix('.').unwrap_or(&name);
            if self.is_declared(name) {
                return self.resolve(expr, name, None, &call.args, true);
            }
        }
        self.check(target);
        if self.is_declared(&call.function) {
            return self.resolve(expr, &call.function, Some(target), &call.args, false);
        }
        self.undeclared(expr, &call.function);
        Type::Error
    }

    fn is_declared(&self, name: &str) -> bool {
        let is_known = self.patch_types || !name.starts_with(message::LIBRARY);
        is_known && functions::overloads(name, self.version).next().is_some()
    }

    fn check_optional_select(&mut self, expr: &Expr, call: &Call) -> Type {
        let [operand, field] = &call.args[..] else { return Type::Error };
        let Kind::Literal(Literal::String(field)) = &field.kind else { return Type::Error };
        let field = Arc::clone(field);
        let found = self.check_field(expr, operand, &field, true);
        self.refer(expr, "_?._", vec!["select_optional_field"], false);
        self.substitution.apply(&found, false)
    }

    fn refer(&mut self, expr: &Expr, name: &str, overloads: Vec<&'static str>, namespaced: bool) {
        let function = Function { name: Arc::from(name), overloads, namespaced };
        self.references.insert(expr.id, Reference::Overloads(function));
    }

    fn resolve(
        &mut self,
        expr: &Expr,
        name: &str,
        target: Option<&Expr>,
        args: &[Expr],
        namespaced: bool,
    ) -> Type {
        let nodes: Vec<&Expr> = target.into_iter().chain(args).collect();
        if matches!(name, "_&&_" | "_||_") {
            return self.resolve_logical(expr, name, &nodes);
        }
        let types: Vec<Type> = nodes.iter().map(|node| self.type_of(node).clone()).collect();
        let mut fitting = Vec::new();
        let mut result: Option<Type> = None;
        for overload in functions::overloads(name, self.version) {
            if overload.member != target.is_some() {
                continue;
            }
            let (params, returns) = self.instantiate(overload);
            if !self.substitution.unify(&types, &params) {
                continue;
            }
            fitting.push(overload.id);
            let returns = self.substitution.apply(&returns, false);
            result = Some(match result {
                Some(before) if !before.is_dyn() && before != returns => Type::Dyn,
                Some(before) => before,
                None => returns,
            });
        }
        let Some(result) = result else {
            self.no_overload(expr, name, &types, target.is_some());
            return Type::Error;
        };
        self.refer(expr, name, fitting, namespaced);
        result
    }

    /// Both sides must be `bool`; each that is not is an error of its own.
    fn resolve_logical(&mut self, expr: &Expr, name: &str, nodes: &[&Expr]) -> Type {
        let mut result = Type::Bool;
        for node in nodes {
            let found = self.type_of(node).clone();
            if !self.assignable(&found, &Type::Bool) {
                self.mismatch(node, &Type::Bool, &found);
                result = Type::Error;
            }
        }
        self.refer(expr, name, vec![if name == "_&&_" { "logical_and" } else { "logical_or" }], false);
        result
    }

    /// The signature with parameters of its own.
    fn instantiate(&mut self, overload: &Overload) -> (Vec<Type>, Type) {
        if !overload.generic {
            return (overload.args.clone(), overload.result.clone());
        }
        let mut fresh = BTreeMap::new();
        let args = overload.args.iter().map(|arg| self.freshen(arg, &mut fresh)).collect();
        let result = self.freshen(&overload.result, &mut fresh);
        (args, result)
    }

    fn freshen(&mut self, of: &Type, fresh: &mut BTreeMap<Arc<str>, Type>) -> Type {
        match of {
            Type::Param(name) => match fresh.get(name) {
                Some(found) => found.clone(),
                None => {
                    let variable = self.new_type_variable();
                    fresh.insert(Arc::clone(name), variable.clone());
                    variable
                }
            },
            Type::List(element) => Type::list(self.freshen(element, fresh)),
            Type::Map(key, value) => Type::map(self.freshen(key, fresh), self.freshen(value, fresh)),
            Type::Opaque(name, params) => {
                let params = params.iter().map(|param| self.freshen(param, fresh)).collect();
                Type::Opaque(Arc::clone(name), params)
            }
            Type::Type(Some(inner)) => Type::Type(Some(Arc::new(self.freshen(inner, fresh)))),
            _ => of.clone(),
        }
    }

    fn no_overload(&mut self, expr: &Expr, name: &str, types: &[Type], member: bool) {
        let types: Vec<Type> = types.iter().map(|found| self.substitution.apply(found, true)).collect();
        let signature = match (member, types.split_first()) {
            (true, Some((target, args))) => format!("{target}.({})", Signature(args)),
            _ => format!("({})", Signature(&types)),
        };
        self.report(expr, format!("found no matching overload for '{name}' applied to '{signature}'"));
    }
}
