//! The rules of a schema: `x-kubernetes-validations`.

use crate::{
    props::Props,
    schema::{Node, Schema},
};

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The expression that must hold.
    pub rule: Box<str>,
    /// What is said when it does not; may be empty.
    pub message: Box<str>,
    /// An expression that makes what is said; may be empty.
    pub message_expression: Box<str>,
    /// The reason of the error.
    pub reason: Option<Box<str>>,
    /// The field below that the error is about; may be empty.
    pub field_path: Box<str>,
    /// Whether the rule is checked also where there is no old value.
    pub optional_old_self: Option<bool>,
}

impl Rule {
    pub(crate) fn of(props: Props<'_>) -> Self {
        Self {
            rule: props.text("rule").into(),
            message: props.text("message").into(),
            message_expression: props.text("messageExpression").into(),
            reason: props.optional_text("reason").map(Into::into),
            field_path: props.text("fieldPath").into(),
            optional_old_self: props.optional_flag("optionalOldSelf"),
        }
    }

    pub(crate) fn footprint(&self) -> usize {
        size_of::<Self>()
            + self.rule.len()
            + self.message.len()
            + self.message_expression.len()
            + self.field_path.len()
            + self.reason.as_deref().map_or(0, str::len)
    }
}

/// One step from the root of a schema to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Into a property.
    Property(&'a str),
    /// Into the items of a list.
    Items,
    /// Into the values of a map.
    Values,
}

/// A node with rules, and the way to it.
#[derive(Clone, Debug)]
pub struct Ruled<'a> {
    /// The steps from the root.
    pub path: Vec<Step<'a>>,
    /// The node: its rules are about values of this type.
    pub node: Node<'a>,
}

impl Schema {
    /// Every node that has rules and the way to it, parents before children. Rules are never inside of junctors.
    #[must_use]
    pub fn rules(&self) -> Vec<Ruled<'_>> {
        let mut found = Vec::new();
        if self.has_rules() {
            collect(self.root(), &mut Vec::new(), &mut found);
        }
        found
    }
}

fn collect<'a>(node: Node<'a>, path: &mut Vec<Step<'a>>, found: &mut Vec<Ruled<'a>>) {
    if !node.rules().is_empty() {
        found.push(Ruled { path: path.clone(), node });
    }
    let properties = node.properties().map(|(name, property)| (Step::Property(name), property));
    let items = node.items().map(|items| (Step::Items, items));
    let values = node.additional().schema().map(|values| (Step::Values, values));
    for (step, child) in properties.chain(items).chain(values) {
        if child.has_rules_below() {
            path.push(step);
            collect(child, path, found);
            path.pop();
        }
    }
}
