//! The rules of a definition that is to be stored.

use std::sync::Arc;

use concord_cel::Version;
use concord_meta::field::{Error, Path};
use concord_structural::Rule;
use concord_structural::crd::{CelCompiler, CompiledRule, RuleError, RulePlace};
use serde_json::Value;

use crate::compile::{self, Compiled, Expressions, Versions};
use crate::decl;
use crate::json::Json;
use crate::place::Place;
use crate::walk::Walk;

/// What is said of a definition with rules where no types can be made of the schema.
const NO_TYPE: &str = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to \
                       convert structural schema to CEL declarations";

/// Checks the rules of definitions, as `concord_structural::crd` asks for it.
#[derive(Clone, Copy, Debug)]
pub struct RuleCompiler {
    /// The oldest version that a stored definition must still work with: new expressions use nothing newer.
    compatibility: Version,
}

impl RuleCompiler {
    /// New rules may use what Kubernetes 1.`minor` has.
    #[must_use]
    pub fn compatible_with(minor: u16) -> Self {
        Self { compatibility: Version::new(1, minor) }
    }

    fn versions(&self, place: &RulePlace<'_>, rule: &Rule) -> Versions {
        let version = |is_stored| if is_stored { Version::ALL } else { self.compatibility };
        Versions {
            rule: version(place.is_stored_rule(&rule.rule)),
            message: version(place.is_stored_message(&rule.message_expression)),
        }
    }
}

impl CelCompiler for RuleCompiler {
    fn compile(&self, place: &RulePlace<'_>) -> Result<Vec<CompiledRule>, String> {
        let decl = decl::of(place.node, place.is_resource_root).ok_or(NO_TYPE)?;
        let max_cardinality = decl.max_cardinality();
        let compiled = Compiled::new(place.node, Arc::new(decl), |rule| self.versions(place, rule));
        Ok(compiled.rules.iter().map(|rule| outcome(rule, max_cardinality)).collect())
    }

    fn validate_default(
        &self,
        place: &RulePlace<'_>,
        default: &Value,
        path: &Path,
        budget: i64,
    ) -> (Vec<Error>, i64) {
        let Some(rules) = Place::new(place.node, place.is_resource_root) else {
            return (Vec::new(), budget);
        };
        let run = |old| {
            let mut walk = Walk::new(u64::try_from(budget).unwrap_or(0));
            walk.part(place.node, &rules, path, Json::Value(default), old);
            walk.finish()
        };
        let (updated, left) = run(Some(Json::Value(default)));
        if !updated.errors.is_empty() {
            return (updated.errors, left);
        }
        let (created, left_of_create) = run(None);
        (created.errors, left.min(left_of_create))
    }
}

fn outcome(rule: &compile::CompiledRule, max_cardinality: u64) -> CompiledRule {
    match rule {
        None => CompiledRule::default(),
        Some(Err(error)) => {
            CompiledRule { error: Some(RuleError::Invalid(error.clone())), ..CompiledRule::default() }
        }
        Some(Ok(rule)) => CompiledRule {
            error: None,
            max_cost: rule.rule.cost_estimate().max,
            max_cardinality,
            message_cost: message_cost(rule),
            uses_old_self: rule.uses_old_self,
        },
    }
}

fn message_cost(rule: &Expressions) -> Option<Result<u64, String>> {
    let message = rule.message.as_ref()?;
    Some(message.as_ref().map(|message| message.program.cost_estimate().max).map_err(String::clone))
}
