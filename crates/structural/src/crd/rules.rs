//! Rules: their texts here, their expressions by who can compile them.

use concord_meta::field::{BadValue, Error, Path};

use super::{
    EXPRESSION_COST_LIMIT,
    cel::{CompiledRule, RuleError, RulePlace, Scope, cost_text},
    field_path, internal,
    openapi::{Context, Walk},
};
use crate::{props::Props, schema::Schema};

const REASONS: &[&str] =
    &["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

fn has_line_break(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// What is wrong with the texts of the rules of a node.
pub(super) fn validate(schema: Props<'_>, path: &Path, scope: Option<Scope<'_>>) -> Vec<Error> {
    let path = path.child("x-kubernetes-validations");
    let rules = schema.schemas("x-kubernetes-validations").enumerate();
    rules.flat_map(|(index, rule)| rule_errors(schema, rule, &path.index(index), scope)).collect()
}

fn rule_errors(schema: Props<'_>, rule: Props<'_>, path: &Path, scope: Option<Scope<'_>>) -> Vec<Error> {
    let mut errors = Vec::from_iter(text_error(rule, path));
    let expression = rule.text("messageExpression");
    if !expression.is_empty() && expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        errors.push(Error::required(&path.child("messageExpression"), detail));
    }
    if let Some(reason) = rule.optional_text("reason").filter(|reason| !REASONS.contains(reason)) {
        errors.push(Error::not_supported(&path.child("reason"), BadValue::named(reason), REASONS));
    }
    let (field, path) = (rule.text("fieldPath"), path.child("fieldPath"));
    if field.is_empty() {
        return errors;
    }
    if field.trim().is_empty() {
        errors.push(Error::invalid(&path, field, "must be non-empty if specified"));
    }
    if has_line_break(field) {
        errors.push(Error::invalid(&path, field, "must not contain line breaks"));
    }
    let is_path = match scope {
        Some(scope) => field_path::resolve(field, scope.node, true).is_ok(),
        None => {
            Schema::of(schema).map_or(true, |schema| field_path::resolve(field, schema.root(), true).is_ok())
        }
    };
    if !is_path {
        errors.push(Error::invalid(&path, field, "must be a valid path"));
    }
    errors
}

fn text_error(rule: Props<'_>, path: &Path) -> Option<Error> {
    let (text, message) = (rule.text("rule").trim(), rule.text("message"));
    let message_path = path.child("message");
    if text.is_empty() {
        Some(Error::required(&path.child("rule"), "rule is not specified"))
    } else if !message.is_empty() && message.trim().is_empty() {
        Some(Error::invalid(&message_path, message, "must be non-empty if specified"))
    } else if has_line_break(message.trim()) {
        Some(Error::invalid(&message_path, message, "must not contain line breaks"))
    } else if has_line_break(text) && message.trim().is_empty() {
        Some(Error::required(&message_path, "message must be specified if rule contains line breaks"))
    } else {
        None
    }
}

impl<'a> Walk<'a> {
    /// Compiles the rules of a node, whose texts and whose schema are good.
    pub(super) fn compile_rules(
        &mut self,
        schema: Props<'a>,
        path: &Path,
        context: &Context,
        scope: Scope<'a>,
    ) {
        let path = path.child("x-kubernetes-validations");
        let place = RulePlace {
            node: scope.node,
            is_resource_root: scope.is_resource_root(),
            stored: &self.options.stored,
        };
        let compiled = match self.cel.compile(&place) {
            Ok(compiled) => compiled,
            Err(error) => return self.rule_errors.push(Error::internal(&path, error)),
        };
        let rules = schema.schemas("x-kubernetes-validations");
        for (index, (rule, compiled)) in rules.zip(compiled).enumerate() {
            self.compiled_rule(rule, &compiled, &path.index(index), context, scope);
        }
    }

    fn compiled_rule(
        &mut self,
        rule: Props<'a>,
        compiled: &CompiledRule,
        path: &Path,
        context: &Context,
        scope: Scope<'a>,
    ) {
        let cost = compiled.max_cost.saturating_mul(scope.cardinality.unwrap_or(compiled.max_cardinality));
        let rule_path = path.child("rule");
        self.observe(&rule_path, "estimated rule cost", cost);
        let shown = || BadValue::verbatim(internal::rule(rule));
        match &compiled.error {
            None => {}
            Some(RuleError::Required(detail)) => {
                self.rule_errors.push(Error::required(&rule_path, detail.clone()));
            }
            Some(RuleError::Invalid(detail)) => {
                self.rule_errors.push(Error::invalid(&rule_path, shown(), detail.clone()));
            }
        }
        let message_path = path.child("messageExpression");
        match &compiled.message_cost {
            None => {}
            Some(Err(detail)) => {
                self.rule_errors.push(Error::invalid(&message_path, shown(), detail.clone()))
            }
            Some(Ok(cost)) => self.observe(&message_path, "estimated messageExpression cost", *cost),
        }
        match (compiled.uses_old_self, &context.uncorrelatable, rule.optional_flag("optionalOldSelf")) {
            (true, Some(above), _) => {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {above}"
                );
                self.rule_errors.push(Error::invalid(&rule_path, rule.text("rule"), detail));
            }
            (false, _, Some(optional)) => {
                let detail = "may not be set if oldSelf is not used in rule";
                self.rule_errors.push(Error::invalid(&path.child("optionalOldSelf"), optional, detail));
            }
            _ => {}
        }
    }

    fn observe(&mut self, path: &Path, what: &str, cost: u64) {
        if cost > EXPRESSION_COST_LIMIT && !self.options.any_expression_cost {
            let detail = cost_text(what, cost, EXPRESSION_COST_LIMIT);
            self.rule_errors.push(Error::forbidden(path, detail));
        }
        self.costs.observe(path, cost);
    }
}
