//! Loops.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Evaluated, Evaluation, unsupported_key};
use crate::error::EvalError;
use crate::plan::{Fold, Node};
use crate::value::{Key, List, MapValue, Val};

impl<'a> Evaluation<'a, '_> {
    pub(super) fn fold(&mut self, fold: &'a Fold) -> Evaluated<'a> {
        let range = self.eval(&fold.range)?;
        let init = self.eval(&fold.init);
        self.locals[fold.accu] = Some(init);
        match range {
            Val::List(list) => self.fold_list(fold, &list)?,
            Val::Map(map) => self.fold_map(fold, &map)?,
            other => {
                let message = format!("got '{}', expected iterable type", go_type(&other));
                return Err(EvalError::new(message));
            }
        }
        let result = self.eval(&fold.result);
        self.locals[fold.accu] = None;
        result
    }

    fn fold_list(&mut self, fold: &'a Fold, list: &List<'a>) -> Result<(), EvalError> {
        for (i, item) in list.iter().enumerate() {
            match fold.var2 {
                None => self.locals[fold.var] = Some(item),
                Some(var2) => {
                    self.locals[fold.var] = Some(Ok(Val::Int(i as i64)));
                    self.locals[var2] = Some(item);
                }
            }
            if !self.turn(fold)? {
                break;
            }
        }
        Ok(())
    }

    fn fold_map(&mut self, fold: &'a Fold, map: &MapValue<'a>) -> Result<(), EvalError> {
        for key in map.keys() {
            if let Some(var2) = fold.var2 {
                self.locals[var2] = map.get(&key);
            }
            self.locals[fold.var] = Some(Ok(key));
            if !self.turn(fold)? {
                break;
            }
        }
        Ok(())
    }

    /// One turn of the loop; false when the condition ends it. An error stays in the accumulator, because a later turn
    /// may decide in spite of it.
    fn turn(&mut self, fold: &'a Fold) -> Result<bool, EvalError> {
        self.work.step()?;
        match self.eval(&fold.condition) {
            Ok(Val::Bool(false)) => return Ok(false),
            Err(error) if !error.is_absorbable() => return Err(error),
            _ => {}
        }
        match self.eval(&fold.step) {
            Err(error) if !error.is_absorbable() => return Err(error),
            step => self.locals[fold.accu] = Some(step),
        }
        Ok(true)
    }

    /// Adds an element to the accumulator. The accumulator is taken out of its slot, so it is not shared.
    pub(super) fn append(&mut self, slot: usize, element: &'a Node, constant: bool) -> Evaluated<'a> {
        let element = self.eval(element);
        self.work.charge(if constant { 2 } else { 2 + super::LIST_COST })?;
        // The first error wins.
        let mut values = match self.locals[slot].take() {
            Some(Ok(Val::List(List::Owned(values)))) => values,
            Some(Err(error)) => return Err(error),
            _ => Arc::new(Vec::new()),
        };
        Arc::make_mut(&mut values).push(element?);
        Ok(Val::List(List::Owned(values)))
    }

    /// Adds entries to the accumulator: a key and a value, or all of another map.
    pub(super) fn insert(&mut self, slot: usize, args: &'a [Node]) -> Evaluated<'a> {
        self.work.charge(1)?;
        // As a call of three arguments, the first form stops at the first error, and then costs nothing.
        let stops = args.len() == 2;
        if let (true, Some(Err(error))) = (stops, &self.locals[slot]) {
            return Err(error.clone());
        }
        let mut values = Vec::with_capacity(args.len());
        for (i, arg) in args.iter().enumerate() {
            let value = self.eval(arg);
            if stops && i == 0 && value.is_err() {
                return value;
            }
            values.push(value);
        }
        self.work.charge(1)?;
        let mut map = match self.locals[slot].take() {
            Some(Ok(Val::Map(MapValue::Owned(map)))) => map,
            Some(Err(error)) => return Err(error),
            _ => Arc::new(BTreeMap::new()),
        };
        let values: Vec<Val<'a>> = values.into_iter().collect::<Result<_, _>>()?;
        insert_all(Arc::make_mut(&mut map), &values)?;
        Ok(Val::Map(MapValue::Owned(map)))
    }
}

/// Inserts a key and a value, or the entries of a map.
fn insert_all<'a>(target: &mut BTreeMap<Key<'a>, Val<'a>>, values: &[Val<'a>]) -> Result<(), EvalError> {
    match values {
        [key, value] => insert_new(target, key, value.clone()),
        [Val::Map(more)] => {
            for key in more.keys() {
                let Some(value) = more.get(&key) else { continue };
                insert_new(target, &key, value?)?;
            }
            Ok(())
        }
        _ => Err(EvalError::new("no such overload")),
    }
}

/// The name of the type in cel-go's own code, which its message shows.
fn go_type(value: &Val<'_>) -> &'static str {
    match value {
        Val::Null => "types.Null",
        Val::Bool(_) => "types.Bool",
        Val::Int(_) => "types.Int",
        Val::Uint(_) => "types.Uint",
        Val::Double(_) => "types.Double",
        Val::String(_) => "types.String",
        Val::Bytes(_) => "types.Bytes",
        Val::Timestamp(_) => "types.Timestamp",
        Val::Duration(_) => "types.Duration",
        Val::Optional(_) => "*types.Optional",
        _ => "ref.Val",
    }
}

fn insert_new<'a>(
    map: &mut BTreeMap<Key<'a>, Val<'a>>,
    key: &Val<'a>,
    value: Val<'a>,
) -> Result<(), EvalError> {
    let key = Key::of(key).ok_or_else(|| unsupported_key(key))?;
    if map.contains_key(&key) {
        let shown = match &key {
            Key::Bool(key) => key.to_string(),
            Key::Int(key) => key.to_string(),
            Key::Uint(key) => key.to_string(),
            Key::String(key) => key.to_string(),
        };
        return Err(EvalError::new(format!("insert failed: key {shown} already exists")));
    }
    map.insert(key, value);
    Ok(())
}
