//! `matchConditions`: expressions that all must hold for a webhook or a policy to be asked.

use std::{sync::OnceLock, time::Instant};

use concord_cel::{
    Type, Val,
    admission::{Optional, environment},
};
use concord_registry::Object;
use concord_server::AdmissionStep;
use serde_json::Value;

use super::{Asking, Evaluator, Expression, MATCH_CONDITIONS_BUDGET, OUT_OF_BUDGET, Values, aggregate};
use crate::{
    read::{objects, text},
    request::{Request, Versioned},
};

/// The conditions of a webhook, compiled when they are first asked for.
#[derive(Debug)]
pub(crate) struct Conditions {
    sources: Vec<String>,
    compiled: OnceLock<Vec<Expression>>,
    fail_open: bool,
}

/// What the conditions say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Ask.
    Matches,
    /// Do not.
    Excluded,
    /// It cannot be said, and that is not to be ignored.
    Failed(String),
}

impl Conditions {
    pub(crate) fn read(from: &Object, fail_open: bool) -> Self {
        let conditions = objects(from, "matchConditions");
        let sources = conditions.map(|condition| text(condition, "expression").to_owned()).collect();
        Self { sources, compiled: OnceLock::new(), fail_open }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    fn compiled(&self) -> &[Expression] {
        self.compiled.get_or_init(|| {
            let env = environment(Optional { params: false, authorizer: true });
            self.sources.iter().map(|source| Expression::new(&env, source, &[Type::Bool])).collect()
        })
    }

    /// Decides about a request.
    pub(crate) fn decide(&self, request: &Request<'_>, described: &Value, versioned: &Versioned) -> Verdict {
        let asking = Asking::new(request);
        let (asking, namespace, params) = (Some(&asking), &Value::Null, None);
        let values = Values { asking, versioned, request: described, namespace, params };
        let mut evaluator = Evaluator::new(&values, None, MATCH_CONDITIONS_BUDGET);
        decide(self.compiled(), &mut evaluator, self.fail_open)
    }
}

/// Decides, and counts what was decided: whose conditions they are, and whether that is a webhook or a policy.
pub(crate) fn counted(
    request: &Request<'_>,
    (of, kind): (AdmissionStep<'_>, &str),
    decide: impl FnOnce() -> Verdict,
) -> Verdict {
    let begun = Instant::now();
    let verdict = decide();
    let told = match &verdict {
        Verdict::Matches => concord_server::Conditions::Met,
        Verdict::Excluded => concord_server::Conditions::Excluding,
        Verdict::Failed(_) => concord_server::Conditions::Failed,
    };
    request.metrics().conditions(of, kind, told, begun.elapsed());
    verdict
}

/// Whether all conditions hold. One that does not excludes the request, whatever others say.
pub(crate) fn decide<'a>(
    conditions: &'a [Expression],
    evaluator: &mut Evaluator<'a>,
    fail_open: bool,
) -> Verdict {
    let failed = |why: String| if fail_open { Verdict::Excluded } else { Verdict::Failed(why) };
    let mut errors = Vec::new();
    for condition in conditions {
        match evaluator.evaluate(condition) {
            Err(_) => return failed(OUT_OF_BUDGET.to_owned()),
            Ok(Ok(Val::Bool(false))) => return Verdict::Excluded,
            Ok(Ok(_)) => {}
            Ok(Err(error)) => errors.push(error),
        }
    }
    match errors.is_empty() {
        true => Verdict::Matches,
        false => failed(aggregate(errors)),
    }
}
