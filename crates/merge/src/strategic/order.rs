//! The order of a merged list: `$setElementOrder` first, then the patch, then the live list.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    DIRECTIVE, Fields, PatchField, PatchSchema, Result, SET_ELEMENT_ORDER, StrategicMergeError, identity,
    list, object,
};

/// Merges every list that has a `$setElementOrder` beside it, and takes both out of the patch.
pub(super) fn set_element_orders<S: PatchSchema>(
    live: &mut Fields,
    patch: &mut Fields,
    schema: &S,
) -> Result<()> {
    let directives: Vec<String> =
        patch.keys().filter(|key| key.starts_with(SET_ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let order = list_of(patch.remove(&directive))?.unwrap_or_default();
        let Some(Some(key)) = object::directive_target(&directive, SET_ELEMENT_ORDER) else {
            return Err(StrategicMergeError::BadSetElementOrder);
        };
        let current = list_of(live.get(key).cloned())?;
        let change = list_of(patch.remove(key))?;
        let field = object::field(schema, key)?;
        if let Some(merged) = merge_in_order(current, change, &order, &field)? {
            live.insert(key.to_owned(), Value::Array(merged));
        }
    }
    Ok(())
}

fn list_of(value: Option<Value>) -> Result<Option<Vec<Value>>> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(StrategicMergeError::not_a_list(other)),
    }
}

fn merge_in_order<S: PatchSchema>(
    live: Option<Vec<Value>>,
    patch: Option<Vec<Value>>,
    order: &[Value],
    field: &PatchField<S>,
) -> Result<Option<Vec<Value>>> {
    let key = field.merge_key.as_deref();
    check_order(patch.as_deref().unwrap_or_default(), order, key)?;
    let kinds = (live.is_some() || patch.is_some())
        .then(|| list::items(live.as_deref().unwrap_or_default(), patch.as_deref().unwrap_or_default()));
    let server = live.clone().unwrap_or_default();
    let merged = match (live, patch) {
        (None, None) => return Ok(None),
        (Some(live), None) => live,
        (None, Some(patch)) => patch.into_iter().filter_map(object::take).collect(),
        (Some(live), Some(patch)) => list::merge(live, patch, field)?,
    };
    kinds.transpose()?;
    arrange(merged, order, &server, key).map(Some)
}

/// The items of the patch must appear in the order list, in the same relative order.
fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<()> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut places = order.iter();
    for item in patch.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        let wanted = ident(item, key)?;
        let mut found = false;
        for place in places.by_ref() {
            found = ident(place, key)? == wanted;
            if found {
                break;
            }
        }
        if !found {
            let patch = Box::new(Value::Array(patch.to_vec()));
            return Err(StrategicMergeError::OrderMismatch {
                patch,
                order: Box::new(Value::Array(order.to_vec())),
            });
        }
    }
    Ok(())
}

fn ident(item: &Value, key: Option<&str>) -> Result<String> {
    let value = match key {
        None => item,
        Some(key) => list::merge_value(list::as_map(item)?, key)?,
    };
    Ok(identity(value))
}

/// Puts a merged list in order: what `order` names follows `order`, the rest follows the live list, and the two
/// are woven together by their places in the live list. Where that says nothing, `order` goes first.
pub(super) fn arrange(
    merged: Vec<Value>,
    order: &[Value],
    live: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>> {
    let order = places(order, key)?;
    let live = places(live, key)?;
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for item in merged {
        let identity = ident(&item, key)?;
        let server = live.get(&identity).copied();
        match order.get(&identity) {
            Some(place) => named.push((*place, server, item)),
            None => others.push((server, item)),
        }
    }
    named.sort_by_key(|(place, ..)| *place);
    others.sort_by_key(|(server, _)| *server);
    let named = named.into_iter().map(|(_, server, item)| (server, item)).collect();
    Ok(weave(others, named))
}

fn places(items: &[Value], key: Option<&str>) -> Result<BTreeMap<String, usize>> {
    let mut places = BTreeMap::new();
    for (place, item) in items.iter().enumerate() {
        places.entry(ident(item, key)?).or_insert(place);
    }
    Ok(places)
}

type Placed = (Option<usize>, Value);

fn weave(others: Vec<Placed>, named: Vec<Placed>) -> Vec<Value> {
    let mut woven = Vec::with_capacity(others.len() + named.len());
    let mut others = others.into_iter().peekable();
    for (place, item) in named {
        while let Some((_, other)) = others
            .next_if(|(other, _)| matches!((other, place), (Some(other), Some(place)) if *other < place))
        {
            woven.push(other);
        }
        woven.push(item);
    }
    woven.extend(others.map(|(_, other)| other));
    woven
}
