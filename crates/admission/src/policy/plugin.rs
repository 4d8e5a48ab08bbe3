use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use concord_meta::{Reason, Status, StatusCause};
use concord_registry::{Admission, Attributes, Object};
use serde_json::{Value, json};

use super::{
    Binding, ValidatingPolicy,
    bound::Input,
    evaluate::{Denied, Outcome},
};
use crate::{
    request::{Matched, Request},
    shared::Shared,
};

/// Upstream's key for what would have been refused.
const FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";

/// The longest value of an annotation, in bytes.
const MAX_ANNOTATION: usize = 10 * 1024;

/// ValidatingAdmissionPolicy: evaluates all policies that are bound to a request, and refuses what one of them refuses.
pub struct ValidatingPolicies(pub(crate) Arc<Shared>);

/// A refusal, and whose it is.
struct Refusal<'a> {
    policy: &'a ValidatingPolicy,
    binding: Option<&'a Binding>,
    denied: Denied,
}

#[async_trait]
impl Admission for ValidatingPolicies {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionPolicy"
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Object>) -> Result<(), Status> {
        let configured = self.0.configured.load_full();
        if configured.policies.is_empty() {
            return Ok(());
        }
        let Some(request) = Request::to_policies(&self.0, attributes) else { return Ok(()) };
        let mut refusals = Vec::new();
        for policy in &configured.policies {
            policy.decide(&request, object, &mut refusals).await?;
        }
        match refusals.first() {
            None => Ok(()),
            Some(refusal) => Err(refusal.status(&request)),
        }
    }
}

impl ValidatingPolicy {
    /// Adds what the policy refuses.
    ///
    /// # Errors
    ///
    /// What is no matter of the policy, such as a namespace that is not there.
    async fn decide<'a>(
        &'a self,
        request: &Request<'_>,
        object: Option<&Object>,
        refusals: &mut Vec<Refusal<'a>>,
    ) -> Result<(), Status> {
        let (matched, bound) = match self.bound_to(request, object).await {
            Ok(Some(bound)) => bound,
            Ok(None) => return Ok(()),
            Err(why) => {
                refusals.extend(self.misconfigured(None, &why));
                return Ok(());
            }
        };
        let mut notes = Notes::default();
        for (binding, params) in bound {
            match params {
                Ok(params) => {
                    self.bound(request, object, (binding, &matched, &params), &mut notes, refusals).await?;
                }
                Err(why) => refusals.extend(self.misconfigured(Some(binding), &why)),
            }
        }
        for (key, values) in notes.0 {
            request.attributes.context.annotate(format!("{}/{key}", self.name), values.join(", "));
        }
        Ok(())
    }

    /// Evaluates the policy with each of the parameters of a binding.
    async fn bound<'a>(
        &'a self,
        request: &Request<'_>,
        object: Option<&Object>,
        (binding, matched, params): (&'a Binding, &Matched, &[Value]),
        notes: &mut Notes,
        refusals: &mut Vec<Refusal<'a>>,
    ) -> Result<(), Status> {
        if params.is_empty() {
            return Ok(());
        }
        let versioned = match request.versioned(object, &matched.kind) {
            Ok(versioned) => versioned,
            Err(status) => {
                let why = format!("failed to convert object version: {}", status.message);
                refusals.extend(self.misconfigured(Some(binding), &why));
                return Ok(());
            }
        };
        let described = Value::Object(request.describe(matched));
        let namespace = request.namespace_object().await?;
        for params in params {
            let input = Input { versioned: &versioned, described: &described, namespace: &namespace, params };
            let begun = Instant::now();
            let outcome = self.evaluate(request, input);
            self.act((request, begun.elapsed()), binding, outcome, notes, refusals);
        }
        Ok(())
    }

    /// Does what the binding says about what does not hold.
    fn act<'a>(
        &'a self,
        (request, time): (&Request<'_>, Duration),
        binding: &'a Binding,
        outcome: Outcome,
        notes: &mut Notes,
        refusals: &mut Vec<Refusal<'a>>,
    ) {
        let context = request.attributes.context;
        let count = |denied: &Denied, action: &str| {
            let told = [denied.error.unwrap_or("no_error"), action];
            request.metrics().validation(&self.name, &binding.name, told, time);
        };
        for (at, denied) in outcome.denied {
            for action in &binding.actions {
                match action.as_str() {
                    "Deny" => {
                        count(&denied, "deny");
                        refusals.push(Refusal {
                            policy: self,
                            binding: Some(binding),
                            denied: denied.clone(),
                        });
                    }
                    "Warn" => {
                        count(&denied, "warn");
                        context.warn(&format!(
                            "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                            self.name, binding.name, denied.message
                        ));
                    }
                    "Audit" => {
                        let failure = json!([{
                            "message": denied.message, "policy": self.name, "binding": binding.name,
                            "expressionIndex": at, "validationActions": binding.actions,
                        }]);
                        count(&denied, "audit");
                        context.annotate(FAILURE, failure.to_string());
                    }
                    _ => {}
                }
            }
        }
        for why in outcome.failed_annotations {
            let denied = Denied::failed(why);
            count(&denied, "deny");
            refusals.push(Refusal { policy: self, binding: Some(binding), denied });
        }
        outcome.annotations.into_iter().for_each(|(key, value)| notes.add(key, value));
    }

    /// What follows from a policy or a binding that cannot be used.
    fn misconfigured<'a>(&'a self, binding: Option<&'a Binding>, why: &str) -> Option<Refusal<'a>> {
        let what = if binding.is_some() { "binding" } else { "policy" };
        let denied = Denied::failed(format!("failed to configure {what}: {why}"));
        (!self.fail_open).then_some(Refusal { policy: self, binding, denied })
    }
}

impl Refusal<'_> {
    fn status(&self, request: &Request<'_>) -> Status {
        let Self { policy, binding, denied } = self;
        let message = match binding {
            Some(binding) => format!(
                "ValidatingAdmissionPolicy '{}' with binding '{}' denied request: {}",
                policy.name, binding.name, denied.message
            ),
            None => format!("ValidatingAdmissionPolicy '{}' denied request: {}", policy.name, denied.message),
        };
        let mut status = Status::forbidden(&request.group_resource(), request.attributes.name, &message);
        (status.reason, status.code) = match denied.reason.as_str() {
            "Forbidden" => (Reason::FORBIDDEN, 403),
            "Unauthorized" => (Reason::UNAUTHORIZED, 401),
            "RequestEntityTooLarge" => (Reason::REQUEST_ENTITY_TOO_LARGE, 413),
            _ => (Reason::INVALID, 422),
        };
        status.with_cause(StatusCause { message, ..StatusCause::default() })
    }
}

/// Annotations of one policy. Bindings may make different ones under the same key; the same is told once.
#[derive(Default)]
struct Notes(Vec<(String, Vec<String>)>);

impl Notes {
    fn add(&mut self, key: String, mut value: String) {
        let mut end = value.len().min(MAX_ANNOTATION);
        while !value.is_char_boundary(end) {
            end -= 1;
        }
        value.truncate(end);
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => self.0.push((key, vec![value])),
        }
    }
}
