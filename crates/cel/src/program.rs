//! Environments, programs and their evaluation.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::authorizer::Authorizer;
use crate::check;
use crate::cost::{self, CostEstimate};
use crate::decl::Decl;
use crate::error::EvalError;
use crate::eval::{Evaluation, Work};
use crate::literals;
use crate::parse;
use crate::plan::{self, Plan};
use crate::source::Issues;
use crate::types::Type;
use crate::value::{Val, from_json};
use crate::version::{Features, Version};

/// What expressions can use: the functions of a version, and variables.
///
/// ```
/// use concord_cel::{Activation, Budget, Decl, Env, Type, Version};
///
/// let env = Env::new(Version::CURRENT).variable("self", Decl::simple(Type::Int));
/// let program = env.compile("self * 2 < 10")?;
/// assert_eq!(program.output_type(), &Type::Bool);
/// let five = serde_json::json!(5);
/// let result = program.eval(&Activation::new().json("self", &five), &mut Budget::default())?;
/// assert_eq!(result.as_bool(), Some(false));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Env {
    version: Version,
    variables: BTreeMap<String, Arc<Decl>>,
    /// The variable whose declaration sizes are estimated from.
    root: Option<Arc<Decl>>,
    /// Whether there are the types that mutations are made of.
    patch_types: bool,
    /// Whether there is `cel.bind`.
    bindings: bool,
}

/// Why an expression cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// It does not parse or does not check. Upstream says `compilation failed: ` before this.
    #[error("{0}")]
    Issues(Issues),
    /// It checks and still cannot be evaluated, like `int('a')`. Upstream says `program instantiation failed: ` before
    /// this.
    #[error("{0}")]
    Instantiation(String),
}

impl Env {
    /// An environment without variables.
    pub fn new(version: Version) -> Self {
        Self { version, variables: BTreeMap::new(), root: None, patch_types: false, bindings: false }
    }

    /// The same with what mutations are made of: the types `Object`, `Object.spec` and so on, and `JSONPatch`, with the
    /// function `jsonpatch.escapeKey`.
    #[must_use]
    pub fn with_patch_types(mut self) -> Self {
        self.patch_types = true;
        self
    }

    /// The same with `cel.bind`, which gives a value a name.
    #[must_use]
    pub(crate) fn with_bindings(mut self) -> Self {
        self.bindings = true;
        self
    }

    /// The same with a variable more. The first one is the root that sizes are estimated from. A name with dots, like
    /// `authorizer.requestResource`, is one variable.
    #[must_use]
    pub fn variable(mut self, name: &str, decl: impl Into<Arc<Decl>>) -> Self {
        let decl = decl.into();
        self.root.get_or_insert_with(|| Arc::clone(&decl));
        self.variables.insert(name.to_owned(), decl);
        self
    }

    /// Parses, checks and plans an expression.
    pub fn compile(&self, source: &str) -> Result<Program, CompileError> {
        let features = Features { bindings: self.bindings, ..Features::of(self.version) };
        let parsed = parse::parse(source, features).map_err(CompileError::Issues)?;
        let types: BTreeMap<String, Type> =
            self.variables.iter().map(|(name, decl)| (name.clone(), decl.to_type())).collect();
        let checked =
            check::check(source, &parsed.expr, parsed.ids, &types, (self.version, self.patch_types))
                .map_err(CompileError::Issues)?;
        literals::check(source, &parsed.expr, &checked, features.literal_checks)
            .map_err(CompileError::Issues)?;
        let plan = plan::plan(&parsed.expr, &checked)
            .map_err(|error| CompileError::Instantiation(error.to_string()))?;
        let estimate = cost::estimate(&parsed.expr, &checked, self.root.as_deref());
        let decls = plan
            .globals
            .iter()
            .map(|name| self.variables.get(&**name).map_or_else(|| Arc::new(Decl::dynamic()), Arc::clone))
            .collect();
        let uses = self.variables.keys().filter(|name| checked.uses(name)).cloned().collect();
        let output = checked.type_of(&parsed.expr).clone();
        Ok(Program { plan, decls, uses, output, estimate })
    }
}

/// A compiled expression. It can be evaluated by many threads at once.
#[derive(Debug)]
pub struct Program {
    plan: Plan,
    /// The declarations of the variables of the plan.
    decls: Vec<Arc<Decl>>,
    uses: Vec<String>,
    output: Type,
    estimate: CostEstimate,
}

impl Program {
    /// The type of the result.
    pub fn output_type(&self) -> &Type {
        &self.output
    }

    /// What an evaluation can cost.
    pub fn cost_estimate(&self) -> CostEstimate {
        self.estimate
    }

    /// Whether a variable is used. A rule that uses `oldSelf` runs on updates only.
    pub fn uses(&self, variable: &str) -> bool {
        self.uses.iter().any(|used| used == variable)
    }

    /// Evaluates, and takes what it cost from the budget.
    pub fn eval<'a>(
        &'a self,
        activation: &Activation<'a>,
        budget: &mut Budget,
    ) -> Result<Val<'a>, EvalError> {
        let globals =
            self.plan.globals.iter().zip(&self.decls).map(|(name, decl)| activation.get(name, decl));
        let mut work = Work::new(budget.per_call);
        let mut evaluation = Evaluation {
            plan: &self.plan,
            globals: globals.collect(),
            locals: vec![None; self.plan.slots],
            work: &mut work,
            authorizer: activation.authorizer,
        };
        let result = evaluation.eval(&self.plan.root);
        budget.spend(work.cost())?;
        result
    }
}

/// The values of the variables for one evaluation.
#[derive(Debug, Clone, Default)]
pub struct Activation<'a> {
    bindings: Vec<(&'a str, Binding<'a>)>,
    authorizer: Option<&'a dyn Authorizer>,
}

#[derive(Debug, Clone)]
enum Binding<'a> {
    Json(&'a Value),
    Val(Val<'a>),
}

impl<'a> Activation<'a> {
    /// Without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// With JSON for a variable. It is read by the declaration of the variable, and never copied.
    #[must_use]
    pub fn json(mut self, name: &'a str, value: &'a Value) -> Self {
        self.bindings.push((name, Binding::Json(value)));
        self
    }

    /// With a value for a variable.
    #[must_use]
    pub fn value(mut self, name: &'a str, value: Val<'a>) -> Self {
        self.bindings.push((name, Binding::Val(value)));
        self
    }

    /// With the authorizer that checks ask.
    #[must_use]
    pub fn authorizer(mut self, authorizer: &'a dyn Authorizer) -> Self {
        self.authorizer = Some(authorizer);
        self
    }

    fn get(&self, name: &str, decl: &'a Decl) -> Option<Result<Val<'a>, EvalError>> {
        let (_, binding) = self.bindings.iter().rev().find(|(bound, _)| *bound == name)?;
        Some(match binding {
            Binding::Json(value) => from_json(value, decl),
            Binding::Val(value) => Ok(value.clone()),
        })
    }
}

/// What evaluations may cost: each one, and all of one object or policy together.
#[derive(Debug, Clone)]
pub struct Budget {
    per_call: u64,
    remaining: u64,
}

impl Budget {
    /// The most that one expression may cost, in upstream's units.
    pub const PER_CALL: u64 = 1_000_000;
    /// The most that the rules of one custom resource or the expressions of one policy may cost.
    pub const PER_OBJECT: u64 = 10_000_000;

    /// A budget for all evaluations, with the usual limit for each.
    pub fn new(total: u64) -> Self {
        Self { per_call: Self::PER_CALL, remaining: total }
    }

    /// The same with another limit for each evaluation.
    #[must_use]
    pub fn with_limit_per_call(mut self, limit: u64) -> Self {
        self.per_call = limit;
        self
    }

    /// What is left.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    fn spend(&mut self, cost: u64) -> Result<(), EvalError> {
        match self.remaining.checked_sub(cost) {
            Some(remaining) => {
                self.remaining = remaining;
                Ok(())
            }
            None => {
                self.remaining = 0;
                Err(EvalError::Budget)
            }
        }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(Self::PER_OBJECT)
    }
}
