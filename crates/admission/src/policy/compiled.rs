//! The expressions of a policy.

use concord_cel::{
    Env, Type,
    admission::{Composition, Optional, apply_configuration, environment, json_patch},
};
use concord_registry::Object;

use crate::{
    expressions::Expression,
    read::{member, objects, text},
};

/// What a policy is compiled to. What does not compile is an error when it is evaluated.
pub(crate) trait Compile {
    fn compile(spec: &Object) -> Self;
}

/// What the expressions of every policy can use, and what they all begin with.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) variables: Vec<(String, Expression)>,
    pub(super) conditions: Vec<Expression>,
}

impl Common {
    /// Also the environment of the other expressions, and what the variables add to others.
    fn compile(spec: &Object) -> (Self, Env, Composition) {
        let all = environment(Optional { params: member(spec, "paramKind").is_some(), authorizer: true });
        let mut composition = Composition::default();
        let variables = objects(spec, "variables").map(|variable| {
            let (name, source) = (text(variable, "name"), text(variable, "expression"));
            let program = composition.declare(&all, name, source);
            (name.to_owned(), Expression { source: source.to_owned(), program })
        });
        let variables = variables.collect();
        let all = composition.extend(all);
        let conditions = objects(spec, "matchConditions")
            .map(|condition| Expression::new(&all, text(condition, "expression"), &[Type::Bool]));
        (Self { variables, conditions: conditions.collect() }, all, composition)
    }
}

/// What a ValidatingAdmissionPolicy is compiled to.
#[derive(Debug)]
pub(crate) struct Validations {
    pub(super) common: Common,
    pub(super) validations: Vec<Validation>,
    pub(super) annotations: Vec<Annotation>,
}

/// What a MutatingAdmissionPolicy is compiled to.
#[derive(Debug)]
pub(crate) struct Mutations {
    pub(super) common: Common,
    pub(super) mutations: Vec<Mutation>,
    /// `reinvocationPolicy: IfNeeded`
    pub(super) reinvocable: bool,
}

/// One of `mutations`.
#[derive(Debug)]
pub(super) enum Mutation {
    Apply(Expression),
    Json(Expression),
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

impl Compile for Validations {
    fn compile(spec: &Object) -> Self {
        let (common, all, composition) = Common::compile(spec);
        let params = member(spec, "paramKind").is_some();
        // Messages are for people who may not know what others may do.
        let messages = composition.extend(environment(Optional { params, authorizer: false }));
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
        Self { validations: validations.collect(), annotations: annotations.collect(), common }
    }
}

impl Compile for Mutations {
    fn compile(spec: &Object) -> Self {
        let (common, all, _) = Common::compile(spec);
        let all = all.with_patch_types();
        let mutations = objects(spec, "mutations").filter_map(|mutation| {
            let expression =
                |member: &Object, of: Type| Expression::new(&all, text(member, "expression"), &[of]);
            match text(mutation, "patchType") {
                "ApplyConfiguration" => member(mutation, "applyConfiguration")
                    .map(|configuration| Mutation::Apply(expression(configuration, apply_configuration()))),
                "JSONPatch" => {
                    member(mutation, "jsonPatch").map(|patch| Mutation::Json(expression(patch, json_patch())))
                }
                _ => None,
            }
        });
        let reinvocable = text(spec, "reinvocationPolicy") == "IfNeeded";
        Self { mutations: mutations.collect(), reinvocable, common }
    }
}
