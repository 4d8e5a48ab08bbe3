//! The expressions of a policy.

use concord_cel::{
    Type,
    admission::{Composition, Optional, environment},
};
use concord_registry::Object;

use crate::{
    expressions::Expression,
    read::{member, objects, text},
};

/// What a policy is compiled to. What does not compile is an error when it is evaluated.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) variables: Vec<(String, Expression)>,
    pub(super) conditions: Vec<Expression>,
    pub(super) validations: Vec<Validation>,
    pub(super) annotations: Vec<Annotation>,
}

/// One of `validations`.
#[derive(Debug)]
pub(super) struct Validation {
    pub(super) expression: Expression,
    pub(super) message: String,
    pub(super) message_expression: Option<Expression>,
    pub(super) reason: String,
}

/// One of `auditAnnotations`.
#[derive(Debug)]
pub(super) struct Annotation {
    pub(super) key: String,
    pub(super) value: Expression,
}

impl Compiled {
    pub(super) fn new(spec: &Object) -> Self {
        let params = member(spec, "paramKind").is_some();
        let all = environment(Optional { params, authorizer: true });
        let mut composition = Composition::default();
        let variables = objects(spec, "variables").map(|variable| {
            let (name, source) = (text(variable, "name"), text(variable, "expression"));
            let program = composition.declare(&all, name, source);
            (name.to_owned(), Expression { source: source.to_owned(), program })
        });
        let variables = variables.collect();
        let all = composition.extend(all);
        // Messages are for people who may not know what others may do.
        let messages = composition.extend(environment(Optional { params, authorizer: false }));
        let conditions = objects(spec, "matchConditions")
            .map(|condition| Expression::new(&all, text(condition, "expression"), &[Type::Bool]));
        let validations = objects(spec, "validations").map(|validation| {
            let message = text(validation, "messageExpression");
            Validation {
                expression: Expression::new(&all, text(validation, "expression"), &[Type::Bool]),
                message: text(validation, "message").trim().to_owned(),
                message_expression: (!message.is_empty())
                    .then(|| Expression::new(&messages, message, &[Type::String])),
                reason: text(validation, "reason").to_owned(),
            }
        });
        let annotations = objects(spec, "auditAnnotations").map(|annotation| Annotation {
            key: text(annotation, "key").to_owned(),
            value: Expression::new(&all, text(annotation, "valueExpression"), &[Type::String, Type::Null]),
        });
        Self {
            conditions: conditions.collect(),
            validations: validations.collect(),
            annotations: annotations.collect(),
            variables,
        }
    }
}
