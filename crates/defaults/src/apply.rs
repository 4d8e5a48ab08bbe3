//! Rules at work.

use serde_json::Value;

use crate::{
    Object,
    table::{Action, Condition, Field, Rule, Step, Table, Test, TypeId},
};

/// Applies the rules of a type to an object. Types lead to other types, never back to themselves, so this ends.
pub(crate) fn apply(table: &Table, id: TypeId, object: &mut Object) {
    for rule in &table.types[usize::from(id.0)] {
        if rule.conditions.iter().all(|condition| holds(condition, object)) {
            act(table, rule, object);
        }
    }
}

fn act(table: &Table, rule: &Rule, object: &mut Object) {
    match &rule.action {
        Action::Set(field, value) => {
            if let Some(parent) = missing(field, object) {
                parent.insert(field.name.to_owned(), value.clone());
            }
        }
        Action::Copy(field, from) => {
            if missing(field, object).is_none() {
                return;
            }
            let Some(value) = found(from, object).cloned() else { return };
            if let Some(parent) = parent(field, object) {
                parent.insert(field.name.to_owned(), value);
            }
        }
        Action::Fill(field, from) => fill(field, from, object),
        Action::Drop(field) => {
            if let Some(parent) = parent(field, object) {
                parent.remove(field.name);
            }
        }
        Action::Visit(steps, id) => visit_fields(table, *id, steps, object),
        Action::Like(id) => apply(table, *id, object),
        Action::Do(code) => code(object),
    }
}

fn visit_fields(table: &Table, id: TypeId, steps: &[Step], object: &mut Object) {
    let Some((Step::Field(name), rest)) = steps.split_first() else { return };
    if let Some(value) = object.get_mut(*name) {
        visit(table, id, rest, value);
    }
}

fn visit(table: &Table, id: TypeId, steps: &[Step], value: &mut Value) {
    match (steps.split_first(), value) {
        (None, Value::Object(object)) => apply(table, id, object),
        (Some((Step::Field(_), _)), Value::Object(object)) => visit_fields(table, id, steps, object),
        (Some((Step::Items, rest)), Value::Array(items)) => {
            items.iter_mut().for_each(|item| visit(table, id, rest, item));
        }
        (Some((Step::Values, rest)), Value::Object(object)) => {
            object.values_mut().for_each(|value| visit(table, id, rest, value));
        }
        _ => {}
    }
}

/// A map gets the entries of another one that it lacks.
fn fill(field: &Field, from: &Field, object: &mut Object) {
    let Some(Value::Object(source)) = found(from, object) else { return };
    let lacks = |(key, _): &(&String, &Value)| match value(field, object) {
        Some(Value::Object(target)) => !target.contains_key(*key),
        _ => true,
    };
    let more: Object = source.iter().filter(lacks).map(|(key, value)| (key.clone(), value.clone())).collect();
    if more.is_empty() {
        return;
    }
    let Some(parent) = parent(field, object) else { return };
    match parent.get_mut(field.name) {
        Some(Value::Object(target)) => target.extend(more),
        _ => drop(parent.insert(field.name.to_owned(), Value::Object(more))),
    }
}

/// The object that a field is in.
fn parent<'a>(field: &Field, object: &'a mut Object) -> Option<&'a mut Object> {
    field.parents.iter().try_fold(object, |object, name| object.get_mut(*name)?.as_object_mut())
}

/// The object that a field is missing from.
fn missing<'a>(field: &Field, object: &'a mut Object) -> Option<&'a mut Object> {
    parent(field, object).filter(|parent| !is_set(parent.get(field.name), field.pointer))
}

/// What a field is, even null or zero.
fn value<'a>(field: &Field, object: &'a Object) -> Option<&'a Value> {
    let parent = field.parents.iter().try_fold(object, |object, name| object.get(*name)?.as_object())?;
    parent.get(field.name)
}

/// What a field is, if it is anything.
fn found<'a>(field: &Field, object: &'a Object) -> Option<&'a Value> {
    value(field, object).filter(|value| is_set(Some(value), field.pointer))
}

fn is_set(value: Option<&Value>, pointer: bool) -> bool {
    match value {
        None | Some(Value::Null) => false,
        _ if pointer => true,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Number(number)) => number.as_i64() != Some(0),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty(),
        Some(Value::Bool(_)) => true,
    }
}

fn holds(condition: &Condition, object: &Object) -> bool {
    match &condition.test {
        Test::Set => found(&condition.field, object).is_some(),
        Test::Unset => found(&condition.field, object).is_none(),
        Test::Is(values) => {
            value(&condition.field, object).is_some_and(|value| values.iter().any(|one| one == value))
        }
    }
}
