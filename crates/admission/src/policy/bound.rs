//! What a policy is evaluated on: which of its bindings concern a request, and with what.

use concord_registry::Object;
use serde_json::Value;

use super::{Binding, Policy, compiled::Common};
use crate::{
    expressions::{Asking, Evaluator, MATCH_CONDITIONS_BUDGET, Values, Variables, Verdict, counted, decide},
    request::{Matched, Request, Versioned},
};

/// What a policy is evaluated on.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub(super) versioned: &'a Versioned,
    /// The request without its objects.
    pub(super) described: &'a Value,
    pub(super) namespace: &'a Value,
    pub(super) params: &'a Value,
}

impl<'a> Input<'a> {
    pub(super) fn values(self, has_params: bool, asking: Option<&'a Asking<'a>>) -> Values<'a> {
        Values {
            asking,
            versioned: self.versioned,
            request: self.described,
            namespace: self.namespace,
            params: has_params.then_some(self.params),
        }
    }
}

/// The bindings that concern a request, each with its parameters or with what is wrong with it; and as what the policy
/// wants to see the request.
pub(super) type Bound<'a> = (Matched, Vec<(&'a Binding, Result<Vec<Value>, String>)>);

impl<C> Policy<C> {
    /// Which of its bindings concern the request; `None` if the policy does not.
    ///
    /// # Errors
    ///
    /// What is wrong with the policy, in upstream's words.
    pub(super) async fn bound_to(
        &self,
        request: &Request<'_>,
        object: Option<&Object>,
    ) -> Result<Option<Bound<'_>>, String> {
        let Some(criteria) = &self.criteria else {
            return Err("policy contained no match constraints, a required field".to_owned());
        };
        let matched = criteria.matches(request, object).await.map_err(|status| status.message)?;
        let Some(matched) = matched else { return Ok(None) };
        let resource = self.param_resource(request)?;
        let mut bound = Vec::new();
        for binding in &self.bindings {
            match binding.applies(request, object).await {
                Ok(false) => {}
                Ok(true) => bound.push((binding, binding.params(request, resource.as_deref()))),
                Err(why) => bound.push((binding, Err(why))),
            }
        }
        Ok(Some((matched, bound)))
    }
}

impl Binding {
    async fn applies(&self, request: &Request<'_>, object: Option<&Object>) -> Result<bool, String> {
        match &self.criteria {
            None => Ok(true),
            Some(criteria) => {
                let matched = criteria.matches(request, object).await;
                matched.map(|matched| matched.is_some()).map_err(|status| status.message)
            }
        }
    }
}

impl Common {
    /// Whether a policy of this name is to be evaluated at all.
    pub(super) fn decide(
        &self,
        request: &Request<'_>,
        (policy, fail_open): (&str, bool),
        values: &Values<'_>,
    ) -> Verdict {
        if self.conditions.is_empty() {
            return Verdict::Matches;
        }
        // Upstream tells all of them as conditions of validation.
        counted(request, (request.step(policy, "validate"), "policy"), || {
            let variables = Variables::new(&self.variables, values);
            let mut evaluator = Evaluator::new(values, Some(&variables), MATCH_CONDITIONS_BUDGET);
            decide(&self.conditions, &mut evaluator, fail_open)
        })
    }
}
