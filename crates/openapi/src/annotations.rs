//! What is said about types besides their structure: descriptions, enums, defaults.

use std::{
    collections::HashSet,
    sync::{Arc, OnceLock, Weak},
};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::components;

/// Parts of schemas, by the names of the definitions they are added to.
pub(crate) type Texts = Map<String, Value>;

/// Where the texts come from. They are large and seldom wanted: they are unpacked when documents are made, and kept only
/// while that goes on.
pub(crate) struct Annotations {
    unpack: fn() -> Texts,
    unpacked: Mutex<Weak<Texts>>,
    common: OnceLock<Common>,
}

/// What documents about custom resources need of the texts, which are made while the server works: it is kept.
pub(crate) struct Common {
    /// Those of the types that custom resources refer to.
    pub(crate) texts: Arc<Texts>,
    /// The names of all definitions.
    pub(crate) names: HashSet<String>,
}

/// Where the types of `/scale` are, the only ones that custom resources do not share with all APIs.
const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

impl Annotations {
    pub(crate) fn new(unpack: fn() -> Texts) -> Self {
        Self { unpack, unpacked: Mutex::default(), common: OnceLock::new() }
    }

    pub(crate) fn texts(&self) -> Arc<Texts> {
        let mut unpacked = self.unpacked.lock();
        unpacked.upgrade().unwrap_or_else(|| {
            let texts = Arc::new((self.unpack)());
            *unpacked = Arc::downgrade(&texts);
            texts
        })
    }

    /// What documents about custom resources need.
    pub(crate) fn common(&self) -> &Common {
        self.common.get_or_init(|| {
            let texts = self.texts();
            let is_common = |name: &str| components::is_shared(name) || name.starts_with(SCALE);
            let common = texts.iter().filter(|(name, _)| is_common(name));
            Common {
                texts: Arc::new(common.map(|(name, text)| (name.clone(), text.clone())).collect()),
                names: texts.keys().cloned().collect(),
            }
        })
    }
}

/// Adds to a schema what is said about it. What is said about fields that it does not have is left out.
pub(crate) fn annotate(schema: &mut Value, text: &Value) {
    for (name, said) in text.as_object().into_iter().flatten() {
        match name.as_str() {
            "properties" => {
                let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
                for (field, schema) in fields.into_iter().flatten() {
                    annotate(schema, &said[field]);
                }
            }
            "items" | "additionalProperties" => {
                if let Some(inner) = schema.get_mut(name).filter(|inner| inner.is_object()) {
                    annotate(inner, said);
                }
            }
            _ => add(schema, name, said.clone()),
        }
    }
}

/// Adds a member to a schema. Nothing may stand beside a reference, which therefore moves into an `allOf`.
pub(crate) fn add(schema: &mut Value, name: &str, value: Value) {
    if schema.get("$ref").is_some() {
        *schema = json!({"allOf": [schema.take()]});
    }
    if let Value::Object(members) = schema {
        members.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_added_where_it_belongs() {
        let mut schema =
            json!({"properties": {"a": {"$ref": "#/x"}, "b": {"type": "array", "items": {"$ref": "#/y"}}}});
        let text = json!({
            "description": "all",
            "properties": {
                "a": {"description": "one", "default": {}},
                "b": {"items": {"default": {}}, "additionalProperties": {"default": ""}},
                "gone": {"description": "other"},
            },
        });
        annotate(&mut schema, &text);
        let expected = json!({
            "description": "all",
            "properties": {
                "a": {"allOf": [{"$ref": "#/x"}], "description": "one", "default": {}},
                "b": {"type": "array", "items": {"allOf": [{"$ref": "#/y"}], "default": {}}},
            },
        });
        assert_eq!(schema, expected);
    }

    #[test]
    fn texts_are_kept_while_somebody_uses_them() {
        let annotations = Annotations::new(|| Texts::from_iter([("a".to_owned(), json!({}))]));
        let first = annotations.texts();
        assert!(Arc::ptr_eq(&first, &annotations.texts()));
        drop(first);
        assert!(annotations.unpacked.lock().upgrade().is_none());
    }
}
