use serde_json::{Map, Value};

use super::{
    Options,
    literal::{number, unquote},
};
use crate::{
    DecodeError,
    strict::{Field, Violation, Violations},
};

/// A document that is JSON, whatever it holds.
pub(super) struct Parsed {
    pub(super) value: Value,
    pub(super) violations: Violations,
    /// The first number that no float can hold. It is no reason to stop: a syntax error further on is
    /// what upstream reports then.
    pub(super) number: Option<DecodeError>,
}

/// How deep upstream reads. What is dropped may be that deep: nobody walks it afterwards.
const MAX_DROPPED_DEPTH: usize = 10_000;

/// A container that is being read.
enum Frame<'a> {
    Object {
        members: Map<String, Value>,
        key: String,
        fields: Field<'a>,
        field: Field<'a>,
    },
    Array {
        items: Vec<Value>,
        element: Field<'a>,
    },
    /// One in something that is dropped: it has to be JSON, and is not kept.
    Dropped {
        is_object: bool,
    },
}

/// What comes after a value.
enum Next {
    Value,
    Closed(Value),
    Document(Value),
}

/// Reads one document with a stack of its own, and names errors as Go's scanner does.
pub(super) struct Parser<'a> {
    body: &'a [u8],
    at: usize,
    max_depth: usize,
    /// Whether a document that is no object is of no use.
    wants_object: bool,
    collects: bool,
    root: Field<'a>,
    frames: Vec<Frame<'a>>,
    violations: Violations,
    number: Option<DecodeError>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(body: &'a [u8], options: &Options<'a>, wants_object: bool) -> Self {
        Self {
            body,
            at: 0,
            max_depth: options.limits.max_depth,
            wants_object,
            collects: options.collects(),
            root: options.root(),
            frames: Vec::new(),
            violations: Violations::default(),
            number: None,
        }
    }

    pub(super) fn document(mut self) -> Result<Parsed, DecodeError> {
        loop {
            let Some(mut value) = self.value()? else { continue };
            loop {
                match self.after(value)? {
                    Next::Value => break,
                    Next::Closed(container) => value = container,
                    Next::Document(value) => {
                        return Ok(Parsed { value, violations: self.violations, number: self.number });
                    }
                }
            }
        }
    }

    /// Reads a scalar or an empty container, or opens a container and stops before its first value.
    fn value(&mut self) -> Result<Option<Value>, DecodeError> {
        self.skip_space();
        let scalar = match self.peek().ok_or(DecodeError::UnexpectedEnd)? {
            b'{' => return self.open_object(),
            b'[' => return self.open_array(),
            b'"' => Value::String(self.string()?),
            b'-' | b'0'..=b'9' => self.number()?,
            b't' => self.word("true", Value::Bool(true))?,
            b'f' => self.word("false", Value::Bool(false))?,
            b'n' => self.word("null", Value::Null)?,
            _ => return Err(self.unexpected("looking for beginning of value")),
        };
        Ok(Some(scalar))
    }

    fn open_object(&mut self) -> Result<Option<Value>, DecodeError> {
        let fields = self.enter(false)?;
        self.skip_space();
        if self.eat(b'}') {
            return Ok(Some(Value::Object(Map::new())));
        }
        self.frames.push(match fields {
            Some(fields) => {
                let (members, key) = (Map::new(), String::new());
                Frame::Object { members, key, fields, field: Field::Any }
            }
            None => Frame::Dropped { is_object: true },
        });
        self.key()?;
        Ok(None)
    }

    fn open_array(&mut self) -> Result<Option<Value>, DecodeError> {
        let element = self.enter(self.wants_object)?.map(|field| match field {
            Field::Of(fields, place) => fields.items(place),
            other => other,
        });
        self.skip_space();
        if self.eat(b']') {
            return Ok(Some(Value::Array(Vec::new())));
        }
        self.frames.push(match element {
            Some(element) => Frame::Array { items: Vec::new(), element },
            None => Frame::Dropped { is_object: false },
        });
        Ok(None)
    }

    /// Steps over an opening bracket and says what is known about what it opens; `None` if it is dropped, and so not
    /// looked into. `useless` says whether it would be as the whole document.
    fn enter(&mut self, useless: bool) -> Result<Option<Field<'a>>, DecodeError> {
        let field = match self.frames.last() {
            None => Some(self.root).filter(|_| !useless),
            Some(Frame::Object { field, .. }) => Some(*field),
            Some(Frame::Array { element, .. }) => Some(*element),
            Some(Frame::Dropped { .. }) => None,
        };
        let field = field.filter(|field| !matches!(field, Field::Unknown));
        let most = if field.is_some() { self.max_depth } else { MAX_DROPPED_DEPTH };
        if self.frames.len() >= most {
            return Err(self.unexpected("exceeded max depth"));
        }
        self.at += 1;
        Ok(field)
    }

    /// Reads a key and its colon.
    fn key(&mut self) -> Result<(), DecodeError> {
        self.skip_space();
        if self.peek().ok_or(DecodeError::UnexpectedEnd)? != b'"' {
            return Err(self.unexpected("looking for beginning of object key string"));
        }
        let name = self.string()?;
        self.skip_space();
        if self.peek().ok_or(DecodeError::UnexpectedEnd)? != b':' {
            return Err(self.unexpected("after object key"));
        }
        self.at += 1;
        self.begin_member(name);
        Ok(())
    }

    fn begin_member(&mut self, name: String) {
        let Some(Frame::Object { members, key, fields, field }) = self.frames.last_mut() else { return };
        *field = match *fields {
            Field::Of(fields, place) => fields.member(place, &name),
            other => other,
        };
        let unknown = matches!(field, Field::Unknown);
        let opaque = matches!(fields, Field::Opaque);
        let duplicate = self.collects && !unknown && !opaque && members.contains_key(&name);
        *key = name;
        if self.collects && unknown {
            self.violations.add(|| Violation::Unknown(path(&self.frames)));
        } else if duplicate {
            self.violations.add(|| Violation::Duplicate(path(&self.frames)));
        }
    }

    /// Puts a value where it belongs and reads what follows it.
    fn after(&mut self, value: Value) -> Result<Next, DecodeError> {
        self.skip_space();
        let byte = self.peek();
        match self.frames.last_mut() {
            None if byte.is_none() => return Ok(Next::Document(value)),
            None => return Err(self.unexpected("after top-level value")),
            Some(Frame::Array { items, .. }) => items.push(value),
            Some(Frame::Object { field: Field::Unknown, .. } | Frame::Dropped { .. }) => {}
            Some(Frame::Object { members, key, .. }) => {
                members.insert(std::mem::take(key), value);
            }
        }
        self.separator(byte.ok_or(DecodeError::UnexpectedEnd)?)
    }

    fn separator(&mut self, byte: u8) -> Result<Next, DecodeError> {
        let in_object =
            matches!(self.frames.last(), Some(Frame::Object { .. } | Frame::Dropped { is_object: true }));
        let (close, context) =
            if in_object { (b'}', "after object key:value pair") } else { (b']', "after array element") };
        if byte != b',' && byte != close {
            return Err(self.unexpected(context));
        }
        self.at += 1;
        if byte == close {
            return Ok(match self.frames.pop() {
                Some(Frame::Object { members, .. }) => Next::Closed(Value::Object(members)),
                Some(Frame::Array { items, .. }) => Next::Closed(Value::Array(items)),
                Some(Frame::Dropped { is_object: true }) => Next::Closed(Value::Object(Map::new())),
                Some(Frame::Dropped { is_object: false }) => Next::Closed(Value::Array(Vec::new())),
                None => Next::Value,
            });
        }
        if in_object {
            self.key()?;
        }
        Ok(Next::Value)
    }

    fn string(&mut self) -> Result<String, DecodeError> {
        self.at += 1;
        let start = self.at;
        let mut has_escapes = false;
        loop {
            let rest = &self.body[self.at..];
            let run = &rest[..memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len())];
            // Looking at all bytes without stopping is what the compiler can do many at a time.
            if run.iter().fold(false, |found, byte| found | (*byte < 0x20)) {
                self.at += run.iter().position(|byte| *byte < 0x20).unwrap_or(0);
                return Err(self.unexpected("in string literal"));
            }
            self.at += run.len();
            if self.peek().ok_or(DecodeError::UnexpectedEnd)? == b'"' {
                break;
            }
            has_escapes = true;
            self.escape()?;
        }
        let raw = &self.body[start..self.at];
        self.at += 1;
        Ok(unquote(raw, has_escapes))
    }

    fn escape(&mut self) -> Result<(), DecodeError> {
        self.at += 1;
        match self.peek() {
            Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(self.unexpected("in \\u hexadecimal character escape"));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.unexpected("in string escape code")),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Value, DecodeError> {
        let start = self.at;
        self.eat(b'-');
        if !self.eat(b'0') {
            self.digits("in numeric literal")?;
        }
        if self.eat(b'.') {
            self.digits("after decimal point in numeric literal")?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            if !self.eat(b'+') {
                self.eat(b'-');
            }
            self.digits("in exponent of numeric literal")?;
        }
        let literal = String::from_utf8_lossy(&self.body[start..self.at]);
        Ok(number(&literal).unwrap_or_else(|| {
            self.number.get_or_insert_with(|| DecodeError::Number { literal: literal.into_owned() });
            Value::Null
        }))
    }

    fn digits(&mut self, context: &'static str) -> Result<(), DecodeError> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err(self.unexpected(context));
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn word(&mut self, word: &'static str, value: Value) -> Result<Value, DecodeError> {
        for (n, expected) in word.bytes().enumerate() {
            if self.peek() != Some(expected) {
                return Err(self.unexpected(expecting(word, n)));
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn peek(&self) -> Option<u8> {
        self.body.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// The error about the current byte. At the end of the input Go's scanner is fed a space.
    fn unexpected(&self, context: &'static str) -> DecodeError {
        DecodeError::Syntax { byte: self.peek().unwrap_or(b' '), context, offset: self.at }
    }
}

fn expecting(word: &str, n: usize) -> &'static str {
    match (word, n) {
        ("true", 1) => "in literal true (expecting 'r')",
        ("true", 2) => "in literal true (expecting 'u')",
        ("true", _) => "in literal true (expecting 'e')",
        ("false", 1) => "in literal false (expecting 'a')",
        ("false", 2) => "in literal false (expecting 'l')",
        ("false", 3) => "in literal false (expecting 's')",
        ("false", _) => "in literal false (expecting 'e')",
        (_, 1) => "in literal null (expecting 'u')",
        (_, _) => "in literal null (expecting 'l')",
    }
}

/// Where in the document the reader is: `spec.containers[0].name`.
fn path(frames: &[Frame<'_>]) -> String {
    let mut path = String::new();
    for frame in frames {
        match frame {
            Frame::Array { items, .. } => path.push_str(&format!("[{}]", items.len())),
            Frame::Object { key, .. } => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
            }
            // Nothing in it is told.
            Frame::Dropped { .. } => {}
        }
    }
    path
}
