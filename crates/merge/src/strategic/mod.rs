//! Strategic merge patch: a merge patch that merges lists by key, with directives.
//!
//! | directive | where | meaning |
//! |---|---|---|
//! | `$patch: replace` | object | the patch is the new value |
//! | `$patch: delete` | object | the value becomes empty; an item of a list goes away |
//! | `$patch: replace` | item of a list | the other items are the new list |
//! | `$retainKeys: [..]` | object | all other fields of the live object go away first |
//! | `$deleteFromPrimitiveList/f: [..]` | beside `f` | these values leave the list `f` |
//! | `$setElementOrder/f: [..]` | beside `f` | the order of `f` afterwards |

mod error;
mod list;
mod object;
mod order;

use serde_json::{Map, Value};

pub use error::StrategicMergeError;

/// What a schema says about merging the fields of one struct.
///
/// A value of this trait is a place in the schema, cheap to clone. Only built-in kinds have such facts:
/// upstream refuses this patch type for custom resources with 415.
pub trait PatchSchema: Clone {
    /// The name of the struct, for error texts.
    fn name(&self) -> &str;

    /// What is known of a field: how it merges, and the place of its value. For a list, the place of an item.
    fn field(&self, name: &str) -> Option<PatchField<Self>>;
}

/// How one field merges.
#[derive(Clone, Debug)]
pub struct PatchField<S> {
    /// The schema of the value, or of an item if the value is a list.
    pub schema: S,
    /// The field's patchStrategy. `retainKeys` needs no flag: its directive works on every object.
    pub strategy: PatchStrategy,
    /// The field's patchMergeKey; lists of scalars have none.
    pub merge_key: Option<String>,
}

/// A field's patchStrategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PatchStrategy {
    /// None given: objects merge, lists are replaced.
    #[default]
    Default,
    /// Lists merge too.
    Merge,
    /// Even objects are replaced.
    Replace,
}

type Result<T, E = StrategicMergeError> = std::result::Result<T, E>;

type Fields = Map<String, Value>;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_PRIMITIVE_LIST: &str = "$deleteFromPrimitiveList";
const SET_ELEMENT_ORDER: &str = "$setElementOrder";

/// The object after the patch.
pub fn strategic_merge<S: PatchSchema>(object: Value, patch: Value, schema: &S) -> Result<Value> {
    let Value::Object(patch) = patch else { return Err(StrategicMergeError::NotAnObject(patch.into())) };
    let fields = match object {
        Value::Object(fields) => fields,
        _ => Fields::new(),
    };
    object::merge(fields, patch, schema).map(Value::Object)
}

/// The values of a list by what identifies them, so that long lists do not cost the square of their length.
fn identity(value: &Value) -> String {
    value.to_string()
}
