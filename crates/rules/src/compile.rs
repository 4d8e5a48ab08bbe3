//! From the text of a rule to what can be evaluated.

use std::sync::Arc;

use concord_cel::{CompileError, Decl, Env, Program, Type, Version};
use concord_structural::{Node, Rule};

use crate::{decl, field_path};

pub(crate) const SELF: &str = "self";
pub(crate) const OLD_SELF: &str = "oldSelf";

/// The rules of a node, in their order, and the type of their `self`.
pub(crate) struct Compiled {
    pub(crate) decl: Arc<Decl>,
    pub(crate) rules: Box<[CompiledRule]>,
}

/// One rule; `None` if it is empty, or why it cannot be evaluated.
pub(crate) type CompiledRule = Option<Result<Expressions, String>>;

/// The expressions of one rule.
pub(crate) struct Expressions {
    pub(crate) rule: Program,
    pub(crate) uses_old_self: bool,
    /// The expression of the message, or why it cannot be evaluated.
    pub(crate) message: Option<Result<Message, String>>,
    /// The field below that errors are about; empty if there is none.
    pub(crate) field_path: Box<str>,
}

pub(crate) struct Message {
    pub(crate) program: Program,
    /// Reads the old value: see [`crate::evaluate`] for where upstream does not wrap it as it declares it.
    pub(crate) plain_old_self: Option<Program>,
}

/// The versions that the expressions of a rule may use the functions of.
#[derive(Clone, Copy)]
pub(crate) struct Versions {
    pub(crate) rule: Version,
    pub(crate) message: Version,
}

impl Versions {
    /// What is stored is evaluated with everything there is.
    pub(crate) const STORED: Self = Self { rule: Version::ALL, message: Version::ALL };
}

impl Compiled {
    /// Compiles the rules of a node.
    pub(crate) fn new(node: Node<'_>, decl: Arc<Decl>, versions: impl Fn(&Rule) -> Versions) -> Self {
        let rules = node.rules().iter().map(|rule| compile(node, rule, &decl, versions(rule))).collect();
        Self { decl, rules }
    }

    /// Whether any rule compares with the old value.
    pub(crate) fn uses_old_self(&self) -> bool {
        self.rules.iter().flatten().flatten().any(|rule| rule.uses_old_self)
    }
}

fn compile(node: Node<'_>, rule: &Rule, decl: &Arc<Decl>, versions: Versions) -> CompiledRule {
    (!rule.rule.trim().is_empty()).then(|| expressions(node, rule, decl, versions))
}

fn expressions(
    node: Node<'_>,
    rule: &Rule,
    decl: &Arc<Decl>,
    versions: Versions,
) -> Result<Expressions, String> {
    let program =
        environment(rule, decl, versions.rule).compile(&rule.rule).map_err(|error| match error {
            CompileError::Issues(issues) => format!("compilation failed: {issues}"),
            CompileError::Instantiation(error) => format!("program instantiation failed: {error}"),
        })?;
    if program.output_type() != &Type::Bool {
        return Err("cel expression must evaluate to a bool".to_owned());
    }
    let message =
        (!rule.message_expression.is_empty()).then(|| compile_message(rule, decl, versions.message));
    // As upstream has it: errors of a rule whose message is wrong are about the whole value.
    let field_path = match &message {
        Some(Err(_)) => None,
        _ => field_path::normalize(&rule.field_path, node),
    };
    Ok(Expressions {
        uses_old_self: program.uses(OLD_SELF),
        rule: program,
        message,
        field_path: field_path.unwrap_or_default().into(),
    })
}

fn compile_message(rule: &Rule, decl: &Arc<Decl>, version: Version) -> Result<Message, String> {
    let compiled = environment(rule, decl, version).compile(&rule.message_expression);
    let program = compiled.map_err(|error| match error {
        CompileError::Issues(issues) => format!("messageExpression compilation failed: {issues}"),
        CompileError::Instantiation(error) => format!("messageExpression instantiation failed: {error}"),
    })?;
    if program.output_type() != &Type::String {
        return Err("messageExpression must evaluate to a string".to_owned());
    }
    let reads_optional = is_optional(rule) && program.uses(OLD_SELF);
    let plain = || Env::new(version).variable(OLD_SELF, Arc::clone(decl)).compile(OLD_SELF).ok();
    Ok(Message { program, plain_old_self: reads_optional.then(plain).flatten() })
}

/// Whether a rule is evaluated also where there is no old value.
pub(crate) fn is_optional(rule: &Rule) -> bool {
    rule.optional_old_self == Some(true)
}

fn environment(rule: &Rule, decl: &Arc<Decl>, version: Version) -> Env {
    let old = if is_optional(rule) { Arc::new(decl::optional(decl)) } else { Arc::clone(decl) };
    Env::new(version).variable(SELF, Arc::clone(decl)).variable(OLD_SELF, old)
}
