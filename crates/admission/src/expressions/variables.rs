//! `variables` of a policy: expressions with names, evaluated when they are first read.

use std::{
    fmt,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use concord_cel::{Budget, EvalError, LazyMap, MapValue, Val};
use concord_meta::go::quote;

use super::{Expression, Values};

/// The variables of one evaluation of a policy, each evaluated at most once.
///
/// A variable may read those before it, so it is evaluated with a reference to all of them. That is why what is kept here
/// borrows from the whole, and why it is used only through a reference that lasts as long as it does.
pub(crate) struct Variables<'a> {
    compiled: &'a [(String, Expression)],
    values: &'a Values<'a>,
    results: Vec<OnceLock<Result<Val<'a>, EvalError>>>,
    cost: AtomicU64,
    myself: OnceLock<Handle<'a>>,
}

/// The variables as an expression reads them.
struct Handle<'a>(&'a Variables<'a>);

impl<'a> Variables<'a> {
    pub(crate) fn new(compiled: &'a [(String, Expression)], values: &'a Values<'a>) -> Self {
        let results = compiled.iter().map(|_| OnceLock::new()).collect();
        Self { compiled, values, results, cost: AtomicU64::new(0), myself: OnceLock::new() }
    }

    /// What expressions find under `variables`.
    pub(super) fn value(&'a self) -> Val<'a> {
        Val::Map(MapValue::Lazy(self.myself.get_or_init(|| Handle(self))))
    }

    /// What was spent on variables since this was last asked.
    pub(super) fn take_cost(&self) -> u64 {
        self.cost.swap(0, Ordering::Relaxed)
    }

    fn evaluate(&'a self, name: &str, expression: &'a Expression) -> Result<Val<'a>, EvalError> {
        let name = quote(name);
        let program = expression.program.as_ref().map_err(|error| {
            EvalError::Failed(format!("composited variable {name} fails to compile: {error}"))
        })?;
        let activation = self.values.activation().value("variables", self.value());
        // Each is limited by itself; what all cost together is for who reads them to judge.
        let mut budget = Budget::new(u64::MAX);
        let value = program.eval(&activation, &mut budget);
        self.cost.fetch_add(u64::MAX - budget.remaining(), Ordering::Relaxed);
        value.map_err(|error| {
            EvalError::Failed(format!("composited variable {name} fails to evaluate: {error}"))
        })
    }
}

impl LazyMap for Handle<'_> {
    fn get<'v>(&'v self, field: &str) -> Option<Result<Val<'v>, EvalError>> {
        let variables = self.0;
        // Of two of the same name the later counts.
        let at = variables.compiled.iter().rposition(|(name, _)| name == field)?;
        let (name, expression) = &variables.compiled[at];
        let result = variables.results[at].get_or_init(|| variables.evaluate(name, expression));
        Some(result.clone())
    }
}

impl fmt::Debug for Handle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.compiled.iter().map(|(name, _)| name)).finish()
    }
}
