//! Attributes: a value and what is selected from it.

use super::{Evaluated, Evaluation};
use crate::error::EvalError;
use crate::plan::{Attribute, Base, Node, Qualifier, QualifierKind};
use crate::value::{List, MapValue, Val};

impl<'a> Evaluation<'a, '_> {
    /// Evaluates an attribute. As a branch of a conditional or as an index, reading the variable itself is free.
    pub(super) fn attribute(&mut self, attribute: &'a Attribute, charged: bool) -> Evaluated<'a> {
        let testing =
            matches!(attribute.qualifiers.last(), Some(Qualifier { kind: QualifierKind::Has(_), .. }));
        let base = self.base(&attribute.base);
        let value = base.and_then(|base| self.qualify(base, &attribute.qualifiers));
        let free = testing || matches!(attribute.base, Base::Conditional(_)) || !charged;
        self.work.charge(u64::from(!free))?;
        value
    }

    fn base(&mut self, base: &'a Base) -> Evaluated<'a> {
        match base {
            Base::Global(index) => match &self.globals[*index] {
                Some(value) => value.clone(),
                None => Err(EvalError::new(format!("no such attribute(s): {}", self.plan.globals[*index]))),
            },
            Base::Local(slot) => self.locals[*slot].clone().unwrap_or(Ok(Val::Null)),
            Base::Bound(slot, init) => self.bound(*slot, *init),
            Base::Node(node) => self.eval(node),
            Base::Conditional(parts) => self.conditional(parts),
        }
    }

    fn bound(&mut self, slot: usize, init: usize) -> Evaluated<'a> {
        if let Some(value) = &self.locals[slot] {
            return value.clone();
        }
        let plan = self.plan;
        let value = self.eval(&plan.bound[init]);
        self.locals[slot] = Some(value.clone());
        value
    }

    fn conditional(&mut self, parts: &'a [Node; 3]) -> Evaluated<'a> {
        let [condition, then, otherwise] = parts;
        match self.eval(condition)? {
            Val::Bool(true) => self.branch(then),
            Val::Bool(false) => self.branch(otherwise),
            _ => Err(EvalError::new("no such overload")),
        }
    }

    fn branch(&mut self, node: &'a Node) -> Evaluated<'a> {
        match node {
            Node::Attribute(attribute) => self.attribute(attribute, false),
            other => self.eval(other),
        }
    }

    /// Applies the selections. After an optional one everything is optional.
    fn qualify(&mut self, base: Val<'a>, qualifiers: &'a [Qualifier]) -> Evaluated<'a> {
        if qualifiers.is_empty() {
            return Ok(base);
        }
        let (mut value, mut optional) = match base {
            Val::Optional(None) => return Ok(Val::NONE),
            Val::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, false),
        };
        for qualifier in qualifiers {
            optional |= qualifier.optional;
            if let QualifierKind::Has(field) = &qualifier.kind {
                self.work.charge(1)?;
                return Ok(Val::Bool(has(&value, field)?));
            }
            match self.qualifier(&value, qualifier, optional)? {
                Some(found) => value = found,
                None => return Ok(Val::NONE),
            }
        }
        Ok(if optional { Val::some(value) } else { value })
    }

    /// One selection. What is missing is none when it is optional, and an error otherwise.
    fn qualifier(
        &mut self,
        value: &Val<'a>,
        qualifier: &'a Qualifier,
        optional: bool,
    ) -> Result<Option<Val<'a>>, EvalError> {
        let found = match &qualifier.kind {
            QualifierKind::Field(name) | QualifierKind::Has(name) => field(value, name),
            QualifierKind::Constant(key) => element(value, key),
            QualifierKind::Node(node) => self.branch(node).and_then(|key| element(value, &key)),
        };
        if optional && matches!(found, Ok(Found::Missing(_))) {
            return Ok(None);
        }
        self.work.charge(1)?;
        match found? {
            Found::Value(value) => Ok(Some(value)),
            Found::Missing(error) => Err(error),
        }
    }
}

enum Found<'a> {
    Value(Val<'a>),
    Missing(EvalError),
}

impl<'a> Found<'a> {
    fn of(value: Option<Evaluated<'a>>, missing: impl FnOnce() -> String) -> Result<Self, EvalError> {
        match value {
            Some(value) => Ok(Self::Value(value?)),
            None => Ok(Self::Missing(EvalError::new(missing()))),
        }
    }
}

fn field<'a>(value: &Val<'a>, name: &str) -> Result<Found<'a>, EvalError> {
    match value {
        Val::Map(map) => Found::of(map.field(name), || format!("no such key: {name}")),
        Val::Message(message) => Found::of(message.field(name).map(Ok), || format!("no such key: {name}")),
        Val::Optional(Some(inner)) => field(inner, name),
        Val::List(_) => Err(EvalError::new("unsupported index type 'string' in list")),
        _ => Found::of(None, || format!("no such key: {name}")),
    }
}

fn has(value: &Val<'_>, name: &str) -> Result<bool, EvalError> {
    match value {
        Val::Map(MapValue::Lazy(map)) => Ok(map.get(name).is_some()),
        _ => Ok(matches!(field(value, name)?, Found::Value(_))),
    }
}

fn element<'a>(value: &Val<'a>, key: &Val<'a>) -> Result<Found<'a>, EvalError> {
    match value {
        Val::Map(map) => Found::of(map.get(key), || format!("no such key: {}", show_key(key))),
        Val::List(list) => at(list, key),
        Val::Optional(Some(inner)) => element(inner, key),
        _ => Found::of(None, || format!("no such key: {}", show_key(key))),
    }
}

fn at<'a>(list: &List<'a>, key: &Val<'a>) -> Result<Found<'a>, EvalError> {
    let index = match key {
        Val::Int(index) => *index,
        Val::Uint(index) => i64::try_from(*index).unwrap_or(i64::MAX),
        Val::Double(index) if *index as i64 as f64 == *index => *index as i64,
        Val::Double(index) => return Err(EvalError::new(format!("unsupported index value {index} in list"))),
        _ => return Err(EvalError::new(format!("unsupported index type '{}' in list", key.type_name()))),
    };
    let found = usize::try_from(index).ok().and_then(|index| list.get(index));
    Found::of(found, || format!("index out of bounds: {index}"))
}

fn show_key(key: &Val<'_>) -> String {
    match key {
        Val::String(text) => text.to_string(),
        Val::Int(value) => value.to_string(),
        Val::Uint(value) => value.to_string(),
        Val::Bool(value) => value.to_string(),
        Val::Double(value) => concord_meta::go::float(*value),
        other => other.type_name(),
    }
}
