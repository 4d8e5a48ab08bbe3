//! Evaluation, with the cost that upstream measures.

mod attribute;
mod cost;
mod fold;
mod work;

use std::collections::BTreeMap;
use std::sync::Arc;

use concord_re2::Pattern;

use crate::ast::Name;
use crate::authorizer::Authorizer;
use crate::error::EvalError;
use crate::message::Message;
use crate::plan::{CallNode, Node, Plan};
use crate::value::{Key, MapValue, Val, equal};

pub(crate) use cost::{CHECK as CHECK_COST, CallCost};
pub(crate) use work::Work;

/// What a function has besides its arguments.
pub(crate) struct Context<'c> {
    pub(crate) work: &'c mut Work,
    /// The pattern, when it is constant.
    pub(crate) regex: Option<&'c Pattern>,
    pub(crate) authorizer: Option<&'c dyn Authorizer>,
}

type Evaluated<'a> = Result<Val<'a>, EvalError>;

const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;
const MESSAGE_COST: u64 = 40;

/// One evaluation.
pub(crate) struct Evaluation<'a, 'w> {
    pub(crate) plan: &'a Plan,
    /// The variables of the environment, by their index in the plan.
    pub(crate) globals: Vec<Option<Evaluated<'a>>>,
    /// The variables of comprehensions.
    pub(crate) locals: Vec<Option<Evaluated<'a>>>,
    pub(crate) work: &'w mut Work,
    pub(crate) authorizer: Option<&'a dyn Authorizer>,
}

impl<'a> Evaluation<'a, '_> {
    pub(crate) fn eval(&mut self, node: &'a Node) -> Evaluated<'a> {
        match node {
            Node::Const(value) => Ok(value.clone()),
            Node::Attribute(attribute) => self.attribute(attribute, true),
            Node::And(sides) => self.logical(sides, false),
            Node::Or(sides) => self.logical(sides, true),
            Node::Equal { sides, negated } => self.equal(sides, *negated),
            Node::InSet { value, set } => self.in_set(value, set),
            Node::OrElse { sides, unwrap } => self.or_else(sides, *unwrap),
            Node::NotStrictlyFalse(argument) => self.not_strictly_false(argument),
            Node::Call(call) => self.call(call),
            Node::List { elements, optional } => self.list(elements, optional),
            Node::Map { entries, optional } => self.map(entries, optional),
            Node::Message { name, fields, optional } => self.message(name, fields, optional),
            Node::Fold(fold) => self.fold(fold),
            Node::Bind { slot, body } => {
                // A loop around may have left the value of its last turn.
                self.locals[*slot] = None;
                self.eval(body)
            }
            Node::Append { slot, element, constant } => self.append(*slot, element, *constant),
            Node::Insert { slot, args } => self.insert(*slot, args),
        }
    }

    /// `&&` and `||`: the deciding value wins over an error of the other side.
    fn logical(&mut self, sides: &'a [Node; 2], deciding: bool) -> Evaluated<'a> {
        let mut failed = None;
        for side in sides {
            match self.eval(side) {
                Ok(Val::Bool(value)) if value == deciding => return Ok(Val::Bool(deciding)),
                Ok(Val::Bool(_)) => {}
                Ok(_) => failed = failed.or_else(|| Some(EvalError::new("no such overload"))),
                Err(error) if !error.is_absorbable() => return Err(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(Val::Bool(!deciding)), Err)
    }

    fn equal(&mut self, sides: &'a [Node; 2], negated: bool) -> Evaluated<'a> {
        let left = self.eval(&sides[0]);
        let right = self.eval(&sides[1]);
        let (left, right) = self.both(left, right)?;
        self.work.charge(cost::equality(&left, &right))?;
        Ok(Val::Bool(equal(&left, &right, self.work)? != negated))
    }

    /// Both values, or the error of the first that failed. A failed operation costs one.
    fn both(&mut self, left: Evaluated<'a>, right: Evaluated<'a>) -> Result<(Val<'a>, Val<'a>), EvalError> {
        match (left, right) {
            (Ok(left), Ok(right)) => Ok((left, right)),
            (Err(error), _) | (_, Err(error)) => {
                self.work.charge(1)?;
                Err(error)
            }
        }
    }

    fn in_set(&mut self, value: &'a Node, set: &'a [Val<'static>]) -> Evaluated<'a> {
        let value = self.eval(value)?;
        for element in set {
            if equal(&value, element, self.work)? {
                return Ok(Val::Bool(true));
            }
        }
        Ok(Val::Bool(false))
    }

    /// What is not optional counts as a value, as upstream has it.
    fn or_else(&mut self, sides: &'a [Node; 2], unwrap: bool) -> Evaluated<'a> {
        match self.eval(&sides[0])? {
            Val::Optional(None) => self.eval(&sides[1]),
            Val::Optional(Some(inner)) if unwrap => Ok((*inner).clone()),
            other => Ok(other),
        }
    }

    fn not_strictly_false(&mut self, argument: &'a Node) -> Evaluated<'a> {
        let value = match self.eval(argument) {
            Err(error) if !error.is_absorbable() => return Err(error),
            Ok(Val::Bool(value)) => value,
            _ => true,
        };
        self.work.charge(1)?;
        Ok(Val::Bool(value))
    }

    fn call(&mut self, call: &'a CallNode) -> Evaluated<'a> {
        let (args, failed) = self.arguments(call)?;
        if let Some(error) = failed {
            // A call that is never made costs what it would, unless not even all of its arguments were evaluated.
            if args.len() == call.args.len() {
                self.work.charge(call.cost.before(&args).saturating_add(call.cost.after(None)))?;
            }
            return Err(error);
        }
        // Before the call, so that a call that is too expensive is never made.
        self.work.charge(call.cost.before(&args))?;
        let mut context =
            Context { work: self.work, regex: call.regex.as_ref(), authorizer: self.authorizer };
        let result = (call.run)(&args, &mut context);
        self.work.charge(call.cost.after(result.as_ref().ok()))?;
        result.map_err(|error| describe(error, call, &args))
    }

    /// The arguments of a call and the first error among them; null stands for one that failed. Calls of one or two
    /// arguments evaluate all of them; others, and those with a constant pattern, stop at the first error.
    fn arguments(&mut self, call: &'a CallNode) -> Result<(Vec<Val<'a>>, Option<EvalError>), EvalError> {
        let stops = call.args.len() > 2 || call.regex.is_some();
        let mut args = Vec::with_capacity(call.args.len());
        let mut failed = None;
        for arg in &call.args {
            match self.eval(arg) {
                Ok(value) => args.push(value),
                Err(error) if !error.is_absorbable() => return Err(error),
                Err(error) => {
                    args.push(Val::Null);
                    failed = failed.or(Some(error));
                    if stops {
                        break;
                    }
                }
            }
        }
        Ok((args, failed))
    }

    fn list(&mut self, elements: &'a [Node], optional: &[bool]) -> Evaluated<'a> {
        let values = self.elements(elements, optional);
        self.work.charge(LIST_COST)?;
        values.map(Val::list)
    }

    fn elements(&mut self, elements: &'a [Node], optional: &[bool]) -> Result<Vec<Val<'a>>, EvalError> {
        let mut values = Vec::with_capacity(elements.len());
        for (element, optional) in elements.iter().zip(optional) {
            let value = self.eval(element)?;
            values.extend(present(value, *optional)?);
        }
        Ok(values)
    }

    fn map(&mut self, entries: &'a [(Node, Node)], optional: &[bool]) -> Evaluated<'a> {
        let map = self.entries(entries, optional);
        self.work.charge(MAP_COST)?;
        map.map(|map| Val::Map(MapValue::Owned(Arc::new(map))))
    }

    fn message(&mut self, name: &Name, fields: &'a [(Name, Node)], optional: &[bool]) -> Evaluated<'a> {
        let fields = self.fields(fields, optional);
        self.work.charge(MESSAGE_COST)?;
        Message::new(name, fields?).map(|message| Val::Message(Arc::new(message)))
    }

    fn fields(
        &mut self,
        fields: &'a [(Name, Node)],
        optional: &[bool],
    ) -> Result<BTreeMap<Name, Val<'a>>, EvalError> {
        let mut values = BTreeMap::new();
        for ((name, value), optional) in fields.iter().zip(optional) {
            match present(self.eval(value)?, *optional)? {
                Some(value) => values.insert(Arc::clone(name), value),
                None => values.remove(name),
            };
        }
        Ok(values)
    }

    fn entries(
        &mut self,
        entries: &'a [(Node, Node)],
        optional: &[bool],
    ) -> Result<BTreeMap<Key<'a>, Val<'a>>, EvalError> {
        let mut map = BTreeMap::new();
        for ((key, value), optional) in entries.iter().zip(optional) {
            let key = self.eval(key)?;
            let value = self.eval(value)?;
            let Some(value) = present(value, *optional)? else { continue };
            let key = Key::of(&key).ok_or_else(|| unsupported_key(&key))?;
            map.insert(key, value);
        }
        Ok(map)
    }
}

fn unsupported_key(key: &Val<'_>) -> EvalError {
    EvalError::new(format!("unsupported key type: {}", key.type_name()))
}

/// The value of an element, unless it is optional and has none.
fn present<'a>(value: Val<'a>, optional: bool) -> Result<Option<Val<'a>>, EvalError> {
    match value {
        value if !optional => Ok(Some(value)),
        Val::Optional(inner) => Ok(inner.map(|inner| (*inner).clone())),
        other => {
            let name = other.type_name();
            Err(EvalError::new(format!(
                "cannot initialize optional list element from non-optional value {name}"
            )))
        }
    }
}

/// Says of which function there is no overload. An operator is named only when its first argument has no such operator
/// at all; of other functions all arguments are told.
pub(crate) fn describe(error: EvalError, call: &CallNode, args: &[Val<'_>]) -> EvalError {
    if error != crate::library::no_overload() {
        return error;
    }
    let name = &call.function;
    let first = args.first().map(Val::type_name).unwrap_or_default();
    // These have methods, so upstream asks them before it gives up, and they do not say what they were asked.
    let has_methods = matches!(&*first, "string" | "google.protobuf.Duration" | "google.protobuf.Timestamp");
    let operable = match &**name {
        "_+_" => "int uint double bytes list",
        "_-_" | "_*_" | "_/_" => "int uint double",
        "_%_" => "int uint",
        "_<_" | "_<=_" | "_>_" | "_>=_" => "bool int uint double bytes",
        "-_" => "bool int double",
        "size" => "bytes list map",
        "sort" | "@sortByAssociatedKeys" => "list",
        "contains" | "startsWith" | "endsWith" | "matches" | "@in" | "!_" | "containsIP" | "containsCIDR" => {
            return error;
        }
        _ => {
            let types: Vec<String> = args.iter().map(Val::type_name).collect();
            return EvalError::new(format!("no such overload: {name}({})", types.join(", ")));
        }
    };
    if has_methods || operable.split(' ').any(|name| name == first) {
        return error;
    }
    EvalError::new(format!("no such overload: {name}"))
}
