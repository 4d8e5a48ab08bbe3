use serde_json::{Number, Value};

use super::{
    scalar::{Place, Style, is_printable, style},
    sort::sort,
};
use crate::{go, json::encode};

/// Where lines of text are broken, in characters.
const BEST_WIDTH: usize = 80;
const INDENT: usize = 2;
/// Longer keys are written on a line of their own.
const MAX_SIMPLE_KEY: usize = 128;

/// Writes a value as one YAML document, as upstream's serializer does.
pub fn encode_yaml(value: &Value, out: &mut Vec<u8>) {
    let mut emitter = Emitter::default();
    emitter.document(value);
    out.extend_from_slice(emitter.out.as_bytes());
}

/// A container that is being written.
enum Frame<'a> {
    Mapping { members: std::vec::IntoIter<(&'a String, &'a Value)>, indent: usize },
    Sequence { items: std::slice::Iter<'a, Value>, indent: usize },
}

/// Follows libyaml's emitter, whose layout comes from three facts: the column, whether there is white
/// space before it, and whether nothing but indentation is.
#[derive(Default)]
struct Emitter {
    out: String,
    column: usize,
    after_space: bool,
    in_indentation: bool,
}

impl Emitter {
    fn document(&mut self, value: &Value) {
        (self.after_space, self.in_indentation) = (true, true);
        let mut frames = Vec::new();
        self.node(value, None, false, &mut frames);
        while let Some(frame) = frames.last_mut() {
            match frame {
                Frame::Mapping { members, indent } => {
                    let (indent, next) = (*indent, members.next());
                    match next {
                        Some((key, value)) => {
                            self.key(key, indent);
                            self.node(value, Some(indent), true, &mut frames);
                        }
                        None => drop(frames.pop()),
                    }
                }
                Frame::Sequence { items, indent } => {
                    let (indent, next) = (*indent, items.next());
                    match next {
                        Some(item) => {
                            self.start_line(indent);
                            self.indicator("-", true);
                            self.node(item, Some(indent), false, &mut frames);
                        }
                        None => drop(frames.pop()),
                    }
                }
            }
        }
        self.start_line(0);
    }

    /// Writes a scalar or an empty container, or begins a container. `indent` is that of the container
    /// around.
    fn node<'a>(
        &mut self,
        value: &'a Value,
        indent: Option<usize>,
        in_mapping: bool,
        frames: &mut Vec<Frame<'a>>,
    ) {
        let inner = indent.map_or(0, |indent| indent + INDENT);
        match value {
            Value::Null => self.plain("null", inner),
            Value::Bool(bool) => self.plain(if *bool { "true" } else { "false" }, inner),
            Value::Number(number) => self.plain(&number_text(number), inner),
            Value::String(text) => {
                self.string(text, Place::Elsewhere, indent.map_or(INDENT, |indent| indent + INDENT));
            }
            Value::Array(items) if items.is_empty() => self.indicator("[]", false),
            Value::Object(members) if members.is_empty() => self.indicator("{}", false),
            Value::Array(items) => {
                // The dashes of a list below its key stand in the key's column.
                let aligned = in_mapping && !self.in_indentation;
                let indent = if aligned { indent.unwrap_or(0) } else { inner };
                frames.push(Frame::Sequence { items: items.iter(), indent });
            }
            Value::Object(members) => {
                let members = sort(members.iter().collect()).into_iter();
                frames.push(Frame::Mapping { members, indent: inner });
            }
        }
    }

    fn key(&mut self, key: &str, indent: usize) {
        self.start_line(indent);
        if key.len() <= MAX_SIMPLE_KEY && !key.contains('\n') {
            self.string(key, Place::SimpleKey, indent + INDENT);
            self.out.push(':');
            self.column += 1;
            (self.after_space, self.in_indentation) = (false, false);
        } else {
            self.indicator("?", true);
            self.string(key, Place::Elsewhere, indent + INDENT);
            self.start_line(indent);
            self.indicator(":", true);
        }
    }

    fn string(&mut self, text: &str, place: Place, indent: usize) {
        // Only a text that is not a key may be broken into lines.
        let wraps = place == Place::Elsewhere;
        match style(text, place) {
            Style::Plain if wraps => self.plain(text, indent),
            Style::Plain => self.indicator(text, false),
            Style::Single => self.single_quoted(text, wraps, indent),
            Style::Double => self.double_quoted(text, wraps, indent),
            Style::Literal => self.literal(text, indent),
        }
    }

    fn plain(&mut self, text: &str, indent: usize) {
        self.space_before();
        let mut characters = text.chars().peekable();
        let mut after_space = false;
        while let Some(c) = characters.next() {
            let lone_space = c == ' ' && !after_space && characters.peek() != Some(&' ');
            after_space = c == ' ';
            if lone_space && self.column > BEST_WIDTH {
                self.start_line(indent);
            } else {
                self.put(c);
            }
        }
        (self.after_space, self.in_indentation) = (false, false);
    }

    fn single_quoted(&mut self, text: &str, wraps: bool, indent: usize) {
        self.indicator("'", false);
        let mut characters = text.char_indices().peekable();
        let mut after_space = false;
        while let Some((at, c)) = characters.next() {
            let inside = at > 0 && characters.peek().is_some_and(|(_, next)| *next != ' ');
            let breakable = wraps && c == ' ' && !after_space && inside;
            after_space = c == ' ';
            if breakable && self.column > BEST_WIDTH {
                self.start_line(indent);
                continue;
            }
            if c == '\'' {
                self.put('\'');
            }
            self.put(c);
            self.in_indentation = false;
        }
        self.put('\'');
        (self.after_space, self.in_indentation) = (false, false);
    }

    fn double_quoted(&mut self, text: &str, wraps: bool, indent: usize) {
        self.indicator("\"", false);
        let mut characters = text.char_indices().peekable();
        let mut after_space = false;
        while let Some((at, c)) = characters.next() {
            let next = characters.peek().map(|(_, next)| *next);
            let breakable = wraps && c == ' ' && !after_space && at > 0 && next.is_some();
            after_space = c == ' ';
            if breakable && self.column > BEST_WIDTH {
                self.start_line(indent);
                if next == Some(' ') {
                    self.put('\\');
                }
            } else if c == '\n' || c == '"' || c == '\\' || !is_printable(c) {
                escape(c).chars().for_each(|c| self.put(c));
            } else {
                self.put(c);
            }
            self.in_indentation = false;
        }
        self.put('"');
        (self.after_space, self.in_indentation) = (false, false);
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.indicator("|", false);
        if text.starts_with([' ', '\n']) {
            self.put('2');
        }
        match text.strip_suffix('\n') {
            None => self.put('-'),
            Some(rest) if rest.is_empty() || rest.ends_with('\n') => self.put('+'),
            Some(_) => {}
        }
        self.end_line();
        for line in text.split_inclusive('\n') {
            let content = line.trim_end_matches('\n');
            if !content.is_empty() {
                self.out.extend(std::iter::repeat_n(' ', indent));
                self.out.push_str(content);
                self.column = indent + content.chars().count();
            }
            (self.after_space, self.in_indentation) = (true, false);
            if line.ends_with('\n') {
                self.end_line();
            }
        }
    }

    /// Goes to a column of a fresh line, or stays when the line has nothing but indentation so far.
    fn start_line(&mut self, indent: usize) {
        let beyond = self.column > indent || (self.column == indent && !self.after_space);
        if !self.in_indentation || beyond {
            self.end_line();
        }
        while self.column < indent {
            self.put(' ');
        }
        (self.after_space, self.in_indentation) = (true, true);
    }

    fn end_line(&mut self) {
        self.out.push('\n');
        self.column = 0;
        (self.after_space, self.in_indentation) = (true, true);
    }

    /// Writes a mark; after one that indents, the next may begin on the same line.
    fn indicator(&mut self, mark: &str, indents: bool) {
        self.space_before();
        mark.chars().for_each(|c| self.put(c));
        self.after_space = false;
        self.in_indentation &= indents;
    }

    fn space_before(&mut self) {
        if !self.after_space {
            self.put(' ');
        }
    }

    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }
}

/// A number as yaml v2 writes what it read from the JSON.
fn number_text(number: &Number) -> String {
    let json = String::from_utf8_lossy(&encode(&Value::Number(number.clone()))).into_owned();
    if json.parse::<i64>().is_ok_and(|integer| integer == 0) {
        return String::from("0");
    }
    let is_integer = json.parse::<i64>().is_ok() || json.parse::<u64>().is_ok();
    if is_integer { json } else { go::yaml_float(number.as_f64().unwrap_or(0.0)) }
}

fn escape(c: char) -> String {
    let short = match c {
        '\0' => '0',
        '\x07' => 'a',
        '\x08' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\x0b' => 'v',
        '\x0c' => 'f',
        '\r' => 'r',
        '\x1b' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ => {
            return match u32::from(c) {
                code @ 0..=0xff => format!("\\x{code:02X}"),
                code @ 0..=0xffff => format!("\\u{code:04X}"),
                code => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{short}")
}
