//! The rules of one place, evaluated, with upstream's texts.

use std::sync::Arc;

use concord_cel::{Activation, Budget, Decl, DeclKind, EvalError, MapValue, Val};
use concord_meta::field::{BadValue, Error, ErrorType, Path};
use concord_meta::go;
use concord_structural::{Kind, Object, Rule};

use crate::compile::{Compiled, CompiledRule, Expressions, Message, OLD_SELF, SELF, is_optional};
use crate::json::Json;
use crate::place::Own;
use crate::walk::{At, Walk};

const UNTYPED: &str =
    "rule compiler initialization error: failed to convert to declType for CEL validation rules";
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";
const MESSAGE_OUT_OF_BUDGET: &str = "messageExpression evaluation failed due to running out of cost budget, no \
                                     further validation rules will be run";
/// The longest text that an expression may make.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;

impl Walk {
    /// Evaluates the rules of a place itself.
    pub(crate) fn evaluate(&mut self, at: At<'_>, path: &Path) {
        let compiled = match &at.place.own {
            Own::None => return,
            Own::Untyped => {
                return self.error(Error::invalid(path, at.node.kind().name(), UNTYPED));
            }
            Own::Rules(compiled) => compiled,
        };
        if self.budget.remaining() == 0 {
            return self.stop(Error::invalid(path, at.node.kind().name(), OUT_OF_BUDGET));
        }
        for (rule, expressions) in at.node.rules().iter().zip(&compiled.rules) {
            self.rule(at, path, compiled, rule, expressions);
            if self.is_over {
                return;
            }
        }
    }

    fn stop(&mut self, error: Error) {
        self.error(error);
        self.is_over = true;
    }

    fn rule(&mut self, at: At<'_>, path: &Path, compiled: &Compiled, rule: &Rule, outcome: &CompiledRule) {
        let expressions = match outcome {
            None => return,
            Some(Err(error)) => {
                let detail = format!("rule compile error: {error}");
                return self.error(Error::invalid(path, at.node.kind().name(), detail));
            }
            Some(Ok(expressions)) => expressions,
        };
        let values = Values { decl: &compiled.decl, new: at.new, old: at.old.filter(|old| !old.is_null()) };
        if expressions.uses_old_self && values.old.is_none() && !is_optional(rule) {
            return;
        }
        match expressions.rule.eval(&values.for_rule(rule), &mut self.budget) {
            Ok(Val::Bool(true)) => {}
            Ok(_) => {
                let broken = Broken { rule, expressions, values, knows_old: compiled.uses_old_self() };
                self.explain(at, path, &broken);
            }
            Err(error) => self.failed(at, path, rule, &error),
        }
    }

    /// A rule has no value.
    fn failed(&mut self, at: At<'_>, path: &Path, rule: &Rule, error: &EvalError) {
        let invalid = |detail: String| Error::invalid(path, at.node.kind().name(), detail);
        let shown = shown(rule);
        match error {
            EvalError::Budget => self.stop(invalid(OUT_OF_BUDGET.to_owned())),
            EvalError::CostLimit => self.stop(invalid(format!(
                "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {shown}"
            ))),
            EvalError::Failed(text) if text.starts_with("no such overload") => self.error(invalid(format!(
                "'{text}': call arguments did not match a supported operator, function or macro signature for \
                 rule: {shown}"
            ))),
            EvalError::Failed(text) => self.error(invalid(format!("{text} evaluating rule: {shown}"))),
        }
    }

    /// A rule does not hold.
    fn explain(&mut self, at: At<'_>, path: &Path, broken: &Broken<'_>) {
        let Broken { rule, expressions, .. } = broken;
        let below = &expressions.field_path;
        let path = &if below.is_empty() { path.clone() } else { path.child(below) };
        let is_excusable = !expressions.uses_old_self;
        let said = match &expressions.message {
            Some(Ok(message)) => self.message(message, broken),
            _ => Ok(None),
        };
        match said {
            Err(detail) => {
                let error = Error::invalid(path, at.node.kind().name(), detail);
                self.broken(at, is_excusable, error);
                self.is_over = true;
            }
            Ok(said) => {
                let detail = said.unwrap_or_else(|| default_message(rule));
                self.broken(at, is_excusable, error(at, path, rule, detail));
            }
        }
    }

    /// What the expression of the message says; nothing if it fails or says nothing fit to print. The error is that
    /// it costs too much.
    fn message(&mut self, message: &Message, broken: &Broken<'_>) -> Result<Option<String>, String> {
        let mut activation = broken.values.bind(SELF, broken.values.new, Activation::new());
        if broken.knows_old {
            activation = broken.values.for_message(message, activation);
        }
        match message.program.eval(&activation, &mut self.budget) {
            Ok(value) => {
                Ok(value.as_str().map(str::trim).filter(|text| is_printable(text)).map(str::to_owned))
            }
            Err(EvalError::Failed(_)) => Ok(None),
            Err(EvalError::Budget) => Err(MESSAGE_OUT_OF_BUDGET.to_owned()),
            Err(EvalError::CostLimit) => Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                go::quote(&broken.rule.message_expression)
            )),
        }
    }
}

/// A rule that does not hold.
struct Broken<'a> {
    rule: &'a Rule,
    expressions: &'a Expressions,
    values: Values<'a>,
    /// Whether any rule of the place compares with the old value. If not, upstream's messages cannot either.
    knows_old: bool,
}

/// The values that expressions are evaluated with.
#[derive(Clone, Copy)]
struct Values<'a> {
    decl: &'a Decl,
    new: Json<'a>,
    old: Option<Json<'a>>,
}

impl<'a> Values<'a> {
    fn for_rule(self, rule: &Rule) -> Activation<'a> {
        let activation = self.bind(SELF, self.new, Activation::new());
        match self.old {
            None if is_optional(rule) => activation.value(OLD_SELF, Val::Optional(None)),
            None => activation,
            Some(Json::Root(old)) if is_optional(rule) => {
                let old = root_value(old, self.decl).map(Arc::new);
                activation.value(OLD_SELF, Val::Optional(old))
            }
            Some(old) => self.bind(OLD_SELF, old, activation),
        }
    }

    /// Upstream evaluates all messages with the old value as it is, even those that are compiled for an optional one.
    fn for_message(self, message: &'a Message, activation: Activation<'a>) -> Activation<'a> {
        match (self.old, &message.plain_old_self) {
            (None, _) => activation,
            (Some(Json::Value(old)), Some(plain)) => {
                let old = plain.eval(&Activation::new().json(OLD_SELF, old), &mut Budget::default());
                old.map_or(activation.clone(), |old| activation.value(OLD_SELF, old))
            }
            (Some(old), _) => self.bind(OLD_SELF, old, activation),
        }
    }

    fn bind(self, name: &'static str, json: Json<'a>, activation: Activation<'a>) -> Activation<'a> {
        match json {
            Json::Value(value) => activation.json(name, value),
            Json::Root(object) => match root_value(object, self.decl) {
                Some(value) => activation.value(name, value),
                None => activation,
            },
        }
    }
}

fn root_value<'a>(object: &'a Object, decl: &'a Decl) -> Option<Val<'a>> {
    match &decl.kind {
        DeclKind::Object(fields) => Some(Val::Map(MapValue::Object(object, fields))),
        DeclKind::Map(values) => Some(Val::Map(MapValue::Json(object, values))),
        _ => None,
    }
}

fn is_printable(message: &str) -> bool {
    !message.is_empty() && message.len() <= MAX_MESSAGE_BYTES && !message.contains('\n')
}

/// How errors name a rule.
fn shown(rule: &Rule) -> &str {
    let text = if rule.message.is_empty() { &rule.rule } else { &rule.message };
    text.trim()
}

fn default_message(rule: &Rule) -> String {
    if rule.message.is_empty() { format!("failed rule: {}", shown(rule)) } else { shown(rule).to_owned() }
}

fn error(at: At<'_>, path: &Path, rule: &Rule, detail: String) -> Error {
    // Objects and lists are not shown.
    let value = match (at.node.kind(), at.new) {
        (Kind::Object | Kind::Array, _) | (_, Json::Root(_)) => None,
        (_, Json::Value(value)) => Some(BadValue::from(value)),
    };
    let field = path.to_string();
    match rule.reason.as_deref() {
        Some("FieldValueForbidden") => Error::forbidden(path, detail),
        Some("FieldValueRequired") => Error::required(path, detail),
        Some("FieldValueDuplicate") => {
            Error { error_type: ErrorType::Duplicate, field, value, detail: "".into() }
        }
        _ => Error { error_type: ErrorType::Invalid, field, value, detail: detail.into() },
    }
}
