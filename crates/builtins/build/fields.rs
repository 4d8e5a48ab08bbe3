//! When Go writes a field, as far as rules say it.

use serde_json::Value;

/// What is written for a field of which the tables say nothing: its code in the text.
///
/// `a`: always; `z`: when it is not zero; `g`: when it was given; `n`: always, if need be as null.
pub(crate) fn presence(name: &str, schema: &Value, required: bool, is_struct: bool) -> char {
    let reference = schema["$ref"].as_str().unwrap_or_default();
    if required || reference.ends_with(".v1.Time") {
        return 'a';
    }
    // The three parts of an object are values in Go, whether they are required or not.
    if is_struct && matches!(name, "metadata" | "spec" | "status") {
        return 'a';
    }
    match schema["type"].as_str() {
        // Zero means "not given" for strings, and lists and maps can be nil.
        Some("string" | "array" | "object") => 'z',
        _ => 'g',
    }
}
