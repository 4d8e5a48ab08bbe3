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
}

impl JsonPatchError {
    /// What the server answers.
    pub fn answer(&self) -> Answer {
        match self {
            Self::Malformed(_) => Answer::BadRequest,
            Self::TooManyOperations(_) => Answer::RequestEntityTooLarge,
            Self::DoesNotApply(_) => Answer::Invalid,
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
        self.path.as_deref().map_or_else(|| fails(format!("{} operation has no path", self.kind)), Ok)
    }

    fn from(&self) -> Result<&str> {
        self.from.as_deref().map_or_else(|| fails(format!("{} operation has no from", self.kind)), Ok)
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
            "remove" => self.take(operation.path()?).map(drop),
            "replace" => self.replace(operation.path()?, &operation.value),
            "move" => self.relocate(operation.from()?, operation.path()?),
            "copy" => self.copy(operation.from()?, operation.path()?),
            "test" => self.test(operation.path()?, &operation.value),
            other => fails(format!("unexpected kind: {other}")),
        }
    }

    fn add(&mut self, path: &str, value: Value) -> Result<()> {
        let mut unlimited = usize::MAX;
        check_depth(path, &value, &mut unlimited)?;
        self.insert(path, value)
    }

    fn insert(&mut self, path: &str, value: Value) -> Result<()> {
        let (container, key) = find(&mut self.object, path)?;
        match container {
            Value::Object(fields) => {
                fields.insert(key, value);
            }
            Value::Array(items) if key == "-" => items.push(value),
            Value::Array(items) => {
                let index = index(&key, items.len() + 1)?;
                items.insert(index, value);
            }
            _ => return missing(path),
        }
        Ok(())
    }

    fn take(&mut self, path: &str) -> Result<Value> {
        let (container, key) = find(&mut self.object, path)?;
        match container {
            Value::Object(fields) => fields.remove(&key).map_or_else(|| missing(path), Ok),
            Value::Array(items) => Ok(items.remove(index(&key, items.len())?)),
            _ => missing(path),
        }
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
        let (container, key) = find(&mut self.object, path)?;
        match container {
            Value::Object(fields) => {
                fields.insert(key, value.clone());
            }
            Value::Array(items) => {
                let index = index(&key, items.len())?;
                items[index] = value.clone();
            }
            _ => return missing(path),
        }
        Ok(())
    }

    fn relocate(&mut self, from: &str, path: &str) -> Result<()> {
        let value = self.take(from)?;
        if segments(path) > segments(from) {
            let mut left = MAX_MOVED_VALUES - self.moved;
            check_depth(path, &value, &mut left)?;
            self.moved = MAX_MOVED_VALUES - left;
        }
        self.insert(path, value)
    }

    fn copy(&mut self, from: &str, path: &str) -> Result<()> {
        let value = self.get(from)?;
        self.copied += value.as_ref().map_or(Ok(0), encoded_len)?;
        if self.copied > MAX_COPY_BYTES {
            let copied = self.copied;
            return fails(format!("copies add {copied} bytes, exceeding the limit {MAX_COPY_BYTES}"));
        }
        self.add(path, value.unwrap_or(Value::Null))
    }

    fn test(&mut self, path: &str, expected: &Value) -> Result<()> {
        let equal = if path.is_empty() {
            self.object == *expected
        } else {
            let (container, key) = find(&mut self.object, path)?;
            member(container, &key)?.unwrap_or(&Value::Null) == expected
        };
        if equal { Ok(()) } else { fails(format!("testing value {path} failed")) }
    }

    fn get(&mut self, path: &str) -> Result<Option<Value>> {
        let (container, key) = find(&mut self.object, path)?;
        Ok(member(container, &key)?.cloned())
    }
}

fn missing<T>(path: &str) -> Result<T> {
    fails(format!("doc is missing path: {path}"))
}

/// The container a path ends in, and the last segment.
fn find<'a>(object: &'a mut Value, path: &str) -> Result<(&'a mut Value, String)> {
    let Some((_, path)) = path.split_once('/') else { return missing(path) };
    let (parents, key) = path.rsplit_once('/').map_or((None, path), |(parents, key)| (Some(parents), key));
    let mut container = object;
    for segment in parents.into_iter().flat_map(|parents| parents.split('/')) {
        let segment = unescape(segment);
        let next = match container {
            Value::Object(fields) => fields.get_mut(&segment),
            Value::Array(items) => {
                let index = index(&segment, items.len())?;
                items.get_mut(index)
            }
            _ => None,
        };
        container = match next {
            Some(next) => next,
            None => return missing(path),
        };
    }
    Ok((container, unescape(key)))
}

fn member<'a>(container: &'a Value, key: &str) -> Result<Option<&'a Value>> {
    match container {
        Value::Object(fields) => Ok(fields.get(key)),
        Value::Array(items) => Ok(items.get(index(key, items.len())?)),
        _ => missing(key),
    }
}

/// An index below `len`; negative ones count from the end.
fn index(key: &str, len: usize) -> Result<usize> {
    let Ok(index) = key.parse::<i64>() else { return fails(format!("not an array index: {key:?}")) };
    let place = if index < 0 {
        usize::try_from(index.unsigned_abs()).ok().and_then(|back| len.checked_sub(back))
    } else {
        usize::try_from(index).ok().filter(|index| *index < len)
    };
    place.map_or_else(|| fails(format!("unable to access invalid index: {index}")), Ok)
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
