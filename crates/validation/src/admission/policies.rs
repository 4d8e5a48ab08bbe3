//! Policies that are asked about requests, and their bindings.

use concord_cel::{
    Env, Type,
    admission::{Composition, Optional, apply_configuration, compile, environment, json_patch},
};
use concord_meta::{field::BadValue, names};

use super::{expression, given_one_of, match_conditions, not_static, resource_names, rule_with_operations};
use crate::{
    conditions,
    labels::{Values, selector},
    meta,
    node::{Node, Root},
    rules::{qualified_name, same},
};

const MAX_AUDIT_ANNOTATIONS: usize = 20;
const MAX_VALUE_EXPRESSION: usize = 5 * 1024;
const NOT_EMPTY: &str = "must be non-empty if specified";
const EITHER: &str = "validations or auditAnnotations must contain at least one item";
const MUTATING_OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
const RESERVED: &str = "true false null in as break const continue else for function if import let loop package \
    namespace return var void while";

pub(crate) fn validating_policy(root: Root<'_>) {
    validating_spec(root, false);
    not_static(root);
}

fn validating_spec(root: Root<'_>, same_conditions: bool) {
    let spec = root.get("spec");
    common(spec, same_conditions);
    let all = expressions(spec, true);
    let composition = variables(spec.get("variables"), &all);
    let (validations, annotations) = (spec.get("validations"), spec.get("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        validations.required(EITHER);
        return annotations.required(EITHER);
    }
    let (all, messages) = (composition.extend(all), composition.extend(expressions(spec, false)));
    validations.items().for_each(|node| validation(node, &all, &messages));
    audit_annotations(annotations, root.name(), &all);
}

/// What the expressions of a policy can use, but for its variables.
fn expressions(spec: Node<'_>, authorizer: bool) -> Env {
    environment(Optional { params: spec.has("paramKind"), authorizer })
}

fn common(spec: Node<'_>, same_conditions: bool) {
    given_one_of(spec.get("failurePolicy"), &["Fail", "Ignore"]);
    if spec.has("paramKind") {
        param_kind(spec.get("paramKind"));
    }
    let constraints = spec.get("matchConstraints");
    match constraints.is_set() {
        false => constraints.required(""),
        true => {
            match_resources(constraints);
            if constraints.get("resourceRules").is_empty() {
                constraints.child("resourceRules").required("");
            }
        }
    }
    if !same_conditions {
        match_conditions(spec.get("matchConditions"), &expressions(spec, true));
    }
}

fn param_kind(kind: Node<'_>) {
    let version = kind.get("apiVersion");
    let text = version.text();
    match text.matches('/').count() {
        _ if text.is_empty() => version.required(""),
        0 | 1 => {
            let (group, number) = text.split_once('/').unwrap_or(("", text));
            let problems = names::dns1123_subdomain(group);
            if !group.is_empty() && !problems.is_empty() {
                version.invalid(group, problems.join(","));
            }
            let problems = names::dns1035_label(number);
            if number.is_empty() {
                version.invalid(text, "version must be specified");
            } else if !problems.is_empty() {
                version.invalid(number, problems.join(","));
            }
        }
        _ => version.invalid(text, format!("unexpected GroupVersion string: {text}")),
    }
    let name = kind.get("kind");
    let problems = names::dns1035_label(&name.text().to_lowercase());
    if name.text().is_empty() {
        name.required("");
    } else if !problems.is_empty() {
        let problems = problems.join(",");
        name.invalid(name.text(), format!("may have mixed case, but should otherwise match: {problems}"));
    }
}

fn match_resources(resources: Node<'_>) {
    if !resources.is_set() {
        return;
    }
    given_one_of(resources.get("matchPolicy"), &["Equivalent", "Exact"]);
    for name in ["namespaceSelector", "objectSelector"] {
        let node = resources.get(name);
        match node.is_set() {
            true => selector(node, Values::Labels),
            false => node.required(""),
        }
    }
    for name in ["resourceRules", "excludeResourceRules"] {
        for rule in resources.get(name).items() {
            resource_names(rule);
            rule_with_operations(rule);
        }
    }
}

/// Answers with the types of the variables: expressions that follow see them.
fn variables(variables: Node<'_>, env: &Env) -> Composition {
    let mut composition = Composition::default();
    for variable in variables.items() {
        let name = variable.get("name");
        if name.text().trim().is_empty() {
            name.required("name is not specified");
        } else if !is_identifier(name.text()) {
            name.invalid(name.text(), "must be a valid CEL identifier");
        }
        let source = variable.get("expression");
        if source.text().trim().is_empty() {
            variable.child("expression").required("expression is not specified");
        } else if let Err(why) = composition.declare(env, name.text(), source.text()) {
            source.invalid(source.text(), why);
        }
    }
    composition
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !RESERVED.split_whitespace().any(|word| word == name)
}

fn validation(validation: Node<'_>, env: &Env, messages: &Env) {
    match validation.str("expression").trim() {
        "" => validation.child("expression").required("expression is not specified"),
        _ => expression(validation.get("expression"), env, &[Type::Bool]),
    }
    let (words, computed) = (validation.get("message"), validation.get("messageExpression"));
    let is_blank = |text: &str| !text.is_empty() && text.trim().is_empty();
    if is_blank(computed.text()) {
        computed.invalid(computed.text(), NOT_EMPTY);
    } else if !computed.text().is_empty() {
        expression(computed, messages, &[Type::String]);
    }
    if is_blank(words.text()) {
        words.invalid(words.text(), NOT_EMPTY);
    } else if words.text().trim().contains(['\n', '\r']) {
        words.invalid(words.text(), "must not contain line breaks");
    }
    validation.get("reason").optional_one_of(&["Forbidden", "Invalid", "RequestEntityTooLarge"]);
}

fn audit_annotations(annotations: Node<'_>, policy: &str, env: &Env) {
    if annotations.len() > MAX_AUDIT_ANNOTATIONS {
        let shown = crate::internal::shown_list("AuditAnnotation", annotations.list());
        annotations
            .invalid(shown, format!("must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations"));
    }
    let mut seen: Vec<&str> = Vec::new();
    for annotation in annotations.items() {
        let (key, value) = (annotation.get("key"), annotation.get("valueExpression"));
        match policy {
            "" => key.invalid(key.text(), "requires metadata.name be non-empty"),
            policy => key.check_text(&format!("{policy}/{}", key.text()), qualified_name),
        }
        match value.text().trim().len() {
            0 => value.required("valueExpression is not specified"),
            length if length > MAX_VALUE_EXPRESSION => {
                value.required(format!("must not exceed {MAX_VALUE_EXPRESSION} bytes in length"));
            }
            _ => {
                if let Err(why) = compile(env, value.text().trim(), &[Type::String, Type::Null]) {
                    value.invalid(value.text(), why);
                }
            }
        }
        if seen.contains(&key.text()) {
            key.duplicate(key.text());
        }
        seen.push(key.text());
    }
}

fn same_conditions<'v>(new: Root<'v>, old: Root<'v>) -> bool {
    let (new, old) = (new.get("spec"), old.get("spec"));
    ["paramKind", "matchConditions"].iter().all(|name| same(new.raw(name), old.raw(name)))
}

pub(crate) fn validating_policy_update<'v>(subresource: &str, new: Root<'v>, old: Root<'v>) {
    if subresource == "status" {
        return policy_status(new.get("status"));
    }
    meta::whole_any_finalizers(new);
    validating_spec(new, same_conditions(new, old));
}

fn policy_status(status: Node<'_>) {
    for warning in status.get2("typeChecking", "expressionWarnings").items() {
        if warning.str("warning").is_empty() {
            warning.child("warning").required("");
        }
        if warning.str("fieldRef").trim().is_empty() {
            warning.child("fieldRef").required("");
        }
    }
    conditions::conditions(status.get("conditions"));
}

fn binding(spec: Node<'_>) {
    spec.get("policyName").required_and(names::dns1123_subdomain);
    if spec.has("paramRef") {
        param_ref(spec.get("paramRef"));
    }
    match_resources(spec.get("matchResources"));
}

fn param_ref(reference: Node<'_>) {
    const EXCLUSIVE: &str = "name and selector are mutually exclusive";
    let (name, select, action) =
        (reference.get("name"), reference.get("selector"), reference.get("parameterNotFoundAction"));
    let named = !name.text().is_empty();
    if named {
        name.check(names::path_segment);
        if select.is_set() {
            name.forbidden(EXCLUSIVE);
        }
    }
    if select.is_set() {
        selector(select, Values::Labels);
        if named {
            select.forbidden(EXCLUSIVE);
        }
    }
    if !named && !select.is_set() {
        reference.required("one of name or selector must be specified");
    }
    action.required_one_of(&["Deny", "Allow"]);
}

pub(crate) fn validating_binding(root: Root<'_>) {
    validating_binding_spec(root.get("spec"));
    not_static(root);
}

fn validating_binding_spec(spec: Node<'_>) {
    binding(spec);
    let actions = spec.get("validationActions");
    let mut seen: Vec<&str> = Vec::new();
    for action in actions.items() {
        action.one_of(&["Audit", "Deny", "Warn"]);
        if seen.contains(&action.text()) {
            action.duplicate(BadValue::named(action.text()));
        }
        seen.push(action.text());
    }
    if seen.contains(&"Deny") && seen.contains(&"Warn") {
        actions.wrong("must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)");
    }
    if seen.is_empty() {
        actions.required("at least one validation action is required");
    }
}

pub(crate) fn validating_binding_update<'v>(_: &str, new: Root<'v>, _: Root<'v>) {
    meta::whole_any_finalizers(new);
    validating_binding_spec(new.get("spec"));
}

pub(crate) fn mutating_policy(root: Root<'_>) {
    mutating_spec(root.get("spec"), false);
    not_static(root);
}

/// Requests that delete are never changed.
fn no_deletes(resources: Node<'_>) {
    let at = resources.child("resourceRules").child("operations");
    for rule in resources.get("resourceRules").items() {
        for operation in rule.get("operations").items() {
            at.holding(operation.value()).one_of(&MUTATING_OPERATIONS);
        }
    }
}

fn mutating_spec(spec: Node<'_>, same_conditions: bool) {
    common(spec, true);
    no_deletes(spec.get("matchConstraints"));
    if !same_conditions {
        match_conditions(spec.get("matchConditions"), &expressions(spec, true));
    }
    let all = expressions(spec, true);
    let all = variables(spec.get("variables"), &all).extend(all).with_patch_types();
    let mutations = spec.get("mutations");
    if mutations.is_empty() {
        mutations.required("mutations must contain at least one item");
    }
    mutations.items().for_each(|node| mutation(node, &all));
    spec.get("reinvocationPolicy").required_one_of(&["IfNeeded", "Never"]);
}

fn mutation(mutation: Node<'_>, env: &Env) {
    let kind = mutation.get("patchType");
    let (own, other, of) = match kind.text() {
        "" => return kind.required(""),
        "JSONPatch" => ("jsonPatch", "applyConfiguration", json_patch()),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", apply_configuration()),
        _ => return kind.unsupported(&["ApplyConfiguration", "JSONPatch"]),
    };
    let node = mutation.get(own);
    if !node.is_set() {
        node.required(format!("must be specified when patchType is {}", kind.text()));
    } else if node.str("expression").trim().is_empty() {
        node.child("expression").required("");
    } else {
        let source = node.get("expression");
        let trimmed = source.text().trim();
        if let Err(why) = compile(env, trimmed, &[of]) {
            source.invalid(trimmed, why);
        }
    }
    if mutation.has(other) {
        let shown = format!("{{{other}}}");
        let detail = format!("must not be specified when patchType is {}", kind.text());
        mutation.child(other).invalid(&shown, detail);
    }
}

pub(crate) fn mutating_policy_update<'v>(_: &str, new: Root<'v>, old: Root<'v>) {
    meta::whole_any_finalizers(new);
    mutating_spec(new.get("spec"), same_conditions(new, old));
}

pub(crate) fn mutating_binding(root: Root<'_>) {
    mutating_binding_spec(root.get("spec"));
    not_static(root);
}

fn mutating_binding_spec(spec: Node<'_>) {
    binding(spec);
    no_deletes(spec.get("matchResources"));
}

pub(crate) fn mutating_binding_update<'v>(_: &str, new: Root<'v>, _: Root<'v>) {
    meta::whole_any_finalizers(new);
    mutating_binding_spec(new.get("spec"));
}
