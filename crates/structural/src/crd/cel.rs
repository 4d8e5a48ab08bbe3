//! How rules are compiled, and what they may cost.

use concord_meta::field::{Error, Path};
use serde_json::Value;

use super::{SCHEMA_COST_LIMIT, options::StoredExpressions};
use crate::schema::{Additional, Kind, Node};

/// Who compiles and evaluates rules. This crate does not know the language.
pub trait CelCompiler {
    /// Compiles the rules of a node, in their order.
    ///
    /// # Errors
    ///
    /// A text if no types can be made of the node.
    fn compile(&self, place: &RulePlace<'_>) -> Result<Vec<CompiledRule>, String>;

    /// Evaluates all rules of a node and below on its default, once with the default as its own old value and once
    /// without an old one. `budget` is the cost that is left; what remains of it is answered, negative if nothing.
    fn validate_default(
        &self,
        place: &RulePlace<'_>,
        default: &Value,
        path: &Path,
        budget: i64,
    ) -> (Vec<Error>, i64);
}

/// A node whose rules are compiled.
#[derive(Clone, Copy, Debug)]
pub struct RulePlace<'a> {
    /// The node: the type of `self` and the rules.
    pub node: Node<'a>,
    /// Whether the node is a whole resource, so that its type and its names can always be seen.
    pub is_resource_root: bool,
    pub(super) stored: &'a StoredExpressions,
}

impl RulePlace<'_> {
    /// Whether the stored definition has this rule: then it is compiled with everything the server knows.
    #[must_use]
    pub fn is_stored_rule(&self, rule: &str) -> bool {
        self.stored.rules.contains(rule)
    }

    /// Whether the stored definition has this expression of a message.
    #[must_use]
    pub fn is_stored_message(&self, expression: &str) -> bool {
        self.stored.messages.contains(expression)
    }
}

/// What compiling a rule came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompiledRule {
    /// Why it could not be compiled.
    pub error: Option<RuleError>,
    /// The most that one evaluation is estimated to cost.
    pub max_cost: u64,
    /// How often it can be evaluated in one object, going by the size of requests.
    pub max_cardinality: u64,
    /// What is wrong with the expression of the message, or what it costs at most; `None` without one.
    pub message_cost: Option<Result<u64, String>>,
    /// Whether it compares with the old value.
    pub uses_old_self: bool,
}

/// Why a rule could not be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// There is no rule.
    Required(String),
    /// The rule is wrong.
    Invalid(String),
}

/// Takes every rule for good and free: for servers without rules, and for tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCel;

impl CelCompiler for NoCel {
    fn compile(&self, place: &RulePlace<'_>) -> Result<Vec<CompiledRule>, String> {
        let compiled = |rule: &crate::Rule| CompiledRule {
            uses_old_self: rule.rule.contains("oldSelf"),
            ..CompiledRule::default()
        };
        Ok(place.node.rules().iter().map(compiled).collect())
    }

    fn validate_default(&self, _: &RulePlace<'_>, _: &Value, _: &Path, budget: i64) -> (Vec<Error>, i64) {
        (Vec::new(), budget)
    }
}

/// A node that may have rules, and how often it can occur in an object.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) node: Node<'a>,
    /// `None` if nothing in the schema bounds it.
    pub(super) cardinality: Option<u64>,
}

impl<'a> Scope<'a> {
    pub(super) fn root(node: Node<'a>) -> Self {
        Self { node, cardinality: Some(1) }
    }

    pub(super) fn is_resource_root(self) -> bool {
        self.node.is_root() || self.node.is_embedded_resource()
    }

    pub(super) fn property(self, name: &str) -> Option<Self> {
        self.node.property(name).map(|node| self.below(node))
    }

    pub(super) fn items(self) -> Option<Self> {
        self.node.items().map(|node| self.below(node))
    }

    pub(super) fn values(self) -> Option<Self> {
        self.node.additional().schema().map(|node| self.below(node))
    }

    fn below(self, node: Node<'a>) -> Self {
        let most = |limit: Option<i64>| limit.map(|limit| u64::try_from(limit).unwrap_or(0));
        let factor = match (self.node.kind(), self.node.additional()) {
            (Kind::Array, _) => most(self.node.max_items()),
            (Kind::Object, Additional::Unset) => Some(1),
            (Kind::Object, _) => most(self.node.max_properties()),
            _ => Some(1),
        };
        let cardinality = self.cardinality.zip(factor).map(|(one, factor)| one.saturating_mul(factor));
        Self { node, cardinality }
    }
}

/// The costs of all expressions of a schema.
#[derive(Default)]
pub(super) struct Costs {
    total: u64,
    /// The most expensive ones that matter.
    highest: Vec<(u64, Path)>,
}

impl Costs {
    pub(super) fn observe(&mut self, path: &Path, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost < SCHEMA_COST_LIMIT / 100 {
            return;
        }
        self.highest.push((cost, path.clone()));
        self.highest.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        self.highest.truncate(4);
    }

    pub(super) fn errors(&self, path: &Path) -> Vec<Error> {
        if self.total <= SCHEMA_COST_LIMIT {
            return Vec::new();
        }
        let detail =
            "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let mut errors: Vec<_> =
            self.highest.iter().map(|(_, path)| Error::forbidden(path, detail)).collect();
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(Error::forbidden(path, cost_text(what, self.total, SCHEMA_COST_LIMIT)));
        errors
    }
}

/// Upstream's text about an expression that may cost too much.
pub(super) fn cost_text(what: &str, cost: u64, limit: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "a factor is told, not a cost")]
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        factor if factor > 100.0 => "more than 100x".to_owned(),
        factor if factor < 1.5 => format!("{factor:.6}x"),
        factor => format!("{factor:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}
