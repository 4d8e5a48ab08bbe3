//! The planner.

use std::collections::BTreeMap;
use std::sync::Arc;

use concord_re2::Pattern;

use super::{Attribute, Base, CallNode, Node, Plan, Qualifier, QualifierKind, text};
use crate::ast::{Call, Element, Entry, Expr, Field, Kind, Literal, Name, Select, Struct};
use crate::check::{Checked, Function, Reference};
use crate::error::EvalError;
use crate::eval::{CallCost, Context, Work, describe};
use crate::library;
use crate::message;
use crate::types::Type;
use crate::value::{Key, MapValue, Val};

/// Why a checked expression cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct PlanError(pub(crate) String);

impl From<EvalError> for PlanError {
    fn from(error: EvalError) -> Self {
        Self(error.to_string())
    }
}

type Planned<T> = Result<T, PlanError>;

/// Plans a checked expression.
pub(crate) fn plan(expr: &Expr, checked: &Checked) -> Planned<Plan> {
    let mut planner =
        Planner { checked, globals: Vec::new(), bound: Vec::new(), scopes: Vec::new(), slots: 0 };
    let root = planner.node(expr)?;
    Ok(Plan { root, bound: planner.bound, globals: planner.globals, slots: planner.slots })
}

/// What a name of a comprehension stands for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Local {
    Slot(usize),
    Bound(usize, usize),
}

pub(super) struct Planner<'c> {
    pub(super) checked: &'c Checked,
    globals: Vec<Name>,
    pub(super) bound: Vec<Node>,
    pub(super) scopes: Vec<(Name, Local)>,
    pub(super) slots: usize,
}

impl Planner<'_> {
    pub(super) fn node(&mut self, expr: &Expr) -> Planned<Node> {
        match self.checked.reference(expr) {
            // The types of messages have no value of their own.
            Some(Reference::TypeName(Type::Opaque(name, _))) if message::is_message(name) => {
                return Err(PlanError(format!("reference to undefined type: {name}")));
            }
            Some(Reference::TypeName(named)) => return Ok(Node::Const(Val::Type(named.clone()))),
            Some(Reference::Variable(name)) => return Ok(self.variable(&Arc::clone(name))),
            _ => {}
        }
        match &expr.kind {
            Kind::Literal(literal) => Ok(Node::Const(constant(literal))),
            Kind::Select(select) => self.select(select),
            Kind::Call(call) => self.call(expr, call),
            Kind::List(elements) => self.list(elements),
            Kind::Map(entries) => self.map(entries),
            Kind::Comprehension(fold) => self.fold(fold),
            Kind::Ident(name) => Err(PlanError(format!("undeclared reference to '{name}'"))),
            Kind::Struct(message) => self.message(message),
        }
    }

    fn variable(&mut self, name: &Name) -> Node {
        let local = self.scopes.iter().rev().find(|(scoped, _)| scoped == name);
        let base = match local {
            Some((_, Local::Slot(slot))) => Base::Local(*slot),
            Some((_, Local::Bound(slot, init))) => Base::Bound(*slot, *init),
            None => Base::Global(self.global(name)),
        };
        Attribute { base, qualifiers: Vec::new() }.into()
    }

    fn global(&mut self, name: &Name) -> usize {
        if let Some(index) = self.globals.iter().position(|global| global == name) {
            return index;
        }
        self.globals.push(Arc::clone(name));
        self.globals.len() - 1
    }

    /// The attribute that a node is, or a new one that starts at the node.
    fn attribute(node: Node) -> Attribute {
        match node {
            Node::Attribute(attribute) => attribute,
            other => Attribute { base: Base::Node(Box::new(other)), qualifiers: Vec::new() },
        }
    }

    fn select(&mut self, select: &Select) -> Planned<Node> {
        let mut attribute = Self::attribute(self.node(&select.operand)?);
        let field = Arc::clone(&select.field);
        let kind = if select.test_only { QualifierKind::Has(field) } else { QualifierKind::Field(field) };
        attribute.qualifiers.push(Qualifier { kind, optional: false });
        Ok(attribute.into())
    }

    fn index(&mut self, operand: Node, index: Node, optional: bool) -> Node {
        let mut attribute = Self::attribute(operand);
        let kind = match index {
            Node::Const(value) => QualifierKind::Constant(value),
            other => QualifierKind::Node(other.boxed()),
        };
        attribute.qualifiers.push(Qualifier { kind, optional });
        attribute.into()
    }

    fn call(&mut self, expr: &Expr, call: &Call) -> Planned<Node> {
        let checked = self.checked;
        let Some(Reference::Overloads(function)) = checked.reference(expr) else {
            return Err(PlanError(format!("no such overload: {}", call.function)));
        };
        let target = call.target.as_ref().filter(|_| !function.namespaced);
        let args: Vec<Node> =
            target.into_iter().chain(&call.args).map(|arg| self.node(arg)).collect::<Planned<_>>()?;
        let args = match self.operator(&function.name, args) {
            Ok(node) => return Ok(node),
            Err(args) => args,
        };
        self.function(function, args)
    }

    /// The operators that are not functions. Gives the arguments back when it is none.
    fn operator(&mut self, name: &str, args: Vec<Node>) -> Result<Node, Vec<Node>> {
        let args = match <[Node; 2]>::try_from(args) {
            Ok(pair) => match name {
                "_&&_" => return Ok(Node::And(Box::new(pair))),
                "_||_" => return Ok(Node::Or(Box::new(pair))),
                "_==_" => return Ok(Node::Equal { sides: Box::new(pair), negated: false }),
                "_!=_" => return Ok(Node::Equal { sides: Box::new(pair), negated: true }),
                "or" => return Ok(Node::OrElse { sides: Box::new(pair), unwrap: false }),
                "orValue" => return Ok(Node::OrElse { sides: Box::new(pair), unwrap: true }),
                "_[_]" | "_[?_]" | "_?._" => {
                    let [operand, index] = pair;
                    return Ok(self.index(operand, index, name != "_[_]"));
                }
                _ => Vec::from(pair),
            },
            Err(args) => args,
        };
        let args = match <[Node; 3]>::try_from(args) {
            Ok(three) if name == "_?_:_" => {
                let base = Base::Conditional(Box::new(three));
                return Ok(Attribute { base, qualifiers: Vec::new() }.into());
            }
            Ok(three) => Vec::from(three),
            Err(args) => args,
        };
        match <[Node; 1]>::try_from(args) {
            Ok([argument]) if name == "@not_strictly_false" => Ok(Node::NotStrictlyFalse(argument.boxed())),
            Ok(one) => Err(Vec::from(one)),
            Err(args) => Err(args),
        }
    }

    fn function(&mut self, function: &Function, args: Vec<Node>) -> Planned<Node> {
        let name = &function.name;
        let run = library::find(name).ok_or_else(|| PlanError(format!("no such overload: {name}")))?;
        let overload = match &function.overloads[..] {
            [one] => *one,
            _ => "",
        };
        if overload == "in_list"
            && let Some(Val::List(list)) = args[1].as_const()
        {
            let set = list.iter().collect::<Result<Vec<_>, _>>()?;
            return Ok(in_set(args, set));
        }
        let regex = constant_regex(name, &args)?;
        let cost = CallCost::of(name, overload);
        let call = CallNode { function: Arc::clone(name), run, args, cost, regex };
        fold_conversion(call)
    }

    fn list(&mut self, elements: &[Element]) -> Planned<Node> {
        let optional: Vec<bool> = elements.iter().map(|element| element.optional).collect();
        let elements: Vec<Node> =
            elements.iter().map(|element| self.node(&element.value)).collect::<Planned<_>>()?;
        let constants: Option<Vec<Val<'static>>> =
            elements.iter().map(|node| node.as_const().cloned()).collect();
        match constants {
            Some(values) if !optional.contains(&true) => Ok(Node::Const(Val::list(values))),
            _ => Ok(Node::List { elements, optional }),
        }
    }

    fn message(&mut self, message: &Struct) -> Planned<Node> {
        let field = |field: &Field| Ok((Arc::clone(&field.name), self.node(&field.value)?));
        let fields = message.fields.iter().map(field).collect::<Planned<_>>()?;
        let optional = message.fields.iter().map(|field| field.optional).collect();
        Ok(Node::Message { name: Arc::clone(&message.name), fields, optional })
    }

    fn map(&mut self, entries: &[Entry]) -> Planned<Node> {
        let optional: Vec<bool> = entries.iter().map(|entry| entry.optional).collect();
        let mut nodes = Vec::new();
        for entry in entries {
            nodes.push((self.node(&entry.key)?, self.node(&entry.value)?));
        }
        let constant =
            |(key, value): &(Node, Node)| Some((Key::of(key.as_const()?)?, value.as_const()?.clone()));
        let constants: Option<BTreeMap<_, _>> = nodes.iter().map(constant).collect();
        match constants {
            Some(map) if !optional.contains(&true) => {
                Ok(Node::Const(Val::Map(MapValue::Owned(Arc::new(map)))))
            }
            _ => Ok(Node::Map { entries: nodes, optional }),
        }
    }
}

/// A test against a constant list needs no call, and none at all when the list is empty.
fn in_set(args: Vec<Node>, set: Vec<Val<'static>>) -> Node {
    let Some(value) = args.into_iter().next() else { return Node::Const(Val::Bool(false)) };
    if set.is_empty() { Node::Const(Val::Bool(false)) } else { Node::InSet { value: value.boxed(), set } }
}

/// The functions whose second argument is a pattern.
fn constant_regex(name: &str, args: &[Node]) -> Planned<Option<Pattern>> {
    if !matches!(name, "matches" | "find" | "findAll") {
        return Ok(None);
    }
    match args.get(1).and_then(Node::as_const).and_then(Val::as_str) {
        Some(pattern) => {
            concord_re2::check(pattern).map_err(|error| PlanError(error.to_string()))?;
            Ok(Some(Pattern::new(pattern)))
        }
        None => Ok(None),
    }
}

/// Conversions of constants are done once.
fn fold_conversion(call: CallNode) -> Planned<Node> {
    let conversion = matches!(
        &*call.function,
        "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp" | "type" | "uint"
    );
    if !conversion {
        return Ok(Node::Call(Box::new(call)));
    }
    let [argument] = &call.args[..] else { return Ok(Node::Call(Box::new(call))) };
    let Some(value) = argument.as_const() else { return Ok(Node::Call(Box::new(call))) };
    let mut work = Work::new(u64::MAX);
    let mut context = Context { work: &mut work, regex: None, authorizer: None };
    let args = std::slice::from_ref(value);
    Ok(Node::Const((call.run)(args, &mut context).map_err(|error| describe(error, &call, args))?))
}

fn constant(literal: &Literal) -> Val<'static> {
    match literal {
        Literal::Null => Val::Null,
        Literal::Bool(value) => Val::Bool(*value),
        Literal::Int(value) => Val::Int(*value),
        Literal::Uint(value) => Val::Uint(*value),
        Literal::Double(value) => Val::Double(*value),
        Literal::String(value) => text(value),
        Literal::Bytes(value) => Val::Bytes(Arc::clone(value)),
    }
}
