//! The grammar of the `labelSelector` parameter.
//!
//! Keywords are keywords only where an operator may stand: `in in (in)` selects objects whose label
//! `in` has the value `in`.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::vec::IntoIter;

use super::{Operator, Requirement, SelectorError, check_key};
use crate::field::{self, Path};

const SPECIAL: [char; 7] = ['=', '!', '(', ')', ',', '>', '<'];
const WHITESPACE: [char; 4] = [' ', '\t', '\r', '\n'];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    End,
    Identifier,
    In,
    NotIn,
    Symbol,
}

/// A piece of the text and what it is. Symbols are told apart by their text.
#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
}

impl Token<'_> {
    fn is(&self, symbol: &str) -> bool {
        self.kind == Kind::Symbol && self.text == symbol
    }

    /// Where a key or a value is expected, keywords are nothing special.
    fn is_identifier(&self) -> bool {
        matches!(self.kind, Kind::Identifier | Kind::In | Kind::NotIn)
    }

    fn starts_requirement(&self) -> bool {
        self.is_identifier() || self.is("!")
    }
}

const END: Token<'static> = Token { kind: Kind::End, text: "" };

/// A NUL where a token could start ends the text, as it does upstream; inside a word it ends the
/// word.
fn lex(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(WHITESPACE);
        let Some(first) = rest.chars().next().filter(|c| *c != '\0') else { return tokens };
        let (token, length) = if SPECIAL.contains(&first) { symbol(rest) } else { word(rest) };
        tokens.push(token);
        rest = &rest[length..];
    }
}

fn symbol(rest: &str) -> (Token<'_>, usize) {
    let length = if rest.starts_with("==") || rest.starts_with("!=") { 2 } else { 1 };
    (Token { kind: Kind::Symbol, text: &rest[..length] }, length)
}

fn word(rest: &str) -> (Token<'_>, usize) {
    let ends = |c: char| c == '\0' || SPECIAL.contains(&c) || WHITESPACE.contains(&c);
    let length = rest.find(ends).unwrap_or(rest.len());
    let text = &rest[..length];
    let kind = match text {
        "in" => Kind::In,
        "notin" => Kind::NotIn,
        _ => Kind::Identifier,
    };
    let nul = usize::from(rest[length..].starts_with('\0'));
    (Token { kind, text }, length + nul)
}

pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    let mut parser = Parser { tokens: lex(text).into_iter().peekable() };
    parser.selector().map_err(SelectorError)
}

struct Parser<'a> {
    tokens: Peekable<IntoIter<Token<'a>>>,
}

impl<'a> Parser<'a> {
    fn peek(&mut self) -> Token<'a> {
        self.tokens.peek().copied().unwrap_or(END)
    }

    fn next(&mut self) -> Token<'a> {
        self.tokens.next().unwrap_or(END)
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        let first = self.peek();
        if first.kind == Kind::End {
            return Ok(requirements);
        }
        if !first.starts_requirement() {
            return Err(format!("found '{}', expected: !, identifier, or 'end of string'", first.text));
        }
        loop {
            let requirement = self.requirement();
            requirements.push(requirement.map_err(|error| format!("unable to parse requirement: {error}"))?);
            let token = self.next();
            if token.kind == Kind::End {
                return Ok(requirements);
            }
            if !token.is(",") {
                return Err(format!("found '{}', expected: ',' or 'end of string'", token.text));
            }
            let after = self.peek();
            if !after.starts_requirement() {
                return Err(format!("found '{}', expected: identifier after ','", after.text));
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let negated = self.peek().is("!");
        if negated {
            self.next();
        }
        let key = self.next();
        if !key.is_identifier() {
            return Err(format!("found '{}', expected: identifier", key.text));
        }
        if let Some(error) = check_key(key.text, &Path::nil()) {
            return Err(error.to_string());
        }
        let after = self.peek();
        let (operator, values) = if negated {
            (Operator::DoesNotExist, BTreeSet::new())
        } else if after.kind == Kind::End || after.is(",") {
            (Operator::Exists, BTreeSet::new())
        } else {
            let operator = self.operator()?;
            let values = match operator {
                Operator::In | Operator::NotIn => self.values()?,
                _ => BTreeSet::from([self.exact_value()?]),
            };
            (operator, values)
        };
        let values = values.into_iter().map(ToOwned::to_owned).collect();
        Requirement::new(key.text, operator, values).map_err(|errors| field::aggregate(&errors))
    }

    fn operator(&mut self) -> Result<Operator, String> {
        let token = self.next();
        match (token.kind, token.text) {
            (Kind::In, _) => Ok(Operator::In),
            (Kind::NotIn, _) => Ok(Operator::NotIn),
            (Kind::Symbol, "=") => Ok(Operator::Equals),
            (Kind::Symbol, "==") => Ok(Operator::DoubleEquals),
            (Kind::Symbol, "!=") => Ok(Operator::NotEquals),
            (Kind::Symbol, ">") => Ok(Operator::GreaterThan),
            (Kind::Symbol, "<") => Ok(Operator::LessThan),
            _ => Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", token.text)),
        }
    }

    /// `(a,b)`; an empty item, as in `()` and `(a,)`, is the empty value.
    fn values(&mut self) -> Result<BTreeSet<&'a str>, String> {
        let open = self.next();
        if !open.is("(") {
            return Err(format!("found '{}' expected: '('", open.text));
        }
        let first = self.peek();
        if first.is(")") {
            self.next();
            return Ok(BTreeSet::from([""]));
        }
        if !(first.is_identifier() || first.is(",")) {
            return Err(format!("found '{}', expected: ',', ')' or identifier", first.text));
        }
        self.list()
    }

    fn list(&mut self) -> Result<BTreeSet<&'a str>, String> {
        let mut values = BTreeSet::new();
        loop {
            let token = self.next();
            if token.is_identifier() {
                values.insert(token.text);
                let after = self.peek();
                if !(after.is(",") || after.is(")")) {
                    return Err(format!("found '{}', expected: ',' or ')'", after.text));
                }
            } else if token.is(",") {
                let after = self.peek();
                if values.is_empty() || after.is(",") || after.is(")") {
                    values.insert("");
                }
            } else {
                return Err(format!("found '{}', expected: ',', or identifier", token.text));
            }
            if self.peek().is(")") {
                self.next();
                return Ok(values);
            }
        }
    }

    fn exact_value(&mut self) -> Result<&'a str, String> {
        let token = self.peek();
        if token.kind == Kind::End || token.is(",") {
            return Ok("");
        }
        self.next();
        match token.is_identifier() {
            true => Ok(token.text),
            false => Err(format!("found '{}', expected: identifier", token.text)),
        }
    }
}
