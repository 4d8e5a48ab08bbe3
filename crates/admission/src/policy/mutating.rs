//! MutatingAdmissionPolicies: which of them change an object, in which order, and which have another look.

use std::{collections::HashSet, sync::Arc, time::Instant};

use concord_meta::{Reason, Status, StatusCause};
use concord_registry::{Object, metadata};
use serde_json::Value;

use super::{Binding, MutatingPolicy, bound::Input, compiled::Mutation, mutate::Failed};
use crate::{
    expressions::{Asking, Verdict},
    request::{Matched, Request},
};

/// What MutatingAdmissionPolicies do in one of the rounds of admission.
pub(crate) struct MutatingPolicies<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) policies: &'a [MutatingPolicy],
}

/// What is remembered from one round to the next.
#[derive(Default)]
pub(crate) struct Rounds {
    /// Whether a policy was applied to the object.
    pub(crate) changed: bool,
    /// Those that were applied, and are to be applied again if the object changes after that.
    applied: HashSet<Key>,
    /// Those whose time has come.
    again: HashSet<Key>,
    /// The object as the policies left it.
    left: Option<Object>,
}

/// Policy, binding, and namespace and name of the parameters.
type Key = [String; 4];

impl Rounds {
    fn object_changed(&mut self) {
        self.again.extend(self.applied.drain());
    }
}

/// A policy with one of its bindings and parameters.
struct Invocation<'a> {
    policy: &'a MutatingPolicy,
    binding: &'a Binding,
    matched: Arc<Matched>,
    params: Value,
}

/// What went wrong, and with whom.
struct Problem<'a> {
    policy: &'a MutatingPolicy,
    binding: Option<&'a Binding>,
    message: String,
    /// Whether it was found in evaluating, and not in finding out what to evaluate.
    evaluated: bool,
}

impl<'a> MutatingPolicies<'a> {
    /// Changes the object. In another round than the first only those do that have a reason to.
    ///
    /// # Errors
    ///
    /// What policies that must not fail failed at.
    pub(crate) async fn round(
        &self,
        object: &mut Object,
        rounds: &mut Rounds,
        first: bool,
    ) -> Result<(), Status> {
        let mut problems = Vec::new();
        let invocations = self.invocations(object, &mut problems).await;
        if !first && rounds.left.as_ref() != Some(object) {
            rounds.object_changed();
        }
        let result = self.invoke(&invocations, object, rounds, first, &mut problems).await;
        rounds.left = Some(object.clone());
        result?;
        problems.retain(|problem| !problem.policy.fail_open);
        match problems.is_empty() {
            true => Ok(()),
            false => Err(self.refusal(&problems)),
        }
    }

    async fn invocations(&self, object: &Object, problems: &mut Vec<Problem<'a>>) -> Vec<Invocation<'a>> {
        let mut all = Vec::new();
        for policy in self.policies {
            let (matched, bound) = match policy.bound_to(self.request, Some(object)).await {
                Ok(Some((matched, bound))) => (Arc::new(matched), bound),
                Ok(None) => continue,
                Err(why) => {
                    problems.push(Problem::of_configuration(policy, None, &why));
                    continue;
                }
            };
            for (binding, params) in bound {
                match params {
                    Ok(params) => all.extend(params.into_iter().map(|params| Invocation {
                        policy,
                        binding,
                        matched: matched.clone(),
                        params,
                    })),
                    Err(why) => problems.push(Problem::of_configuration(policy, Some(binding), &why)),
                }
            }
        }
        all
    }

    async fn invoke(
        &self,
        invocations: &[Invocation<'a>],
        object: &mut Object,
        rounds: &mut Rounds,
        first: bool,
        problems: &mut Vec<Problem<'a>>,
    ) -> Result<(), Status> {
        if invocations.is_empty() {
            return Ok(());
        }
        let namespace = self.request.namespace_object().await?;
        let mut applied = false;
        for invocation in invocations {
            let turn = Turn { request: self.request, invocation, namespace: &namespace };
            match turn.verdict(object)? {
                Verdict::Matches => {}
                Verdict::Excluded => continue,
                Verdict::Failed(why) => {
                    problems.push(turn.problem(why));
                    continue;
                }
            }
            let key = invocation.key();
            if !first && !rounds.again.contains(&key) {
                continue;
            }
            let before = object.clone();
            for mutation in &invocation.policy.compiled().mutations {
                match turn.mutate(object, mutation) {
                    Ok(()) => applied = true,
                    Err(Failed::Policy(why)) => problems.push(turn.problem(why)),
                    Err(Failed::Request(status)) => return Err(status),
                }
            }
            if *object != before {
                rounds.object_changed();
            }
            if invocation.policy.compiled().reinvocable {
                rounds.applied.insert(key);
            }
        }
        // Upstream has all of them look again after any was applied, changed or not.
        if applied {
            rounds.object_changed();
            rounds.changed = true;
        }
        Ok(())
    }

    fn refusal(&self, problems: &[Problem<'_>]) -> Status {
        let name = self.request.attributes.name;
        let mut status = Status::forbidden(&self.request.group_resource(), name, "");
        if let Some(problem) = problems.first() {
            status.message = problem.text();
            if problem.evaluated {
                status.reason = Reason::INVALID;
            }
        }
        problems.iter().fold(status, |status, problem| {
            status.with_cause(StatusCause { message: problem.text(), ..StatusCause::default() })
        })
    }
}

/// One invocation, on the object as it is by then.
struct Turn<'t, 'a> {
    request: &'t Request<'t>,
    invocation: &'t Invocation<'a>,
    namespace: &'t Value,
}

impl<'a> Turn<'_, 'a> {
    /// Evaluates something on the object.
    fn on<T>(&self, object: &Object, evaluate: impl FnOnce(Input<'_>) -> T) -> Result<T, Status> {
        let Invocation { matched, params, .. } = self.invocation;
        let versioned = self.request.versioned(Some(object), &matched.kind)?;
        let described = Value::Object(self.request.describe(matched));
        Ok(evaluate(Input {
            versioned: &versioned,
            described: &described,
            namespace: self.namespace,
            params,
        }))
    }

    fn verdict(&self, object: &Object) -> Result<Verdict, Status> {
        let policy = self.invocation.policy;
        let common = &policy.compiled().common;
        if common.conditions.is_empty() {
            return Ok(Verdict::Matches);
        }
        self.on(object, |input| {
            let asking = Asking::new(self.request);
            let values = input.values(policy.param_kind.is_some(), Some(&asking));
            common.decide(self.request, (&policy.name, policy.fail_open), &values)
        })
    }

    fn mutate(&self, object: &mut Object, mutation: &Mutation) -> Result<(), Failed> {
        let Invocation { policy, binding, matched, .. } = self.invocation;
        let begun = Instant::now();
        let mutated = self.on(object, |input| policy.mutate(self.request, matched, input, mutation));
        let mutated = mutated.map_err(Failed::Request).flatten();
        let error = mutated.as_ref().err().map_or("no_error", Failed::kind);
        self.request.metrics().mutation(&policy.name, &binding.name, error, begun.elapsed());
        let mut mutated = mutated?;
        self.request.convert_in_place(&mut mutated, &self.request.kind).map_err(Failed::Request)?;
        *object = mutated;
        Ok(())
    }

    fn problem(&self, message: String) -> Problem<'a> {
        let Invocation { policy, binding, .. } = self.invocation;
        Problem { policy, binding: Some(binding), message, evaluated: true }
    }
}

impl Invocation<'_> {
    fn key(&self) -> Key {
        let params = self.params.as_object().map(|params| metadata(params));
        let of = |field: fn(&concord_registry::Metadata<'_>) -> String| {
            params.as_ref().map(field).unwrap_or_default()
        };
        [
            self.policy.name.clone(),
            self.binding.name.clone(),
            of(|metadata| metadata.namespace().to_owned()),
            of(|metadata| metadata.name().to_owned()),
        ]
    }
}

impl<'a> Problem<'a> {
    fn of_configuration(policy: &'a MutatingPolicy, binding: Option<&'a Binding>, why: &str) -> Self {
        let what = if binding.is_some() { "binding" } else { "policy" };
        Self { policy, binding, message: format!("failed to configure {what}: {why}"), evaluated: false }
    }

    fn text(&self) -> String {
        let policy = &self.policy.name;
        match self.binding {
            Some(binding) => {
                format!("policy '{policy}' with binding '{}' denied request: {}", binding.name, self.message)
            }
            None => format!("policy {policy:?} denied request: {}", self.message),
        }
    }
}
