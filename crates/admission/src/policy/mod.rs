//! Policies: expressions about requests that decide without asking anybody, or change objects.

mod bound;
mod compiled;
mod evaluate;
mod mutate;
mod mutating;
mod params;
mod plugin;

use std::{collections::BTreeMap, sync::OnceLock};

use concord_meta::GroupVersionKind;
use concord_registry::Object;

use self::compiled::{Compile, Mutations, Validations};
pub(crate) use mutating::{MutatingPolicies, Rounds};
pub use plugin::ValidatingPolicies;

use crate::{
    criteria::Criteria,
    read::{member, text, texts},
};

/// A ValidatingAdmissionPolicy.
pub(crate) type ValidatingPolicy = Policy<Validations>;

/// A MutatingAdmissionPolicy.
pub(crate) type MutatingPolicy = Policy<Mutations>;

/// A policy with its bindings. One without bindings decides nothing.
#[derive(Debug)]
pub(crate) struct Policy<C> {
    name: String,
    fail_open: bool,
    /// `None` if the policy does not say what it is about.
    criteria: Option<Criteria>,
    param_kind: Option<GroupVersionKind>,
    spec: Object,
    /// Made when the policy is first needed.
    compiled: OnceLock<C>,
    bindings: Vec<Binding>,
}

/// Where a policy applies, with which parameters, and what follows from it.
#[derive(Debug)]
struct Binding {
    name: String,
    /// `None` for everything that the policy is about.
    criteria: Option<Criteria>,
    param_ref: Option<Object>,
    actions: Vec<String>,
}

/// All policies that have bindings, by name.
pub(crate) fn read<C: Compile>(
    policies: &BTreeMap<String, Object>,
    bindings: &BTreeMap<String, Object>,
) -> Vec<Policy<C>> {
    let mut bound: BTreeMap<&str, Vec<Binding>> = BTreeMap::new();
    for (name, binding) in bindings {
        let Some(spec) = member(binding, "spec") else { continue };
        bound.entry(text(spec, "policyName")).or_default().push(Binding::read(name, spec));
    }
    let policies = bound.into_iter().filter_map(|(name, bindings)| {
        let spec = member(policies.get(name)?, "spec")?;
        Some(Policy::read(name, spec, bindings))
    });
    policies.collect()
}

impl<C: Compile> Policy<C> {
    fn read(name: &str, spec: &Object, bindings: Vec<Binding>) -> Self {
        let param_kind = member(spec, "paramKind");
        let param_kind = param_kind.and_then(|kind| {
            GroupVersionKind::from_api_version(text(kind, "apiVersion"), text(kind, "kind")).ok()
        });
        Self {
            name: name.to_owned(),
            fail_open: text(spec, "failurePolicy") == "Ignore",
            criteria: member(spec, "matchConstraints").map(Criteria::of_policy),
            param_kind,
            spec: spec.clone(),
            compiled: OnceLock::new(),
            bindings,
        }
    }

    fn compiled(&self) -> &C {
        self.compiled.get_or_init(|| C::compile(&self.spec))
    }
}

/// What upstream's metrics call what an evaluation failed at.
fn kind_of_error(why: &str) -> &'static str {
    match why {
        why if why.starts_with("compilation") => "compile_error",
        why if why.starts_with("validation failed due to running out of cost budget") => "out_of_budget",
        _ => "invalid_error",
    }
}

impl Binding {
    fn read(name: &str, spec: &Object) -> Self {
        Self {
            name: name.to_owned(),
            criteria: member(spec, "matchResources").map(Criteria::of_policy),
            param_ref: member(spec, "paramRef").cloned(),
            actions: texts(spec, "validationActions"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn objects(named: &[(&str, Value)]) -> BTreeMap<String, Object> {
        let object = |value: &Value| json!({"spec": value}).as_object().expect("an object").clone();
        named.iter().map(|(name, value)| ((*name).to_owned(), object(value))).collect()
    }

    #[test]
    fn policies_go_with_their_bindings() {
        let policies = objects(&[
            (
                "bound",
                json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "failurePolicy": "Ignore"}),
            ),
            ("free", json!({})),
        ]);
        let bindings = objects(&[
            ("a", json!({"policyName": "bound", "validationActions": ["Warn"]})),
            ("b", json!({"policyName": "bound", "paramRef": {"name": "x"}, "matchResources": {}})),
            ("c", json!({"policyName": "gone"})),
        ]);
        let read: Vec<ValidatingPolicy> = read(&policies, &bindings);
        let [policy] = read.as_slice() else { panic!("{read:?}") };
        assert_eq!(policy.name, "bound");
        assert!(policy.fail_open && policy.criteria.is_none());
        assert_eq!(policy.param_kind, Some(GroupVersionKind::new("", "v1", "ConfigMap")));
        let names: Vec<&str> = policy.bindings.iter().map(|binding| binding.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(policy.bindings[0].actions, ["Warn"]);
        assert!(policy.bindings[0].criteria.is_none() && policy.bindings[1].criteria.is_some());
    }

    #[test]
    fn expressions_that_do_not_compile_say_so() {
        let spec = json!({
            "variables": [{"name": "a", "expression": "1"}, {"name": "b", "expression": "variables.a + 1"},
                {"name": "c", "expression": "variables.d"}],
            "validations": [{"expression": "variables.b == 2"}, {"expression": "variables.b", "messageExpression": "1"}],
            "auditAnnotations": [{"key": "k", "valueExpression": "null"}],
        });
        let compiled = Validations::compile(spec.as_object().expect("an object"));
        let errors: Vec<Option<String>> = compiled
            .common
            .variables
            .iter()
            .map(|(_, variable)| variable.program.as_ref().err().cloned())
            .collect();
        let undefined =
            "compilation failed: ERROR: <input>:1:10: undefined field 'd'\n | variables.d\n | .........^";
        assert_eq!(errors, [None, None, Some(undefined.to_owned())]);
        let [good, bad] = compiled.validations.as_slice() else { panic!("two") };
        assert!(good.expression.program.is_ok());
        let error = |expression: &crate::expressions::Expression| expression.program.as_ref().err().cloned();
        assert_eq!(error(&bad.expression).as_deref(), Some("must evaluate to bool but got int"));
        let message = bad.message_expression.as_ref().and_then(error);
        assert_eq!(message.as_deref(), Some("must evaluate to string but got int"));
        assert!(compiled.annotations[0].value.program.is_ok());
    }
}
