use serde_json::Value;

use super::Fields;
use crate::{answer::Answer, go};

/// Why a strategic merge patch was refused. Texts are upstream's.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StrategicMergeError {
    /// The body is not an object.
    #[error("json: cannot unmarshal {} into Go value of type map[string]interface {{}}", go::json_type(.0))]
    NotAnObject(Box<Value>),
    /// A `$deleteFromPrimitiveList` names no field.
    #[error("invalid patch format of primitive list")]
    BadPrimitiveList,
    /// A `$retainKeys` is not a list, or the patch sets a field it does not retain.
    #[error("invalid patch format of retainKeys")]
    BadRetainKeys,
    /// A `$setElementOrder` names no field.
    #[error("invalid patch format of setElementOrder list")]
    BadSetElementOrder,
    /// Lists of lists cannot be merged.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// A `$patch` with an unknown word.
    #[error("unknown patch type: {} in map: {}", go::plain(.directive), go::plain(.map))]
    UnknownDirective {
        /// The word.
        directive: Box<Value>,
        /// The object it stands in.
        map: Box<Value>,
    },
    /// `$patch: merge` as an item of a list.
    #[error("merging lists cannot yet be specified in the patch")]
    MergeDirectiveInList,
    /// An item without the key its list merges by.
    #[error("map: {} does not contain declared merge key: {key}", go::plain(.map))]
    NoMergeKey {
        /// The item.
        map: Box<Value>,
        /// The key.
        key: String,
    },
    /// A list of objects that has no merge key in the schema.
    #[error("cannot merge lists without merge key for struct")]
    NoMergeKeyDeclared,
    /// A value of another type than the directive or the list needs.
    #[error("expected a {expected}, but received a {}", received(.actual))]
    WrongType {
        /// What was needed.
        expected: &'static str,
        /// What was there.
        actual: Box<Value>,
    },
    /// Items of one list have different types.
    #[error("list element types are not identical: [{}]", .0.iter().map(go::plain).collect::<Vec<_>>().join(" "))]
    MixedTypes(Vec<Value>),
    /// A `$setElementOrder` for an empty list.
    #[error("no elements in any of the given slices")]
    NoElements,
    /// The patch lists items in another order than its `$setElementOrder`.
    #[error(
        "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
        go::plain(.patch), go::plain(.order)
    )]
    OrderMismatch {
        /// The list of the patch.
        patch: Box<Value>,
        /// The order it gives.
        order: Box<Value>,
    },
    /// Object and patch both have a field that the schema does not know.
    #[error("unable to find api field in struct {name} for the json field {}", go::quote(.field))]
    UnknownField {
        /// The struct.
        name: String,
        /// The field.
        field: String,
    },
}

fn received(actual: &Value) -> &'static str {
    if actual.is_null() { "%!s(<nil>)" } else { go::type_name(actual) }
}

impl StrategicMergeError {
    /// What the server answers.
    pub fn answer(&self) -> Answer {
        match self {
            Self::NotAnObject(_)
            | Self::BadPrimitiveList
            | Self::BadRetainKeys
            | Self::BadSetElementOrder => Answer::BadRequest,
            Self::ListOfLists => Answer::Invalid,
            _ => Answer::Untyped,
        }
    }

    /// The message of the Status.
    pub fn message(&self) -> String {
        self.answer().message(self)
    }

    pub(super) fn unknown_directive(directive: Value, map: Fields) -> Self {
        Self::UnknownDirective { directive: directive.into(), map: Value::Object(map).into() }
    }

    pub(super) fn no_merge_key(map: Fields, key: &str) -> Self {
        Self::NoMergeKey { map: Value::Object(map).into(), key: key.to_owned() }
    }

    pub(super) fn not_a_list(actual: Value) -> Self {
        Self::WrongType { expected: "[]interface {}", actual: actual.into() }
    }

    pub(super) fn not_a_map(actual: Value) -> Self {
        Self::WrongType { expected: "map[string]interface {}", actual: actual.into() }
    }
}
