use serde_json::Value;

use super::object;

/// The new object, with the old times in its managedFields if those are all that changed: a write that changes
/// nothing must not become one because of its time.
pub fn ignore_timestamps(old: &Value, mut new: Value) -> Value {
    if old != &new && timeless(old) == timeless(&new) {
        object::set_managed_fields(&mut new, Some(object::managed_fields(old).clone()));
    }
    new
}

fn timeless(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(entries) = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut) {
        entries.iter_mut().filter_map(Value::as_object_mut).for_each(|entry| drop(entry.remove("time")));
    }
    object
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
    }
}
