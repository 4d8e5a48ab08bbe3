use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value};

use super::{
    Kind, ListKind, MapKind, Type, ValidationErrors, items::element_of, list_of, map_of, validate::duplicate,
};
use crate::fields::PathElement;

type Result<T, E = ValidationErrors> = std::result::Result<T, E>;

/// The live value with an applied configuration merged in. Nothing is removed; where both have a leaf, the
/// configuration's counts.
pub fn merge<T: Type>(live: &Value, config: &Value, ty: &T) -> Result<Value> {
    let kinds = ty.kinds();
    let atomic_list = matches!(kinds.list, None | Some(ListKind::Atomic));
    match kinds.kind_of(config).ok_or_else(ValidationErrors::no_type)? {
        Kind::Map if kinds.map != Some(MapKind::Atomic) => merge_maps(live, config, ty),
        Kind::List if !atomic_list => merge_lists(live, config, ty, kinds.list.unwrap_or(ListKind::Atomic)),
        Kind::Scalar | Kind::Map | Kind::List => Ok(config.clone()),
    }
}

fn merge_maps<T: Type>(live: &Value, config: &Value, ty: &T) -> Result<Value> {
    let empty = Map::new();
    let current = map_of(Some(live)).unwrap_or(&empty);
    let change = map_of(Some(config)).unwrap_or(&empty);
    // Between null and {} the configuration decides.
    if current.is_empty() && change.is_empty() {
        return Ok(config.clone());
    }
    let mut merged = current.clone();
    for (name, change) in change {
        let value = match current.get(name) {
            None => change.clone(),
            Some(current) => {
                let field = super::field_type(ty, name).ok_or_else(ValidationErrors::no_type)?;
                merge(current, change, &field).map_err(|errors| errors.below(format_args!(".{name}")))?
            }
        };
        merged.insert(name.clone(), value);
    }
    Ok(Value::Object(merged))
}

fn merge_lists<T: Type>(live: &Value, config: &Value, ty: &T, list: ListKind<'_>) -> Result<Value> {
    let current = list_of(Some(live)).map(Vec::as_slice).unwrap_or_default();
    let change = list_of(Some(config)).map(Vec::as_slice).unwrap_or_default();
    if current.is_empty() && change.is_empty() {
        return Ok(config.clone());
    }
    let item_type = ty.items().ok_or_else(ValidationErrors::no_type)?;
    let mut weaver = Weaver {
        live: elements(current, ty, list)?,
        by_element: BTreeMap::new(),
        item_type,
        merged: Vec::with_capacity(current.len().max(change.len())),
    };
    for (element, item) in &weaver.live {
        // Items of one identity are not merged with anything.
        weaver.by_element.entry(element.clone()).and_modify(|item| *item = &Value::Null).or_insert(*item);
    }
    weaver.weave(elements(change, ty, list)?)?;
    Ok(Value::Array(weaver.merged))
}

type Items<'a> = Vec<(PathElement, &'a Value)>;

fn elements<'a, T: Type>(items: &'a [Value], ty: &T, list: ListKind<'_>) -> Result<Items<'a>> {
    let named = items.iter().enumerate().map(|(index, item)| {
        let element = element_of(ty, list, item);
        let element = element.map_err(|why| ValidationErrors::one(format!("element {index}: {why}")))?;
        Ok((element, item))
    });
    named.collect()
}

struct Weaver<'a, T> {
    live: Items<'a>,
    by_element: BTreeMap<PathElement, &'a Value>,
    item_type: T,
    merged: Vec<Value>,
}

impl<T: Type> Weaver<'_, T> {
    /// Items of the configuration keep the configuration's order, items only in the live list keep theirs, and
    /// stay where they are relative to the shared ones as far as both orders allow.
    fn weave(&mut self, config: Items<'_>) -> Result<()> {
        let mut wanted = BTreeMap::new();
        for (element, item) in &config {
            if wanted.insert(element.clone(), *item).is_some() {
                return Err(duplicate(element));
            }
        }
        let shared = config
            .iter()
            .map(|(element, _)| element)
            .filter(|element| self.by_element.contains_key(*element));
        let mut shared: VecDeque<PathElement> = shared.cloned().collect();
        let mut done = std::collections::BTreeSet::new();
        let mut live = std::mem::take(&mut self.live).into_iter().peekable();
        let mut config = config.into_iter().peekable();
        while live.peek().is_some() || config.peek().is_some() {
            if let Some((element, item)) = live.peek() {
                if !wanted.contains_key(element) {
                    self.merged.push((*item).clone());
                    live.next();
                    continue;
                }
                // A shared item whose turn comes later is passed over here, as is one that was placed already.
                let later = config.peek().is_some_and(|(next, _)| next != element)
                    && shared.front().is_some_and(|next| next != element);
                if later {
                    live.next();
                    continue;
                }
                if done.contains(element) {
                    live.next();
                }
            }
            let Some((element, item)) = config.next() else { continue };
            self.place(&element, item)?;
            if shared.front() == Some(&element) {
                shared.pop_front();
            }
            if live.peek().is_some_and(|(next, _)| *next == element) {
                live.next();
            }
            done.insert(element);
        }
        Ok(())
    }

    fn place(&mut self, element: &PathElement, item: &Value) -> Result<()> {
        let merged = match self.by_element.get(element) {
            None => item.clone(),
            Some(live) => merge(live, item, &self.item_type).map_err(|errors| errors.below(element))?,
        };
        self.merged.push(merged);
        Ok(())
    }
}
