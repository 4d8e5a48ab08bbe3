//! Identifiers, selections, literals of lists and maps, comprehensions.

use std::sync::Arc;

use super::unify::most_general;
use super::{Checker, Reference};
use crate::ast::{Comprehension, Element, Entry, Expr, Name, Select, Struct};
use crate::message;
use crate::types::Type;

/// The types that are values of their own name.
fn named_type(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "google.protobuf.Duration" => Type::Duration,
        "google.protobuf.Timestamp" => Type::Timestamp,
        "int" => Type::Int,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "null_type" => Type::Null,
        "string" => Type::String,
        "type" => Type::Type(None),
        "uint" => Type::Uint,
        "optional_type" => Type::optional(Type::Dyn),
        "net.IP" | "net.CIDR" => Type::Opaque(Arc::from(name), Vec::new()),
        _ => return None,
    })
}

impl Checker<'_> {
    /// The type of a name, innermost scope first, and what it refers to.
    fn lookup(&self, name: &str) -> Option<(Type, Reference)> {
        let local = self.scopes.iter().rev().find(|(variable, _)| &**variable == name);
        let name = name.strip_prefix('.').unwrap_or(name);
        let variable = local.map(|(_, found)| found).or_else(|| self.variables.get(name));
        if let Some(found) = variable {
            return Some((found.clone(), Reference::Variable(Arc::from(name))));
        }
        let message = || message::named(name).filter(|_| self.patch_types);
        let named = named_type(name).or_else(message)?;
        Some((Type::Type(Some(Arc::new(named.clone()))), Reference::TypeName(named)))
    }

    pub(super) fn check_ident(&mut self, expr: &Expr, name: &Name) -> Type {
        match self.lookup(name) {
            Some((found, reference)) => {
                self.references.insert(expr.id, reference);
                found
            }
            None => {
                self.undeclared(expr, name);
                Type::Error
            }
        }
    }

    pub(super) fn check_select(&mut self, expr: &Expr, select: &Select) -> Type {
        let qualified = expr.qualified_name().and_then(|name| self.lookup(&name));
        if let Some((found, reference)) = qualified {
            self.references.insert(expr.id, reference);
            return found;
        }
        let found = self.check_field(expr, &select.operand, &select.field, false);
        if select.test_only { Type::Bool } else { self.substitution.apply(&found, false) }
    }

    /// The type of a field of an operand.
    pub(super) fn check_field(&mut self, expr: &Expr, operand: &Expr, field: &str, optional: bool) -> Type {
        self.check(operand);
        let operand_type = self.known_type(operand);
        let (target, was_optional) = operand_type.unwrap_optional();
        let result = match target {
            Type::Map(_, value) => (**value).clone(),
            Type::Object(object) => match object.field(field) {
                Some(field) => field.decl.to_type(),
                None => {
                    self.report(expr, format!("undefined field '{field}'"));
                    Type::Error
                }
            },
            Type::Param(_) => {
                let target = target.clone();
                self.assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            Type::Opaque(name, _) if message::is_message(name) => {
                message::field_type(name, field).unwrap_or(Type::Error)
            }
            // The types of Kubernetes are messages of which upstream's checker knows only the name.
            Type::Opaque(name, _) if name.starts_with("kubernetes.") => {
                let message = format!("unexpected failed resolution of '{name}'");
                self.report(expr, message);
                Type::Error
            }
            other => {
                let message = format!("type '{other}' does not support field selection");
                self.report(expr, message);
                Type::Dyn
            }
        };
        if was_optional || optional { Type::optional(result) } else { result }
    }

    /// The type of an element that may be optional.
    fn element_type(&mut self, value: &Expr, optional: bool) -> Type {
        self.check(value);
        let found = self.type_of(value).clone();
        if !optional {
            return found;
        }
        let (inner, was_optional) = found.unwrap_optional();
        let inner = inner.clone();
        if !was_optional && !inner.is_dyn() {
            self.mismatch(value, &Type::optional(inner.clone()), &inner);
        }
        inner
    }

    /// The type of both what was before and what comes now. Different types are found later, as upstream does.
    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        match previous {
            None => current,
            Some(previous) if self.assignable(&previous, &current) => {
                most_general(&previous, &current).clone()
            }
            Some(_) => Type::Dyn,
        }
    }

    pub(super) fn check_list(&mut self, elements: &[Element]) -> Type {
        let mut joined = None;
        for element in elements {
            let found = self.element_type(&element.value, element.optional);
            joined = Some(self.join(joined, found));
        }
        Type::list(joined.unwrap_or_else(|| self.new_type_variable()))
    }

    pub(super) fn check_map(&mut self, entries: &[Entry]) -> Type {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            let key = self.element_type(&entry.key, false);
            keys = Some(self.join(keys, key));
            let value = self.element_type(&entry.value, entry.optional);
            values = Some(self.join(values, value));
        }
        let key = keys.unwrap_or_else(|| self.new_type_variable());
        let value = values.unwrap_or_else(|| self.new_type_variable());
        Type::map(key, value)
    }

    pub(super) fn check_comprehension(&mut self, fold: &Comprehension) -> Type {
        self.check(&fold.range);
        self.check(&fold.init);
        let range = self.known_type(&fold.range);
        let accu = self.type_of(&fold.init).clone();
        self.scopes.push((Arc::clone(&fold.accu), accu.clone()));
        let (first, second) = self.iteration_types(fold, &range);
        self.scopes.push((Arc::clone(&fold.var), first));
        if let Some(var2) = &fold.var2 {
            self.scopes.push((Arc::clone(var2), second));
        }
        self.check(&fold.condition);
        self.assert_type(&fold.condition, &Type::Bool);
        self.check(&fold.step);
        self.assert_type(&fold.step, &accu);
        let loop_variables = 1 + usize::from(fold.var2.is_some());
        self.scopes.truncate(self.scopes.len() - loop_variables);
        self.check(&fold.result);
        self.scopes.pop();
        self.known_type(&fold.result)
    }

    /// The types of the variables of a loop.
    fn iteration_types(&mut self, fold: &Comprehension, range: &Type) -> (Type, Type) {
        match range {
            Type::List(element) if fold.var2.is_some() => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Error),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.assignable(&Type::Dyn, range);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                let message = format!(
                    "expression of type '{range}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.report(&fold.range, message);
                (Type::Error, Type::Error)
            }
        }
    }

    /// The type of a message literal, whose fields have to be of their types.
    pub(super) fn check_message(&mut self, expr: &Expr, message: &Struct) -> Type {
        let Some(found) = message::named(&message.name).filter(|_| self.patch_types) else {
            self.undeclared(expr, &message.name);
            return Type::Error;
        };
        for field in &message.fields {
            let given = self.element_type(&field.value, field.optional);
            let expected = message::field_type(&message.name, &field.name);
            if !expected.as_ref().is_some_and(|expected| self.assignable(expected, &given)) {
                let expected = expected.map(|expected| expected.to_string()).unwrap_or_default();
                let text = format!(
                    "expected type of field '{}' is '{expected}' but provided type is '{given}'",
                    field.name
                );
                self.issues.report(field.colon, text);
            }
        }
        found
    }

    fn assert_type(&mut self, expr: &Expr, expected: &Type) {
        let found = self.type_of(expr).clone();
        if !self.assignable(expected, &found) {
            self.mismatch(expr, expected, &found);
        }
    }
}
