use std::{io::Write as _, slice};

use serde_json::{Map, Number, Value, map};

use crate::go;

/// Writes a value compactly, without a newline, as Go's `encoding/json` does: sorted keys, `<`, `>` and
/// `&` escaped.
pub fn encode(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encode_into(value, &mut out);
    out
}

/// [`encode`] at the end of a buffer.
pub fn encode_into(value: &Value, out: &mut Vec<u8>) {
    Writer { out, pretty: false, frames: Vec::new() }.document(value);
}

/// Writes a response body: compact with a newline at the end, or indented by two spaces without one.
pub fn encode_body(value: &Value, pretty: bool, out: &mut Vec<u8>) {
    Writer { out, pretty, frames: Vec::new() }.document(value);
    if !pretty {
        out.push(b'\n');
    }
}

/// What an object says first, in upstream's order.
const LEADING: [&str; 3] = ["kind", "apiVersion", "metadata"];

/// Writes an object with `kind`, `apiVersion` and `metadata` first, as upstream's types do, and the rest
/// sorted. Equal objects give equal bytes, and [`crate::Splice::after`] finds its place in them at once.
pub fn encode_object(object: &Map<String, Value>, out: &mut Vec<u8>) {
    let leading = LEADING.iter().filter_map(|name| Some((*name, object.get(*name)?)));
    let rest = object.iter().filter(|(name, _)| !LEADING.contains(&name.as_str()));
    out.push(b'{');
    for (n, (name, value)) in leading.chain(rest.map(|(name, value)| (name.as_str(), value))).enumerate() {
        if n > 0 {
            out.push(b',');
        }
        write_string(name, out);
        out.push(b':');
        encode_into(value, out);
    }
    out.push(b'}');
}

/// A container that is being written.
enum Frame<'a> {
    Object(map::Iter<'a>),
    Array(slice::Iter<'a, Value>),
}

/// Keeps its own stack: values that were put together in memory may be of any depth.
struct Writer<'a, 'o> {
    out: &'o mut Vec<u8>,
    pretty: bool,
    frames: Vec<Frame<'a>>,
}

impl<'a> Writer<'a, '_> {
    fn document(&mut self, value: &'a Value) {
        let mut first = self.begin(value);
        while let Some(frame) = self.frames.last_mut() {
            let (key, value) = match frame {
                Frame::Object(members) => members.next().map(|(key, value)| (Some(key), value)),
                Frame::Array(items) => items.next().map(|item| (None, item)),
            }
            .unzip();
            let Some(value) = value else {
                self.close();
                first = false;
                continue;
            };
            if !first {
                self.out.push(b',');
            }
            self.new_line();
            if let Some(key) = key.flatten() {
                write_string(key, self.out);
                self.out.extend_from_slice(if self.pretty { b": " } else { b":" });
            }
            first = self.begin(value);
        }
    }

    /// Writes a scalar or an empty container, or opens a container; true if it did that.
    fn begin(&mut self, value: &'a Value) -> bool {
        match value {
            Value::Null => self.out.extend_from_slice(b"null"),
            Value::Bool(true) => self.out.extend_from_slice(b"true"),
            Value::Bool(false) => self.out.extend_from_slice(b"false"),
            Value::Number(number) => write_number(number, self.out),
            Value::String(text) => write_string(text, self.out),
            Value::Array(items) if items.is_empty() => self.out.extend_from_slice(b"[]"),
            Value::Object(members) if members.is_empty() => self.out.extend_from_slice(b"{}"),
            Value::Array(items) => {
                self.out.push(b'[');
                self.frames.push(Frame::Array(items.iter()));
                return true;
            }
            Value::Object(members) => {
                self.out.push(b'{');
                self.frames.push(Frame::Object(members.iter()));
                return true;
            }
        }
        false
    }

    fn close(&mut self) {
        let bracket = match self.frames.pop() {
            Some(Frame::Object(_)) => b'}',
            Some(Frame::Array(_)) | None => b']',
        };
        self.new_line();
        self.out.push(bracket);
    }

    fn new_line(&mut self) {
        if self.pretty {
            self.out.push(b'\n');
            self.out.resize(self.out.len() + 2 * self.frames.len(), b' ');
        }
    }
}

fn write_number(number: &Number, out: &mut Vec<u8>) {
    if let Some(integer) = number.as_i64() {
        write_integer(integer.is_negative(), integer.unsigned_abs(), out);
    } else if let Some(integer) = number.as_u64() {
        write_integer(false, integer, out);
    } else {
        out.extend_from_slice(go::json_float(number.as_f64().unwrap_or(0.0)).as_bytes());
    }
}

pub(crate) fn write_integer(negative: bool, mut rest: u64, out: &mut Vec<u8>) {
    // Twenty digits hold any 64-bit number.
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if negative {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Writes a string literal with Go's choice of escapes.
pub(crate) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut written = 0;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if !ESCAPED[usize::from(*byte)] {
            at += 1;
            continue;
        }
        // The two separators that end a line in JavaScript are the only longer characters escaped.
        let separator = match bytes.get(at..at + 3) {
            Some([0xe2, 0x80, 0xa8]) => Some("\\u2028"),
            Some([0xe2, 0x80, 0xa9]) => Some("\\u2029"),
            _ => None,
        };
        match (byte, separator) {
            (0xe2, None) => at += 1,
            (0xe2, Some(escape)) => {
                out.extend_from_slice(&bytes[written..at]);
                out.extend_from_slice(escape.as_bytes());
                at += 3;
                written = at;
            }
            _ => {
                out.extend_from_slice(&bytes[written..at]);
                write_escape(*byte, out);
                at += 1;
                written = at;
            }
        }
    }
    out.extend_from_slice(&bytes[written..]);
    out.push(b'"');
}

/// The bytes that may need an escape.
const ESCAPED: [bool; 256] = {
    let mut escaped = [false; 256];
    let mut control = 0;
    while control < 0x20 {
        escaped[control] = true;
        control += 1;
    }
    escaped[b'"' as usize] = true;
    escaped[b'\\' as usize] = true;
    escaped[b'<' as usize] = true;
    escaped[b'>' as usize] = true;
    escaped[b'&' as usize] = true;
    escaped[0xe2] = true;
    escaped
};

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            write!(out, "\\u{byte:04x}").expect("a vector takes every write");
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}
