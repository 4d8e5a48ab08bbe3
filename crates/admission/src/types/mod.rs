//! Whether the expressions of a policy fit the types that it is about.
//!
//! An expression is accepted if it could be right for some object. For the types that a policy names, more can be said: that
//! there is no such field, that a text is compared with a number. It is told in the status of the policy and changes nothing
//! else. Upstream a controller of kube-controller-manager does it.

mod decl;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc};

use concord_cel::{
    CompileError, Decl, DeclKind, Env, FieldDecl, ObjectDecl,
    admission::{Composition, Optional, environment},
};
use concord_meta::{GroupVersion, GroupVersionKind};
use concord_registry::{Form, Object, Resource, Resources};

use crate::read::{member, objects, text, texts};

/// So many types are looked at because of one rule.
const MOST_TYPES: usize = 10;

/// What is said about one expression of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionWarning {
    /// Where the expression is, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// What is wrong with it for each of the types.
    pub warning: String,
}

/// What does not fit in the expressions of a ValidatingAdmissionPolicy, given what is served.
pub fn expression_warnings(policy: &Object, resources: &dyn Resources) -> Vec<ExpressionWarning> {
    let Some(spec) = member(policy, "spec") else { return Vec::new() };
    let environments = environments(spec, &resources.all());
    let mut warnings = Vec::new();
    for (at, validation) in objects(spec, "validations").enumerate() {
        for field in ["expression", "messageExpression"] {
            let source = text(validation, field);
            if field == "messageExpression" && source.is_empty() {
                continue;
            }
            let found: Vec<String> = environments.iter().filter_map(|of| of.warning(source)).collect();
            if !found.is_empty() {
                let field_ref = format!("spec.validations[{at}].{field}");
                warnings.push(ExpressionWarning { field_ref, warning: found.join("\n") });
            }
        }
    }
    warnings
}

/// What expressions see if the objects are of one type.
struct Environment {
    kind: GroupVersionKind,
    env: Env,
}

impl Environment {
    fn warning(&self, source: &str) -> Option<String> {
        let GroupVersionKind { group, version, kind } = &self.kind;
        match self.env.compile(source) {
            Err(CompileError::Issues(issues)) => Some(format!("{group}/{version}, Kind={kind}: {issues}\n")),
            // That it cannot be evaluated has nothing to do with types.
            Ok(_) | Err(CompileError::Instantiation(_)) => None,
        }
    }
}

fn environments(spec: &Object, all: &[Arc<Resource>]) -> Vec<Environment> {
    let param_kind = member(spec, "paramKind");
    let params = param_kind.and_then(|kind| {
        let version: GroupVersion = text(kind, "apiVersion").parse().ok()?;
        let is_it = |found: &&Arc<Resource>| {
            found.version == version && found.names.kind == text(kind, "kind") && found.form().is_some()
        };
        declaration(all.iter().find(is_it)?, all)
    });
    let typed = types(spec, all).into_values();
    let environments = typed.filter_map(|resource| {
        let object = Arc::new(declaration(resource, all)?);
        let mut env = environment(Optional { params: param_kind.is_some(), authorizer: true })
            .variable("object", object.clone())
            .variable("oldObject", object);
        if let Some(params) = &params {
            env = env.variable("params", params.clone());
        }
        let mut variables = Composition::default();
        for variable in objects(spec, "variables") {
            // One that does not fit is of any type; nothing else is said about it.
            drop(variables.declare(&env, text(variable, "name"), text(variable, "expression")));
        }
        Some(Environment { kind: resource.kind(), env: variables.extend(env) })
    });
    environments.collect()
}

/// The resources that a policy names, in the order of their kinds.
fn types<'a>(
    spec: &Object,
    all: &'a [Arc<Resource>],
) -> std::collections::BTreeMap<(String, String, String), &'a Arc<Resource>> {
    let mut found = std::collections::BTreeMap::new();
    let rules = member(spec, "matchConstraints");
    for rule in rules.into_iter().flat_map(|constraints| objects(constraints, "resourceRules")) {
        let named = |field: &str| -> BTreeSet<String> { texts(rule, field).into_iter().collect() };
        let (groups, versions, mut plurals) = (named("apiGroups"), named("apiVersions"), named("resources"));
        let is_open = |names: &BTreeSet<String>| names.iter().any(|name| name.contains('*'));
        if is_open(&groups) || is_open(&versions) {
            continue;
        }
        plurals.retain(|plural| !plural.contains(['*', '/']));
        let mut left = MOST_TYPES;
        for resource in in_order(&groups, &versions, &plurals, all).take(left) {
            let GroupVersionKind { group, version, kind } = resource.kind();
            found.insert((group, version, kind), resource);
            left -= 1;
        }
        // Upstream is done with the policy then, not only with the rule.
        if left == 0 {
            break;
        }
    }
    found
}

/// The resources of these names. As for upstream's clients, no group is any group.
fn in_order<'a>(
    groups: &BTreeSet<String>,
    versions: &BTreeSet<String>,
    plurals: &BTreeSet<String>,
    all: &'a [Arc<Resource>],
) -> impl Iterator<Item = &'a Arc<Resource>> {
    groups.iter().flat_map(move |group| {
        versions.iter().flat_map(move |version| {
            plurals.iter().flat_map(move |plural| {
                all.iter().filter(move |resource| {
                    let of = &resource.version;
                    (group.is_empty() || of.group == *group)
                        && of.version == *version
                        && (resource.names.plural == *plural || resource.names.singular == *plural)
                })
            })
        })
    })
}

/// The type of the objects of a resource. Those of all custom kinds have the metadata that built-in ones have.
fn declaration(resource: &Resource, all: &[Arc<Resource>]) -> Option<Decl> {
    let name = &resource.names.kind;
    match resource.form()? {
        Form::BuiltIn(schema) => decl::of(schema.place(), name),
        Form::Custom(schema) => {
            let mut decl = concord_rules::declaration(&schema)?;
            let metadata = all.iter().find_map(|resource| {
                let schema = resource.schema()?;
                let place = schema.place().fields().find(|(field, _)| *field == "metadata")?.1;
                decl::of(&place, &format!("{name}.metadata"))
            });
            if let (DeclKind::Object(object), Some(metadata)) = (&mut decl.kind, metadata) {
                let field = FieldDecl { decl: Arc::new(metadata), property: "metadata".to_owned() };
                let mut with: ObjectDecl = object.as_ref().clone();
                with.fields.insert("metadata".to_owned(), field);
                *object = Arc::new(with);
            }
            Some(decl)
        }
    }
}
