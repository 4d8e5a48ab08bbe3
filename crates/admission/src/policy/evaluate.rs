//! What a policy says about a request, with upstream's texts.

use concord_cel::{Budget, Val};

use super::{
    ValidatingPolicy,
    bound::Input,
    compiled::{Annotation, Validation, Validations},
    kind_of_error,
};
use crate::{
    expressions::{Asking, Evaluator, OUT_OF_BUDGET, OutOfBudget, Values, Variables, Verdict},
    request::Request,
};

/// The longest text that an expression may make of a message, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

/// What a policy says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// What does not hold, with the place of the expression.
    pub(super) denied: Vec<(usize, Denied)>,
    /// What is to be noted about the request.
    pub(super) annotations: Vec<(String, String)>,
    /// Why something cannot be noted.
    pub(super) failed_annotations: Vec<String>,
}

/// Something that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Denied {
    pub(super) message: String,
    /// Empty for the usual one.
    pub(super) reason: String,
    /// What upstream's metrics call the error because of which it cannot be said.
    pub(super) error: Option<&'static str>,
}

impl Denied {
    /// Something that cannot be said.
    pub(super) fn failed(message: String) -> Self {
        let error = Some(kind_of_error(&message));
        Self { message, reason: String::new(), error }
    }
}

impl ValidatingPolicy {
    pub(super) fn evaluate(&self, request: &Request<'_>, input: Input<'_>) -> Outcome {
        let compiled = self.compiled();
        let asking = Asking::new(request);
        let values = input.values(self.param_kind.is_some(), Some(&asking));
        match compiled.common.decide(request, (&self.name, self.fail_open), &values) {
            Verdict::Matches => {}
            Verdict::Excluded => return Outcome::default(),
            Verdict::Failed(why) => return self.failed(why),
        }
        let silent = input.values(self.param_kind.is_some(), None);
        match self.denied(compiled, &values, &silent) {
            Err(OutOfBudget) => self.failed(OUT_OF_BUDGET.to_owned()),
            Ok(denied) => match self.annotate(compiled, &values) {
                Err(OutOfBudget) => self.failed(OUT_OF_BUDGET.to_owned()),
                Ok(noted) => Outcome { denied, ..noted },
            },
        }
    }

    /// The policy as a whole cannot be evaluated.
    fn failed(&self, why: String) -> Outcome {
        let denied = if self.fail_open { Vec::new() } else { vec![(0, Denied::failed(why))] };
        Outcome { denied, ..Outcome::default() }
    }

    fn denied(
        &self,
        compiled: &Validations,
        values: &Values<'_>,
        silent: &Values<'_>,
    ) -> Result<Vec<(usize, Denied)>, OutOfBudget> {
        let variables = Variables::new(&compiled.common.variables, values);
        let mut evaluator = Evaluator::new(values, Some(&variables), Budget::PER_OBJECT);
        let mut denied = Vec::new();
        let mut broken: Vec<usize> = Vec::new();
        for (at, validation) in compiled.validations.iter().enumerate() {
            match evaluator.evaluate(&validation.expression)? {
                Ok(Val::Bool(true)) => {}
                Ok(_) => broken.push(at),
                Err(_) if self.fail_open => {}
                Err(why) => denied.push((at, Denied::failed(why))),
            }
        }
        denied.extend(self.explain(&broken, compiled, silent, evaluator.remaining()));
        denied.sort_by_key(|(at, _)| *at);
        Ok(denied)
    }

    /// What to say about the validations that do not hold. Once the messages cost too much, nothing can be said.
    fn explain(
        &self,
        broken: &[usize],
        compiled: &Validations,
        values: &Values<'_>,
        budget: u64,
    ) -> Vec<(usize, Denied)> {
        let variables = Variables::new(&compiled.common.variables, values);
        let mut evaluator = Evaluator::new(values, Some(&variables), budget);
        let mut told = Vec::new();
        for at in broken.iter().copied() {
            let validation = &compiled.validations[at];
            let said = validation.message_expression.as_ref().map(|message| evaluator.evaluate(message));
            match said.transpose() {
                Ok(said) => {
                    let said = said.and_then(Result::ok).and_then(|said| said.as_str().and_then(printable));
                    let message = said.unwrap_or_else(|| default_message(validation));
                    told.push((at, Denied { message, reason: validation.reason.clone(), error: None }));
                }
                Err(OutOfBudget) if self.fail_open => return Vec::new(),
                Err(OutOfBudget) => {
                    let failed = Denied::failed(format!("failed messageExpression: {OUT_OF_BUDGET}"));
                    return broken.iter().map(|at| (*at, failed.clone())).collect();
                }
            }
        }
        told
    }

    fn annotate(&self, compiled: &Validations, values: &Values<'_>) -> Result<Outcome, OutOfBudget> {
        let variables = Variables::new(&compiled.common.variables, values);
        let mut evaluator = Evaluator::new(values, Some(&variables), Budget::PER_OBJECT);
        let mut outcome = Outcome::default();
        for Annotation { key, value } in &compiled.annotations {
            match evaluator.evaluate(value)? {
                Ok(Val::String(text)) => {
                    let text = text.trim();
                    if !text.is_empty() {
                        outcome.annotations.push((key.clone(), text.to_owned()));
                    }
                }
                Ok(_) => {}
                Err(_) if self.fail_open => {}
                Err(why) => outcome.failed_annotations.push(why),
            }
        }
        Ok(outcome)
    }
}

fn printable(text: &str) -> Option<String> {
    let text = text.trim();
    let is_fit = !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
    is_fit.then(|| text.to_owned())
}

fn default_message(validation: &Validation) -> String {
    match validation.message.is_empty() {
        true => format!("failed expression: {}", validation.expression.source.trim()),
        false => validation.message.clone(),
    }
}
