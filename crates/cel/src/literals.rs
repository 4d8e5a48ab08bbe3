//! Literals that are wrong are found when an expression is compiled, not when it is evaluated: durations, timestamps and
//! patterns that do not read, and lists and maps of more than one type.

use crate::ast::{Call, Expr, Kind, Literal};
use crate::check::{Checked, Reference};
use crate::library::{format_string, time};
use crate::source::Issues;
use crate::types::Type;
use crate::value::Timestamp;

/// Checks the literals of lists and maps, and with `text` also those of durations, timestamps, patterns and templates.
pub(crate) fn check(source: &str, expr: &Expr, checked: &Checked, text: bool) -> Result<(), Issues> {
    let mut visitor = Visitor { checked, text, formatting: 0, issues: Issues::new(source) };
    visitor.visit(expr);
    if visitor.issues.is_empty() { Ok(()) } else { Err(visitor.issues) }
}

struct Visitor<'c> {
    checked: &'c Checked,
    text: bool,
    /// How many calls of `format` are around.
    formatting: u32,
    issues: Issues,
}

impl Visitor<'_> {
    fn visit(&mut self, expr: &Expr) {
        match &expr.kind {
            Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Struct(message) => message.fields.iter().for_each(|field| self.visit(&field.value)),
            Kind::Select(select) => self.visit(&select.operand),
            Kind::Call(call) => self.visit_call(expr, call),
            Kind::List(elements) => {
                self.check_types(elements.iter().map(|element| (&element.value, element.optional)));
                elements.iter().for_each(|element| self.visit(&element.value));
            }
            Kind::Map(entries) => {
                self.check_types(entries.iter().map(|entry| (&entry.key, false)));
                self.check_types(entries.iter().map(|entry| (&entry.value, entry.optional)));
                for entry in entries {
                    self.visit(&entry.key);
                    self.visit(&entry.value);
                }
            }
            Kind::Comprehension(fold) => {
                let parts = [&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result];
                parts.into_iter().for_each(|part| self.visit(part));
            }
        }
    }

    fn visit_call(&mut self, expr: &Expr, call: &Call) {
        let formatting = &*call.function == "format";
        if let Some(Reference::Overloads(function)) = self.checked.reference(expr).filter(|_| self.text) {
            // The pattern is the last argument, with a receiver or without.
            check_argument(&function.name, call.args.last(), &mut self.issues);
            if formatting {
                check_format(expr, call, self.checked, &mut self.issues);
            }
        }
        // What is formatted may have any type.
        self.formatting += u32::from(formatting);
        call.target.iter().chain(&call.args).for_each(|arg| self.visit(arg));
        self.formatting -= u32::from(formatting);
    }

    /// All elements have the type of the first, a dynamic one too. Only the first that has not is reported.
    fn check_types<'e>(&mut self, elements: impl Iterator<Item = (&'e Expr, bool)>) {
        if self.formatting > 0 {
            return;
        }
        let mut expected = None;
        for (element, optional) in elements {
            let found = self.checked.type_of(element);
            let found = if optional { found.unwrap_optional().0 } else { found };
            match expected {
                None => expected = Some(found),
                Some(expected) if expected != found => {
                    let message = format!("expected type '{expected}' but found '{found}'");
                    self.issues.report(element.at, message);
                    return;
                }
                Some(_) => {}
            }
        }
    }
}

/// A template with its arguments, when both are written out.
fn check_format(expr: &Expr, call: &Call, checked: &Checked, issues: &mut Issues) {
    let Some(Expr { kind: Kind::Literal(Literal::String(template)), .. }) = &call.target else { return };
    let [Expr { kind: Kind::List(elements), .. }] = &call.args[..] else { return };
    let types: Vec<&Type> = elements.iter().map(|element| checked.type_of(&element.value)).collect();
    if let Err((index, message)) = format_string::check(template, &types) {
        let at = index.and_then(|index| elements.get(index)).map_or(expr.at, |element| element.value.at);
        issues.report(at, message);
    }
}

fn check_argument(function: &str, argument: Option<&Expr>, issues: &mut Issues) {
    let Some(Expr { at, kind: Kind::Literal(literal), .. }) = argument else { return };
    let valid = match (function, literal) {
        ("duration", Literal::String(text)) => time::parse_duration(text).is_some(),
        ("duration", _) => false,
        ("timestamp", Literal::String(text)) => Timestamp::parse(text).is_some(),
        ("timestamp", Literal::Int(seconds)) => Timestamp::from_seconds(*seconds).is_some(),
        ("matches", Literal::String(text)) => concord_re2::check(text).is_ok(),
        _ => return,
    };
    if !valid {
        issues.report(*at, format!("invalid {function} argument"));
    }
}
