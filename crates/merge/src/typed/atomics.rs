use serde_json::Value;

use super::{ListKind, MapKind, Type};

/// The paths of all lists and objects of a value that can only be replaced as a whole. What is below keys that are not
/// declared, as those of labels, is not looked at, which is upstream's way.
pub fn atomics<T: Type>(value: &Value, ty: &T) -> Vec<String> {
    let mut found = Vec::new();
    walk(value, ty, "", &mut found);
    found
}

fn walk<T: Type>(value: &Value, ty: &T, path: &str, found: &mut Vec<String>) {
    let kinds = ty.kinds();
    match (value, kinds.map, kinds.list) {
        (Value::Object(fields), Some(kind), _) => {
            if kind == MapKind::Atomic {
                found.push(path.to_owned());
            }
            for (name, value) in fields {
                if let Some(field) = ty.field(name) {
                    walk(value, &field, &format!("{path}.{name}"), found);
                }
            }
        }
        (Value::Array(items), _, Some(kind)) => {
            if kind == ListKind::Atomic {
                found.push(path.to_owned());
            }
            let Some(item_type) = ty.items() else { return };
            for (index, item) in items.iter().enumerate() {
                walk(item, &item_type, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}
