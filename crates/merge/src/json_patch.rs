//! JSON patch (RFC 6902) with the limits and the habits of upstream's library.
//!
//! The habits clients may rely on: negative indices count from the end, `replace` and `copy` take an absent
//! member of an object for null, a `test` for null passes on an absent member, and whatever stands before
//! the first `/` of a path is ignored.

use serde_json::{Map, Value};

use crate::{answer::Answer, go};

/// More operations than this are refused before the first is tried.
pub const MAX_OPERATIONS: usize = 10_000;

/// The copy operations of one patch may add this many bytes of JSON in total. Each could double the object
/// otherwise.
pub const MAX_COPY_BYTES: usize = 3 * 1024 * 1024;

/// An object may not become deeper than what can be read back from the store.
const MAX_DEPTH: usize = 127;

/// Values that move operations may look at while keeping [`MAX_DEPTH`]. A bound on work no honest patch meets.
const MAX_MOVED_VALUES: usize = 10_000_000;

/// Why a JSON patch was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonPatchError {
    /// The body is not a list of operations.
    #[error("error decoding patch: {0}")]
    Malformed(String),
    /// More than [`MAX_OPERATIONS`].
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}")]
    TooManyOperations(usize),
    /// An operation fails on this object. The client is not told which one.
    #[error("{0}")]
    DoesNotApply(String),
    /// A `test` of this path finds something else.
    #[error("testing value {0} failed")]
    TestFailed(String),
}

impl JsonPatchError {
    /// What the server answers.
    pub fn answer(&self) -> Answer {
        match self {
            Self::Malformed(_) => Answer::BadRequest,
            Self::TooManyOperations(_) => Answer::RequestEntityTooLarge,
            Self::DoesNotApply(_) | Self::TestFailed(_) => Answer::Invalid,
        }
    }

    /// The message of the Status.
    pub fn message(&self) -> String {
        self.answer().message(self)
    }
}

type Result<T, E = JsonPatchError> = std::result::Result<T, E>;

fn fails<T>(why: impl Into<String>) -> Result<T> {
    Err(JsonPatchError::DoesNotApply(why.into()))
}

/// A decoded JSON patch, to be applied as often as the write is retried.
#[derive(Clone, Debug)]
pub struct JsonPatch {
    operations: Vec<Operation>,
}

#[derive(Clone, Debug)]
struct Operation {
    kind: String,
    path: Option<String>,
    from: Option<String>,
    value: Value,
}

impl JsonPatch {
    /// Reads a request body.
    pub fn decode(body: &Value) -> Result<Self> {
        let operations = match body {
            Value::Array(operations) => operations.as_slice(),
            // Go reads null as a list without elements.
            Value::Null => &[],
            _ => return malformed(body, "Go value of type []handlers.jsonPatchOp"),
        };
        if operations.len() > MAX_OPERATIONS {
            return Err(JsonPatchError::TooManyOperations(operations.len()));
        }
        let operations = operations.iter().map(Operation::decode).collect::<Result<_>>()?;
        Ok(Self { operations })
    }

    /// The object after all operations, or nothing at all: a patch is never half applied.
    pub fn apply(&self, object: Value) -> Result<Value> {
        let mut work = Work { object, copied: 0, moved: 0 };
        self.operations.iter().try_for_each(|operation| work.perform(operation))?;
        Ok(work.object)
    }
}

fn malformed<T>(value: &Value, target: &str) -> Result<T> {
    let kind = go::json_type(value);
    Err(JsonPatchError::Malformed(format!("json: cannot unmarshal {kind} into {target}")))
}

impl Operation {
    fn decode(value: &Value) -> Result<Self> {
        let empty = Map::new();
        let fields = match value {
            Value::Object(fields) => fields,
            Value::Null => &empty,
            other => return malformed(other, "Go value of type handlers.jsonPatchOp"),
        };
        Ok(Self {
            kind: text(fields, "op")?.unwrap_or_else(|| "unknown".to_owned()),
            path: text(fields, "path")?,
            from: text(fields, "from")?,
            value: fields.get("value").cloned().unwrap_or(Value::Null),
        })
    }

    fn path(&self) -> Result<&str> {
        self.path.as_deref().map_or_else(
            || fails(format!("{} operation failed to decode path: missing value", self.kind)),
            Ok,
        )
    }

    fn from(&self) -> Result<&str> {
        self.from.as_deref().map_or_else(
            || fails(format!("{} operation failed to decode from: missing value", self.kind)),
            Ok,
        )
    }
}

fn text(fields: &Map<String, Value>, name: &str) -> Result<Option<String>> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => malformed(other, &format!("Go struct field jsonPatchOp.{name} of type string")),
    }
}

struct Work {
    object: Value,
    copied: usize,
    moved: usize,
}

impl Work {
    fn perform(&mut self, operation: &Operation) -> Result<()> {
        match operation.kind.as_str() {
            "add" => self.add(operation.path()?, operation.value.clone()),
            "remove" => self.remove(operation.path()?),
            "replace" => self.replace(operation.path()?, &operation.value),
            "move" => self.relocate(operation.from()?, operation.path()?),
            "copy" => self.copy(operation.from()?, operation.path()?),
            "test" => self.test(operation.path()?, &operation.value),
            other => fails(format!("Unexpected kind: {other}")),
        }
    }

    fn add(&mut self, path: &str, value: Value) -> Result<()> {
        let mut unlimited = usize::MAX;
        check_depth(path, &value, &mut unlimited)?;
        let Some(place) = find(&mut self.object, path) else {
            return fails(format!(
                "add operation does not apply: doc is missing path: \"{path}\": missing value"
            ));
        };
        place.insert(value).or_else(|why| fails(format!("error in add for path: '{path}': {why}")))
    }

    fn take(&mut self, path: &str) -> Result<Value, Misplaced> {
        find(&mut self.object, path).ok_or(Misplaced::Nowhere)?.remove().map_err(Misplaced::Here)
    }

    fn remove(&mut self, path: &str) -> Result<()> {
        self.take(path).map(drop).or_else(|misplaced| match misplaced {
            Misplaced::Nowhere => fails(format!(
                "remove operation does not apply: doc is missing path: \"{path}\": missing value"
            )),
            Misplaced::Here(why) => fails(format!("error in remove for path: '{path}': {why}")),
        })
    }

    fn replace(&mut self, path: &str, value: &Value) -> Result<()> {
        let mut unlimited = usize::MAX;
        check_depth(path, value, &mut unlimited)?;
        if path.is_empty() {
            if !value.is_object() && !value.is_array() {
                return fails("replace operation value must be object or array");
            }
            self.object = value.clone();
            return Ok(());
        }
        let missing = |what: &str| {
            fails(format!("replace operation does not apply: doc is missing {what}: {path}: missing value"))
        };
        match find(&mut self.object, path) {
            None => missing("path"),
            Some(place) => place.replace(value.clone()).or_else(|_| missing("key")),
        }
    }

    fn relocate(&mut self, from: &str, path: &str) -> Result<()> {
        let value = self.take(from).or_else(|misplaced| match misplaced {
            Misplaced::Nowhere => fails(format!(
                "move operation does not apply: doc is missing from path: {from}: missing value"
            )),
            Misplaced::Here(why) => {
                let key = from.rsplit('/').next().map(unescape).unwrap_or_default();
                fails(format!("error in move for path: '{key}': {why}"))
            }
        })?;
        if segments(path) > segments(from) {
            let mut left = MAX_MOVED_VALUES - self.moved;
            check_depth(path, &value, &mut left)?;
            self.moved = MAX_MOVED_VALUES - left;
        }
        let Some(place) = find(&mut self.object, path) else {
            return fails(format!(
                "move operation does not apply: doc is missing destination path: {path}: missing value"
            ));
        };
        place.insert(value).or_else(|why| fails(format!("error in move for path: '{path}': {why}")))
    }

    fn copy(&mut self, from: &str, path: &str) -> Result<()> {
        let Some(place) = find(&mut self.object, from) else {
            return fails(format!(
                "copy operation does not apply: doc is missing from path: {from}: missing value"
            ));
        };
        let value =
            place.member().or_else(|why| fails(format!("error in copy for from: '{from}': {why}")))?.cloned();
        self.copied += value.as_ref().map_or(Ok(0), encoded_len)?;
        if self.copied > MAX_COPY_BYTES {
            let copied = self.copied;
            return fails(format!("copies add {copied} bytes, exceeding the limit {MAX_COPY_BYTES}"));
        }
        let value = value.unwrap_or(Value::Null);
        let mut unlimited = usize::MAX;
        check_depth(path, &value, &mut unlimited)?;
        let Some(place) = find(&mut self.object, path) else {
            return fails(format!(
                "copy operation does not apply: doc is missing destination path: {path}: missing value"
            ));
        };
        place.insert(value).or_else(|why| fails(format!("error while adding value during copy: {why}")))
    }

    fn test(&mut self, path: &str, expected: &Value) -> Result<()> {
        let equal = if path.is_empty() {
            self.object == *expected
        } else {
            let Some(place) = find(&mut self.object, path) else {
                return fails(format!(
                    "test operation does not apply: is missing path: {path}: missing value"
                ));
            };
            let found =
                place.member().or_else(|why| fails(format!("error in test for path: '{path}': {why}")))?;
            found.map_or(&Value::Null, |found| &*found) == expected
        };
        if equal { Ok(()) } else { Err(JsonPatchError::TestFailed(path.to_owned())) }
    }
}

/// Why something cannot be taken from where it should be.
enum Misplaced {
    /// There is no such place.
    Nowhere,
    /// There is, and this is wrong with it.
    Here(String),
}

/// Where a path leads: what it ends in, and the last segment.
struct Target<'a> {
    container: &'a mut Value,
    key: String,
}

/// `None` if there is no such place.
fn find<'a>(object: &'a mut Value, path: &str) -> Option<Target<'a>> {
    let (_, path) = path.split_once('/')?;
    let (parents, key) = path.rsplit_once('/').map_or((None, path), |(parents, key)| (Some(parents), key));
    let mut container = object;
    for segment in parents.into_iter().flat_map(|parents| parents.split('/')) {
        let segment = unescape(segment);
        container = match container {
            Value::Object(fields) => fields.get_mut(&segment)?,
            Value::Array(items) => {
                let index = index(&segment, items.len()).ok()?;
                items.get_mut(index)?
            }
            _ => return None,
        };
    }
    match container {
        Value::Object(_) | Value::Array(_) => Some(Target { container, key: unescape(key) }),
        _ => None,
    }
}

/// The errors are upstream's texts.
impl<'a> Target<'a> {
    fn member(self) -> Result<Option<&'a mut Value>, String> {
        match self.container {
            Value::Object(fields) => Ok(fields.get_mut(&self.key)),
            Value::Array(items) => {
                let index = index(&self.key, items.len())?;
                Ok(items.get_mut(index))
            }
            _ => Ok(None),
        }
    }

    fn insert(self, value: Value) -> Result<(), String> {
        match self.container {
            Value::Object(fields) => drop(fields.insert(self.key, value)),
            Value::Array(items) if self.key == "-" => items.push(value),
            Value::Array(items) => {
                let index = index(&self.key, items.len() + 1)?;
                items.insert(index, value);
            }
            _ => {}
        }
        Ok(())
    }

    /// A member that an object does not have comes into being.
    fn replace(self, value: Value) -> Result<(), String> {
        match self.container {
            Value::Object(fields) => drop(fields.insert(self.key, value)),
            Value::Array(items) => {
                let index = index(&self.key, items.len())?;
                items[index] = value;
            }
            _ => {}
        }
        Ok(())
    }

    fn remove(self) -> Result<Value, String> {
        match self.container {
            Value::Object(fields) => fields
                .remove(&self.key)
                .ok_or_else(|| format!("Unable to remove nonexistent key: {}: missing value", self.key)),
            Value::Array(items) => Ok(items.remove(index(&self.key, items.len())?)),
            _ => Ok(Value::Null),
        }
    }
}

/// An index below `len`; negative ones count from the end.
fn index(key: &str, len: usize) -> Result<usize, String> {
    let Ok(index) = key.parse::<i64>() else {
        return Err(format!("value was not a proper array index: '{key}'"));
    };
    let place = if index < 0 {
        usize::try_from(index.unsigned_abs()).ok().and_then(|back| len.checked_sub(back))
    } else {
        usize::try_from(index).ok().filter(|index| *index < len)
    };
    place.ok_or_else(|| format!("Unable to access invalid index: {index}: invalid index referenced"))
}

fn unescape(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

fn segments(path: &str) -> usize {
    path.matches('/').count()
}

fn check_depth(path: &str, value: &Value, budget: &mut usize) -> Result<()> {
    let room = MAX_DEPTH.saturating_sub(segments(path));
    if fits(value, room, budget) { Ok(()) } else { fails("the object would become too deep") }
}

/// Whether a value is at most `room` levels deep, looking at no more than `budget` values.
fn fits(value: &Value, room: usize, budget: &mut usize) -> bool {
    if *budget == 0 {
        return false;
    }
    *budget -= 1;
    match value {
        Value::Array(items) => room > 0 && items.iter().all(|item| fits(item, room - 1, budget)),
        Value::Object(fields) => room > 0 && fields.values().all(|field| fits(field, room - 1, budget)),
        _ => true,
    }
}

fn encoded_len(value: &Value) -> Result<usize> {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => Ok(count.0),
        Err(error) => fails(error.to_string()),
    }
}
