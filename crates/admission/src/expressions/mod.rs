//! Expressions about requests: match conditions, and what policies are made of.

mod asking;
mod conditions;
mod variables;

use concord_cel::{
    Activation, AuthorizerValue, Budget, Env, EvalError, Program, Type, Val, admission::compile,
};
use serde_json::Value;

pub(crate) use asking::Asking;
pub(crate) use conditions::{Conditions, Verdict, counted, decide};
pub(crate) use variables::Variables;

use crate::request::Versioned;

/// What all expressions that are evaluated for one condition or policy together may cost.
pub(crate) const MATCH_CONDITIONS_BUDGET: u64 = Budget::PER_OBJECT / 4;

/// An expression with what it was compiled to.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) source: String,
    pub(crate) program: Result<Program, String>,
}

/// Upstream's text for a set of expressions that cost too much together.
pub(crate) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The expressions cost too much together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfBudget;

impl Expression {
    /// Compiles an expression that has to be of one of these types.
    pub(crate) fn new(env: &Env, source: &str, types: &[Type]) -> Self {
        Self { source: source.to_owned(), program: compile(env, source, types) }
    }

    /// The value, or what to say about that there is none.
    ///
    /// # Errors
    ///
    /// [`OutOfBudget`], after which nothing more is evaluated.
    pub(crate) fn evaluate<'a>(
        &'a self,
        activation: &Activation<'a>,
        budget: &mut Budget,
    ) -> Result<Result<Val<'a>, String>, OutOfBudget> {
        let program = match &self.program {
            Ok(program) => program,
            Err(error) => return Ok(Err(format!("compilation error: {error}"))),
        };
        match program.eval(activation, budget) {
            Ok(value) => Ok(Ok(value)),
            Err(EvalError::Budget) => Err(OutOfBudget),
            Err(error) => Ok(Err(format!("expression '{}' resulted in error: {error}", self.source))),
        }
    }
}

/// Evaluates several expressions, which together may cost only so much.
pub(crate) struct Evaluator<'a> {
    activation: Activation<'a>,
    variables: Option<&'a Variables<'a>>,
    budget: Budget,
}

impl<'a> Evaluator<'a> {
    /// Of expressions that see these values.
    pub(crate) fn new(values: &'a Values<'a>, variables: Option<&'a Variables<'a>>, budget: u64) -> Self {
        let activation = values.activation();
        let activation = match variables {
            Some(variables) => activation.value("variables", variables.value()),
            None => activation,
        };
        Self { activation, variables, budget: Budget::new(budget) }
    }

    /// What is left for others.
    pub(crate) fn remaining(&self) -> u64 {
        self.budget.remaining()
    }

    /// The value of an expression, or what to say about that there is none.
    ///
    /// # Errors
    ///
    /// [`OutOfBudget`], after which nothing more is evaluated.
    pub(crate) fn evaluate(
        &mut self,
        expression: &'a Expression,
    ) -> Result<Result<Val<'a>, String>, OutOfBudget> {
        let outcome = expression.evaluate(&self.activation, &mut self.budget);
        // What was spent on variables that this expression was the first to read.
        let spent = self.variables.map_or(0, Variables::take_cost);
        if spent > 0 {
            let remaining = self.budget.remaining().checked_sub(spent).ok_or(OutOfBudget)?;
            self.budget = Budget::new(remaining);
        }
        outcome
    }
}

/// The values that expressions see.
pub(crate) struct Values<'a> {
    /// Who is asked what may be done, and about what; `None` if expressions cannot ask.
    pub(crate) asking: Option<&'a Asking<'a>>,
    pub(crate) versioned: &'a Versioned,
    pub(crate) request: &'a Value,
    pub(crate) namespace: &'a Value,
    pub(crate) params: Option<&'a Value>,
}

impl<'a> Values<'a> {
    fn activation(&self) -> Activation<'a> {
        let mut activation = Activation::new()
            .json("object", &self.versioned.object)
            .json("oldObject", &self.versioned.old)
            .json("request", self.request)
            .json("namespaceObject", self.namespace);
        if let Some(params) = self.params {
            activation = activation.json("params", params);
        }
        match self.asking {
            Some(asking) => {
                let target = AuthorizerValue::request_resource(asking.about.clone());
                activation
                    .value("authorizer", Val::Authorizer(AuthorizerValue::new()))
                    .value("authorizer.requestResource", Val::Authorizer(target))
                    .authorizer(asking)
            }
            None => activation,
        }
    }
}

/// Several errors as one text, as Go joins them.
pub(crate) fn aggregate(errors: Vec<String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for error in errors {
        if !distinct.contains(&error) {
            distinct.push(error);
        }
    }
    match distinct.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}
