use std::collections::{BTreeMap, BTreeSet};

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Tag};
use serde_json::{Map, Value};

use super::resolve::{Scalar, resolve};
use crate::{
    DecodeError, go,
    json::{Limits, number},
};

/// What anchors and aliases may cost in memory, about. A body is at most 3 MiB, so only a document made
/// to explode comes near.
const ALIAS_BUDGET: usize = 32 * 1024 * 1024;
/// What a value costs beyond its text, about.
const NODE_COST: usize = 64;

/// A key as the document has it: yaml v2 tells `1` and `"1"` apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// The key in JSON.
    name: String,
    /// How Go prints it.
    shown: String,
}

/// A finished value with what it costs to copy.
#[derive(Clone)]
struct Node {
    value: Value,
    cost: usize,
    depth: usize,
}

/// A container that is being read.
struct Frame {
    container: Container,
    anchor: usize,
    cost: usize,
    depth: usize,
}

enum Container {
    Sequence(Vec<Value>),
    Mapping { members: Map<String, Value>, keys: BTreeSet<Key>, pending: Pending },
}

/// What a mapping waits for.
enum Pending {
    Key,
    Value(Key),
    /// The value of `<<`.
    Merge,
}

/// Reads the first document and which keys were repeated.
pub(super) fn document(body: &[u8], limits: Limits) -> Result<(Value, Vec<String>), DecodeError> {
    let text = std::str::from_utf8(body).map_err(|_| yaml("invalid UTF-8"))?;
    let options = granit_parser::options! {
        flow_nesting_limit: limits.max_depth,
        block_nesting_limit: limits.max_depth,
        emit_comments: false,
    };
    let mut reader = Reader {
        max_depth: limits.max_depth,
        frames: Vec::new(),
        anchors: BTreeMap::new(),
        spent: 0,
        repeated: Vec::new(),
        root: None,
    };
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| syntax(&error))?;
        if matches!(event, Event::DocumentEnd) {
            break;
        }
        reader.event(event, span.start.line())?;
    }
    Ok((reader.root.unwrap_or(Value::Null), reader.repeated))
}

fn yaml(text: impl std::fmt::Display) -> DecodeError {
    DecodeError::Yaml(format!("yaml: {text}"))
}

fn syntax(error: &ScanError) -> DecodeError {
    yaml(format_args!("line {}: {}", error.marker().line(), error.info()))
}

struct Reader {
    max_depth: usize,
    frames: Vec<Frame>,
    anchors: BTreeMap<usize, Node>,
    spent: usize,
    repeated: Vec<String>,
    root: Option<Value>,
}

impl Reader {
    fn event(&mut self, event: Event<'_>, line: usize) -> Result<(), DecodeError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain;
                let scalar = scalar(&text, plain, tag.as_deref())?;
                self.scalar(&text, scalar, anchor, line)
            }
            Event::SequenceStart(_, anchor, _) => self.open(Container::Sequence(Vec::new()), anchor),
            Event::MappingStart(_, anchor, _) => {
                let (members, keys) = (Map::new(), BTreeSet::new());
                self.open(Container::Mapping { members, keys, pending: Pending::Key }, anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(line),
            Event::Alias(anchor) => self.alias(anchor, line),
            _ => Ok(()),
        }
    }

    fn scalar(&mut self, text: &str, scalar: Scalar, anchor: usize, line: usize) -> Result<(), DecodeError> {
        if let Some(pending) = self.pending_key() {
            // Merging looks at the spelling; a quoted `<<` was resolved to text before.
            *pending =
                if scalar == Scalar::Merge { Pending::Merge } else { Pending::Value(key(text, &scalar)?) };
            return if anchor == 0 { Ok(()) } else { self.keep(anchor, leaf(text, &scalar)?) };
        }
        self.finish(leaf(text, &scalar)?, anchor, line)
    }

    /// Remembers a value for aliases.
    fn keep(&mut self, anchor: usize, node: Node) -> Result<(), DecodeError> {
        self.spend(node.cost)?;
        self.anchors.insert(anchor, node);
        Ok(())
    }

    fn pending_key(&mut self) -> Option<&mut Pending> {
        match &mut self.frames.last_mut()?.container {
            Container::Mapping { pending: pending @ Pending::Key, .. } => Some(pending),
            _ => None,
        }
    }

    fn open(&mut self, container: Container, anchor: usize) -> Result<(), DecodeError> {
        if self.pending_key().is_some() {
            return Err(yaml("invalid map key: a map or a list"));
        }
        if self.frames.len() >= self.max_depth {
            return Err(yaml(format_args!("exceeded max depth of {}", self.max_depth)));
        }
        self.frames.push(Frame { container, anchor, cost: NODE_COST, depth: 1 });
        Ok(())
    }

    fn close(&mut self, line: usize) -> Result<(), DecodeError> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        let value = match frame.container {
            Container::Sequence(items) => Value::Array(items),
            Container::Mapping { members, .. } => Value::Object(members),
        };
        self.finish(Node { value, cost: frame.cost, depth: frame.depth }, frame.anchor, line)
    }

    fn alias(&mut self, anchor: usize, line: usize) -> Result<(), DecodeError> {
        let Some(node) = self.anchors.get(&anchor) else {
            return Err(yaml("anchor value contains itself"));
        };
        let (cost, depth) = (node.cost, node.depth);
        if self.frames.len() + depth > self.max_depth {
            return Err(yaml(format_args!("exceeded max depth of {}", self.max_depth)));
        }
        self.spend(cost)?;
        let node = self.anchors[&anchor].clone();
        if let Some(pending) = self.pending_key() {
            let text = node.value.as_str().ok_or_else(|| yaml("invalid map key: an alias"))?;
            *pending = Pending::Value(key(text, &Scalar::Text)?);
            return Ok(());
        }
        self.finish(node, 0, line)
    }

    fn spend(&mut self, cost: usize) -> Result<(), DecodeError> {
        self.spent += cost;
        if self.spent > ALIAS_BUDGET { Err(yaml("document contains excessive aliasing")) } else { Ok(()) }
    }

    /// Puts a value where it belongs.
    fn finish(&mut self, node: Node, anchor: usize, line: usize) -> Result<(), DecodeError> {
        if anchor != 0 {
            self.keep(anchor, node.clone())?;
        }
        let Some(frame) = self.frames.last_mut() else {
            self.root.get_or_insert(node.value);
            return Ok(());
        };
        frame.cost += node.cost;
        frame.depth = frame.depth.max(node.depth + 1);
        match &mut frame.container {
            Container::Sequence(items) => items.push(node.value),
            Container::Mapping { members, keys, pending } => match std::mem::replace(pending, Pending::Key) {
                Pending::Merge => merge(members, keys, node.value, line, &mut self.repeated)?,
                Pending::Value(key) => {
                    frame.cost += NODE_COST + key.name.len();
                    set(members, keys, key, node.value, line, &mut self.repeated);
                }
                Pending::Key => {}
            },
        }
        Ok(())
    }
}

fn set(
    members: &mut Map<String, Value>,
    keys: &mut BTreeSet<Key>,
    key: Key,
    value: Value,
    line: usize,
    repeated: &mut Vec<String>,
) {
    members.insert(key.name.clone(), value);
    if keys.contains(&key) {
        if repeated.len() < 100 {
            repeated.push(format!("line {line}: key {} already set in map", key.shown));
        }
    } else {
        keys.insert(key);
    }
}

/// Puts the members of a mapping, or of several with the first taking precedence, into another.
fn merge(
    members: &mut Map<String, Value>,
    keys: &mut BTreeSet<Key>,
    value: Value,
    line: usize,
    repeated: &mut Vec<String>,
) -> Result<(), DecodeError> {
    let sources = match value {
        Value::Object(_) => vec![value],
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    if sources.is_empty() || !sources.iter().all(Value::is_object) {
        return Err(yaml("map merge requires map or sequence of maps as the value"));
    }
    for source in sources.into_iter().rev() {
        let Value::Object(source) = source else { continue };
        for (name, value) in source {
            let key = Key { shown: go::quote(&name), name };
            set(members, keys, key, value, line, repeated);
        }
    }
    Ok(())
}

/// What a scalar is by its style and tag.
fn scalar(text: &str, plain: bool, tag: Option<&Tag>) -> Result<Scalar, DecodeError> {
    let Some(tag) = tag else {
        return Ok(if plain { resolve(text) } else { Scalar::Text });
    };
    let core = tag.handle() == "tag:yaml.org,2002:";
    let resolved = resolve(text);
    match (tag.suffix(), &resolved) {
        // Tags of applications mean nothing here.
        _ if !core => Ok(Scalar::Text),
        ("binary", _) => Err(yaml("!!binary is not supported")),
        ("float", Scalar::Int(_) | Scalar::Uint(_)) => {
            Ok(text.replace('_', "").parse().map_or(resolved, Scalar::Float))
        }
        ("null", Scalar::Null)
        | ("bool", Scalar::Bool(_))
        | ("int", Scalar::Int(_) | Scalar::Uint(_))
        | ("float", Scalar::Float(_))
        | ("merge", Scalar::Merge) => Ok(resolved),
        ("null" | "bool" | "int" | "float", _) => {
            let found = name(&resolved);
            Err(yaml(format_args!("cannot decode !!{found} `{text}` as a !!{}", tag.suffix())))
        }
        // `!!str` and `!!timestamp`, which is text too.
        _ => Ok(Scalar::Text),
    }
}

fn name(scalar: &Scalar) -> &'static str {
    match scalar {
        Scalar::Null => "null",
        Scalar::Bool(_) => "bool",
        Scalar::Int(_) | Scalar::Uint(_) => "int",
        Scalar::Float(_) => "float",
        Scalar::Timestamp => "timestamp",
        Scalar::Merge => "merge",
        Scalar::Text => "str",
    }
}

fn key(text: &str, scalar: &Scalar) -> Result<Key, DecodeError> {
    let bare = |name: String| Key { shown: name.clone(), name };
    Ok(match scalar {
        Scalar::Text | Scalar::Timestamp | Scalar::Merge => {
            Key { name: text.to_owned(), shown: go::quote(text) }
        }
        Scalar::Bool(bool) => bare(bool.to_string()),
        Scalar::Int(integer) => bare(integer.to_string()),
        Scalar::Float(float) if float.is_nan() => bare(String::from(".nan")),
        Scalar::Float(float) => bare(go::yaml_float_key(*float)),
        Scalar::Uint(_) => return Err(unsupported_key("uint64")),
        Scalar::Null => return Err(unsupported_key("null")),
    })
}

fn unsupported_key(kind: &str) -> DecodeError {
    DecodeError::Yaml(format!("unsupported map key of type: {kind}"))
}

fn leaf(text: &str, scalar: &Scalar) -> Result<Node, DecodeError> {
    Ok(Node { value: json(text, scalar)?, cost: NODE_COST + text.len(), depth: 0 })
}

/// The value in JSON.
fn json(text: &str, scalar: &Scalar) -> Result<Value, DecodeError> {
    Ok(match scalar {
        Scalar::Null => Value::Null,
        Scalar::Bool(bool) => Value::Bool(*bool),
        Scalar::Int(integer) => Value::from(*integer),
        Scalar::Uint(integer) => Value::from(*integer),
        Scalar::Float(float) => {
            let spelled = float.is_finite().then(|| go::json_float(*float));
            let number = spelled.as_deref().and_then(number);
            number
                .ok_or_else(|| DecodeError::Yaml(format!("json: unsupported value: {}", infinite(*float))))?
        }
        Scalar::Text | Scalar::Timestamp | Scalar::Merge => Value::String(text.to_owned()),
    })
}

/// How Go prints a float that is not finite.
fn infinite(float: f64) -> &'static str {
    match (float.is_nan(), float > 0.0) {
        (true, _) => "NaN",
        (false, true) => "+Inf",
        (false, false) => "-Inf",
    }
}
