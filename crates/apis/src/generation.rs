//! When an object gets a new generation.

use concord_registry::Object;
use concord_validation::same_amounts;
use serde_json::Value;

/// Whether something differs outside of metadata and status: that is a new generation. As for upstream, an empty list
/// is no other than none.
pub(crate) fn is_changed(new: &Object, old: &Object) -> bool {
    let other = ["metadata", "status", "kind", "apiVersion"];
    let names = new.keys().chain(old.keys().filter(|name| !new.contains_key(*name)));
    let mut desired = names.filter(|name| !other.contains(&name.as_str()));
    desired.any(|name| differ(new.get(name), old.get(name)))
}

/// Whether two values differ; an empty list is no other than none.
pub(crate) fn differ(one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one, other) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            one.iter().any(|(name, value)| {
                let other = other.get(name);
                !same_amounts(name, Some(value), other) && differ(Some(value), other)
            }) || other.iter().any(|(name, value)| !one.contains_key(name) && differ(None, Some(value)))
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            one.len() != other.len()
                || one.iter().zip(other).any(|(one, other)| differ(Some(one), Some(other)))
        }
        (None | Some(Value::Null), Some(Value::Array(list)))
        | (Some(Value::Array(list)), None | Some(Value::Null)) => !list.is_empty(),
        (one, other) => one != other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_count_by_their_value() {
        let with = |memory: &str, unknown: &str| {
            let spec = json!({"limits": {"memory": memory}, "x": unknown});
            Object::from_iter([("spec".to_owned(), spec)])
        };
        let before = with("1Ki", "1Ki");
        for (memory, unknown, changed) in
            [("1Ki", "1Ki", false), ("1024", "1Ki", false), ("1025", "1Ki", true), ("1Ki", "1024", true)]
        {
            assert_eq!(is_changed(&with(memory, unknown), &before), changed, "{memory} {unknown}");
        }
    }
}
