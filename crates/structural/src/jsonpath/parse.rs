//! Reading a path.

use std::str::Chars;

use serde_json::Value;

use super::{JsonPathError, Operator, Slice, Step, To};

/// How deep filters and unions may nest.
const MAX_DEPTH: usize = 10;

type Result<T> = std::result::Result<T, JsonPathError>;

pub(super) fn parse(text: &str) -> Result<Vec<Step>> {
    action(text, 0)
}

fn bad<T>(text: impl Into<String>) -> Result<T> {
    Err(JsonPathError::Syntax(text.into()))
}

/// The steps of a text that kubectl would have in braces.
fn action(text: &str, depth: usize) -> Result<Vec<Step>> {
    if depth > MAX_DEPTH {
        return bad("too many nested filters");
    }
    let mut reader = Reader { rest: text.chars(), depth, steps: Vec::new() };
    while reader.step()? {}
    Ok(reader.steps)
}

struct Reader<'a> {
    rest: Chars<'a>,
    depth: usize,
    steps: Vec<Step>,
}

impl Reader<'_> {
    /// Reads one step; false at the end.
    fn step(&mut self) -> Result<bool> {
        let text = self.rest.as_str();
        if let Some(after) = text.strip_prefix("[?(") {
            self.rest = after.chars();
            return self.filter().map(|()| true);
        }
        if let Some(after) = text.strip_prefix("..") {
            self.rest = after.chars();
            return self.recursive().map(|()| true);
        }
        match self.rest.next() {
            None => return Ok(false),
            Some(' ' | '@' | '$') => {}
            Some('[') => self.array()?,
            Some(quote @ ('"' | '\'')) => self.quoted(quote)?,
            Some('.') => self.field(),
            Some(c) if c == '+' || c == '-' || c.is_numeric() => {
                self.rest = text.chars();
                self.number()?;
            }
            Some(c) if is_word(c) => {
                self.rest = text.chars();
                self.identifier()?;
            }
            Some('\n' | '\r' | '}' | '{') => return bad("unclosed action"),
            Some(c) => return bad(format!("unrecognized character in action: U+{:04X} '{c}'", u32::from(c))),
        }
        Ok(true)
    }

    fn recursive(&mut self) -> Result<()> {
        if self.steps.last() == Some(&Step::Recursive) {
            return bad("invalid multiple recursive descent");
        }
        self.steps.push(Step::Recursive);
        if self.rest.clone().next().is_some_and(is_word) {
            self.field();
        }
        Ok(())
    }

    /// A name up to the next character that ends one; a backslash takes that meaning away.
    fn field(&mut self) {
        let mut name = String::new();
        loop {
            let before = self.rest.clone();
            match self.rest.next() {
                Some('\\') => name.extend(self.rest.next().filter(|c| *c != '\\')),
                Some(c) if !is_terminator(c) => name.push(c),
                _ => {
                    self.rest = before;
                    break;
                }
            }
        }
        self.steps.push(if name == "*" { Step::Wildcard } else { Step::Field(name) });
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> String {
        let text = self.rest.as_str();
        let end = text.find(|c| !keep(c)).unwrap_or(text.len());
        self.rest = text[end..].chars();
        text[..end].to_owned()
    }

    fn identifier(&mut self) -> Result<()> {
        match self.take_while(|c| !is_terminator(c)).as_str() {
            "true" => self.steps.push(Step::Literal(true.into())),
            "false" => self.steps.push(Step::Literal(false.into())),
            name => return bad(format!("unrecognized identifier {name}")),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<()> {
        let mut text = String::new();
        text.extend(self.rest.clone().next().filter(|c| "+-".contains(*c)));
        if !text.is_empty() {
            self.rest.next();
        }
        text.push_str(&self.take_while(|c| c == '.' || c.is_ascii_digit()));
        let int = text.parse::<i64>().ok().map(Value::from);
        let number = int.or_else(|| text.parse::<f64>().ok().map(Value::from));
        match number {
            Some(number) => self.steps.push(Step::Literal(number)),
            None => return bad(format!("cannot parse number {text}")),
        }
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<()> {
        let mut text = String::new();
        loop {
            match self.rest.next() {
                None | Some('\n') => return bad("unterminated quoted string"),
                Some('\\') => text.extend(self.rest.next().map(unescaped)),
                Some(c) if c == quote => break,
                Some(c) => text.push(c),
            }
        }
        self.steps.push(Step::Literal(text.into()));
        Ok(())
    }

    fn array(&mut self) -> Result<()> {
        let text = self.rest.as_str();
        let Some(end) = text.find([']', '\n']).filter(|end| text[*end..].starts_with(']')) else {
            return bad("unterminated array");
        };
        self.rest = text[end + 1..].chars();
        let inside = if &text[..end] == "*" { ":" } else { &text[..end] };
        if inside.contains(',') {
            let paths = inside
                .split(',')
                .map(|part| action(&format!("[{}]", part.trim_matches(' ')), self.depth + 1));
            self.steps.push(Step::Union(paths.collect::<Result<_>>()?));
        } else if let Some(key) = inside.strip_prefix('\'').and_then(|key| key.strip_suffix('\'')) {
            self.steps.extend(action(&format!(".{key}"), self.depth + 1)?);
        } else {
            self.steps.push(Step::Slice(slice(inside)?));
        }
        Ok(())
    }

    fn filter(&mut self) -> Result<()> {
        let text = self.rest.as_str();
        let Some(end) = filter_end(text) else { return bad("unterminated filter") };
        let Some(after) = text[end + 1..].strip_prefix(']') else { return bad("unclosed array expect ]") };
        self.rest = after.chars();
        let inside = &text[..end];
        let is_operator = |c: char| "!<>=".contains(c);
        let start = inside.find(is_operator).filter(|start| *start > 0);
        let (left, comparison) = match start {
            None => (inside, None),
            Some(start) => {
                let after = inside[start..].trim_start_matches(is_operator);
                let operator = &inside[start..inside.len() - after.len()];
                (&inside[..start], Some((operator, after)))
            }
        };
        let left = action(left, self.depth + 1)?;
        let comparison = comparison
            .map(|(operator, right)| Ok((parse_operator(operator)?, action(right, self.depth + 1)?)));
        self.steps.push(Step::Filter { left, comparison: comparison.transpose()? });
        Ok(())
    }
}

/// Where the closing parenthesis of a filter is: not inside of the one quoted text it may have.
fn filter_end(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut closed = true;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '\n' => return None,
            '"' | '\'' if quote.is_none() => (quote, closed) = (Some(c), false),
            '"' | '\'' if quote == Some(c) && before != '\\' => closed = true,
            ')' if closed => return Some(at),
            _ => {}
        }
        before = c;
    }
    None
}

fn parse_operator(text: &str) -> Result<Operator> {
    Ok(match text {
        "<" => Operator::Less,
        ">" => Operator::Greater,
        "==" => Operator::Equal,
        "!=" => Operator::NotEqual,
        "<=" => Operator::LessOrEqual,
        ">=" => Operator::GreaterOrEqual,
        _ => return bad(format!("unrecognized filter operator {text}")),
    })
}

fn slice(text: &str) -> Result<Slice> {
    let invalid = || JsonPathError::Syntax(format!("invalid array index {text}"));
    let mut parts = text.split(':');
    let mut next = || -> Result<Option<Option<i64>>> {
        let Some(part) = parts.next() else { return Ok(None) };
        if part.is_empty() {
            return Ok(Some(None));
        }
        part.parse().map(|number| Some(Some(number))).map_err(|_| invalid())
    };
    let (from, to, step) = (next()?, next()?, next()?);
    if parts.next().is_some() || text.is_empty() {
        return Err(invalid());
    }
    let to = match to {
        None => To::Next,
        Some(None) => To::End,
        Some(Some(to)) => To::Given(to),
    };
    Ok(Slice { from: from.flatten(), to, step: step.flatten() })
}

fn unescaped(c: char) -> char {
    match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        c => c,
    }
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphabetic() || c.is_numeric()
}

fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}
