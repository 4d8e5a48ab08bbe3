use serde_json::{Map, Value};

use super::object;

/// The new object, with the old times in its managedFields if those are all that changed: a write that changes
/// nothing must not become one because of its time.
pub fn ignore_timestamps(old: &Value, mut new: Value) -> Value {
    if object::managed_fields(old) != object::managed_fields(&new) && is_timelessly_equal(old, &new) {
        object::set_managed_fields(&mut new, Some(object::managed_fields(old).clone()));
    }
    new
}

/// Whether objects are equal but for the times in their managedFields.
fn is_timelessly_equal(old: &Value, new: &Value) -> bool {
    equal_but_for("metadata", old, new, |old, new| {
        old == new || both(old, new, |old, new| equal_but_for("managedFields", old, new, are_same_entries))
    })
}

fn are_same_entries(old: Option<&Value>, new: Option<&Value>) -> bool {
    let (Some(Value::Array(old)), Some(Value::Array(new))) = (old, new) else { return old == new };
    let mut pairs = old.iter().zip(new);
    old.len() == new.len() && pairs.all(|(old, new)| equal_but_for("time", old, new, |_, _| true))
}

/// Whether values are equal, where `is_equal` says whether one field is. Nothing is copied: most writes change something,
/// and of those this is found out at the first difference.
fn equal_but_for(
    field: &str,
    old: &Value,
    new: &Value,
    is_equal: impl Fn(Option<&Value>, Option<&Value>) -> bool,
) -> bool {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return old == new };
    let others = |object: &Map<String, Value>| object.len() - usize::from(object.contains_key(field));
    let mut pairs = old.iter().filter(|(name, _)| *name != field);
    others(old) == others(new)
        && pairs.all(|(name, value)| new.get(name) == Some(value))
        && is_equal(old.get(field), new.get(field))
}

fn both(old: Option<&Value>, new: Option<&Value>, is_equal: impl Fn(&Value, &Value) -> bool) -> bool {
    old.zip(new).is_some_and(|(old, new)| is_equal(old, new))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: u8, time: &str) -> Value {
        json!({"a": value, "metadata": {"managedFields": [{"manager": "m", "time": time}]}})
    }

    #[test]
    fn a_new_time_alone_is_no_change() {
        assert_eq!(ignore_timestamps(&object(1, "t1"), object(1, "t2")), object(1, "t1"));
        assert_eq!(ignore_timestamps(&object(1, "t1"), object(2, "t2")), object(2, "t2"));
        assert_eq!(ignore_timestamps(&json!({"a": 1}), json!({"a": 1})), json!({"a": 1}));
        let timed = object(1, "t");
        let untimed = json!({"a": 1, "metadata": {"managedFields": [{"manager": "m"}]}});
        assert_eq!(ignore_timestamps(&timed, untimed.clone()), timed);
        assert_eq!(ignore_timestamps(&untimed, timed), untimed);
    }

    #[test]
    fn whatever_else_changes_is_a_change() {
        let old = object(1, "t1");
        for new in [
            json!({"a": 1, "metadata": {"managedFields": [{"manager": "n", "time": "t2"}]}}),
            json!({"a": 1, "metadata": {"managedFields": []}}),
            json!({"a": 1, "metadata": {"managedFields": null}}),
            json!({"a": 1, "metadata": {}}),
            json!({"a": 1}),
            json!({"a": 1, "metadata": {"managedFields": [{"manager": "m", "time": "t2"}], "name": "x"}}),
            json!({"b": 1, "metadata": {"managedFields": [{"manager": "m", "time": "t2"}]}}),
            json!({"a": 1, "b": 1, "metadata": {"managedFields": [{"manager": "m", "time": "t2"}]}}),
            json!({"a": 1, "metadata": null}),
            json!([]),
        ] {
            assert_eq!(ignore_timestamps(&old, new.clone()), new);
            assert_eq!(ignore_timestamps(&new, old.clone()), old, "{new}");
        }
    }
}
