//! What one mutation makes of an object, with upstream's texts.

use concord_cel::{Budget, Message, Val};
use concord_merge::{JsonPatch, JsonPatchError};
use concord_meta::Status;
use concord_registry::{ConfigurationError, Object};
use serde_json::Value;

use super::{MutatingPolicy, bound::Input, compiled::Mutation, kind_of_error};
use crate::{
    expressions::{Asking, Evaluator, Expression, OUT_OF_BUDGET, OutOfBudget, Variables},
    request::{Matched, Request},
};

/// Why a mutation did not happen.
#[derive(Debug)]
pub(super) enum Failed {
    /// What `failurePolicy` is about.
    Policy(String),
    /// What refuses the request, whatever the policy says.
    Request(Status),
}

impl Failed {
    /// What upstream's metrics call it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Policy(why) => kind_of_error(why),
            Self::Request(_) => "invalid_error",
        }
    }
}

impl From<String> for Failed {
    fn from(why: String) -> Self {
        Self::Policy(why)
    }
}

impl MutatingPolicy {
    /// The object after one of the mutations, in the version that the policy sees it in.
    pub(super) fn mutate(
        &self,
        request: &Request<'_>,
        matched: &Matched,
        input: Input<'_>,
        mutation: &Mutation,
    ) -> Result<Object, Failed> {
        let asking = Asking::new(request);
        let values = input.values(self.param_kind.is_some(), Some(&asking));
        let variables = Variables::new(&self.compiled().common.variables, &values);
        let mut evaluator = Evaluator::new(&values, Some(&variables), Budget::PER_OBJECT);
        let object = &input.versioned.object;
        match mutation {
            Mutation::Apply(expression) => {
                let configuration = configuration(&evaluate(expression, &mut evaluator)?)?;
                apply(request, matched, object, configuration)
            }
            Mutation::Json(expression) => {
                let operations = operations(&evaluate(expression, &mut evaluator)?)?;
                patch(request, matched, object, &operations)
            }
        }
    }
}

fn evaluate<'a>(expression: &'a Expression, evaluator: &mut Evaluator<'a>) -> Result<Val<'a>, String> {
    // What does not compile is told without saying that it is about compiling.
    expression.program.as_ref().map_err(Clone::clone)?;
    match evaluator.evaluate(expression) {
        Ok(value) => value,
        Err(OutOfBudget) => Err(OUT_OF_BUDGET.to_owned()),
    }
}

fn check_names(message: &Message<'_>) -> Result<(), String> {
    match message.misplaced() {
        misplaced if misplaced.is_empty() => Ok(()),
        misplaced => Err(format!("type mismatch: {}", misplaced.join("\n"))),
    }
}

fn configuration(value: &Val<'_>) -> Result<Object, String> {
    let Val::Message(message) = value else {
        return Err(format!(
            "unsupported return type from ApplyConfiguration expression: {}",
            value.type_name()
        ));
    };
    check_names(message)?;
    match value.to_json() {
        Ok(Value::Object(configuration)) => Ok(configuration),
        Ok(_) => Err("invalid return type".to_owned()),
        Err(why) => Err(why.to_string()),
    }
}

/// The operations of a JSON patch, as they would be sent.
fn operations(value: &Val<'_>) -> Result<Value, String> {
    let Val::List(list) = value else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
    };
    let operation = |value: Val<'_>| {
        let Val::Message(operation) = &value else {
            return Err(
                "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch".to_owned()
            );
        };
        let text = |field: &str| operation.get(field).and_then(Val::as_str).unwrap_or_default().to_owned();
        let mut members = Object::new();
        members.insert("op".to_owned(), text("op").into());
        members.insert("path".to_owned(), text("path").into());
        if !text("from").is_empty() {
            members.insert("from".to_owned(), text("from").into());
        }
        if let Some(value) = operation.get("value") {
            if let Val::Message(message) = value {
                check_names(message)?;
            }
            let unmarshalable = "JSONPath valueExpression evaluated to a type that could not marshal to JSON";
            let value = value.to_json().map_err(|why| format!("{unmarshalable}: {why}"))?;
            members.insert("value".to_owned(), value);
        }
        Ok(Value::Object(members))
    };
    let operations: Result<Vec<Value>, String> = list.to_vec().into_iter().map(operation).collect();
    operations.map(Value::Array)
}

fn apply(
    request: &Request<'_>,
    matched: &Matched,
    object: &Value,
    mut configuration: Object,
) -> Result<Object, Failed> {
    for field in ["apiVersion", "kind"] {
        let same = object.get(field).cloned().unwrap_or_default();
        configuration.insert(field.to_owned(), same);
    }
    let subresource = request.attributes.subresource;
    let merged =
        request.with_resource(matched, |resource| resource.configured(subresource, object, configuration));
    let merged = merged.map_err(|error| match error {
        ConfigurationError::Unknown => Failed::Request(unknown_kind(matched)),
        error => Failed::Policy(format!("error applying patch: {error}")),
    })?;
    let Value::Object(mut merged) = merged else {
        return Err("error applying patch: what came out is not an object".to_owned().into());
    };
    request.with_resource(matched, |resource| resource.reform(subresource, &mut merged))?;
    Ok(merged)
}

fn unknown_kind(matched: &Matched) -> Status {
    let kind = &matched.kind;
    let kind = format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind);
    Status::service_unavailable(format!(
        "Resource kind {kind} not found. There can be a delay between when CustomResourceDefinitions are created and when \
         they are available."
    ))
}

fn patch(
    request: &Request<'_>,
    matched: &Matched,
    object: &Value,
    operations: &Value,
) -> Result<Object, Failed> {
    let unchanged = || object.as_object().cloned().unwrap_or_default();
    let patched = JsonPatch::decode(operations).and_then(|patch| patch.apply(object.clone()));
    let patched = match patched {
        Ok(patched) => patched,
        // A patch whose test fails is not for this object.
        Err(JsonPatchError::TestFailed(_)) => return Ok(unchanged()),
        Err(why) => return Err(format!("JSON Patch: {why}").into()),
    };
    let internal = |why: String| Failed::Request(Status::internal_error(why));
    let Value::Object(mut patched) = patched else {
        return Err(internal("the patched object is not an object".to_owned()));
    };
    let subresource = request.attributes.subresource;
    let dropped = request.with_resource(matched, |resource| resource.reform(subresource, &mut patched));
    match dropped.map_err(internal)? {
        dropped if dropped.is_empty() => Ok(patched),
        dropped => Err(internal(concord_codec::strict_decoding_error(&dropped))),
    }
}
