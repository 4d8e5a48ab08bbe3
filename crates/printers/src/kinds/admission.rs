//! What is asked before a write.

use jiff::Timestamp;

use crate::column::{AGE, NAME};
use crate::fields::Fields;
use crate::format::{UNSET, age, selector_as_go};
use crate::printer::BuiltIn;
use crate::{Column, Printer, Row};

pub(super) fn printer(kind: &str) -> Option<&'static dyn Printer> {
    match kind {
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => Some(&WEBHOOKS),
        "ValidatingAdmissionPolicy" => Some(&VALIDATING_POLICY),
        "MutatingAdmissionPolicy" => Some(&MUTATING_POLICY),
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => Some(&POLICY_BINDING),
        _ => None,
    }
}

static WEBHOOKS: BuiltIn =
    BuiltIn { columns: &[NAME, Column::integer("Webhooks", "Number of webhooks."), AGE], print: webhooks };

fn webhooks(object: Fields<'_>, now: Timestamp) -> Row {
    row![object.name(), object.count("webhooks"), age(object, now)]
}

const PARAM_KIND: Column = Column::string("ParamKind", "Kind of the objects that are its parameters.");

static VALIDATING_POLICY: BuiltIn = BuiltIn {
    columns: &[NAME, Column::integer("Validations", "Number of rules."), PARAM_KIND, AGE],
    print: |object, now| policy(object, "validations", now),
};

static MUTATING_POLICY: BuiltIn = BuiltIn {
    columns: &[NAME, Column::integer("Mutations", "Number of rules."), PARAM_KIND, AGE],
    print: |object, now| policy(object, "mutations", now),
};

fn policy(object: Fields<'_>, rules: &str, now: Timestamp) -> Row {
    let spec = object.at("spec");
    let kind =
        spec.present("paramKind").map(|kind| format!("{}/{}", kind.text("apiVersion"), kind.text("kind")));
    row![object.name(), spec.count(rules), kind.unwrap_or_else(|| UNSET.to_owned()), age(object, now)]
}

static POLICY_BINDING: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("PolicyName", "Policy that is put to use."),
        Column::string("ParamRef", "Objects that are its parameters."),
        AGE,
    ],
    print: policy_binding,
};

fn policy_binding(object: Fields<'_>, now: Timestamp) -> Row {
    let spec = object.at("spec");
    let parameters = spec.present("paramRef").and_then(parameters);
    row![
        object.name(),
        spec.text("policyName"),
        parameters.unwrap_or_else(|| UNSET.to_owned()),
        age(object, now),
    ]
}

/// Without a namespace it may be any: the binding does not know whether its parameters have one.
fn parameters(reference: Fields<'_>) -> Option<String> {
    match reference.text("name") {
        "" => reference.present("selector").map(selector_as_go),
        name => Some(format!("{}/{name}", reference.text_or("namespace", "*"))),
    }
}
