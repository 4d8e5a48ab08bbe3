//! Characters to tokens.

use super::text;
use crate::ast::Literal;

/// A token with its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token<'s> {
    pub(crate) kind: TokenKind,
    /// Byte offset of its start.
    pub(crate) at: u32,
    /// Its text in the source; `<EOF>` at the end.
    pub(crate) text: &'s str,
}

impl Token<'_> {
    pub(crate) fn is_symbol(&self, symbol: &str) -> bool {
        self.kind == TokenKind::Symbol && self.text == symbol
    }

    /// Whether an expression may begin with it.
    pub(crate) fn starts_expression(&self) -> bool {
        match self.kind {
            TokenKind::End => false,
            TokenKind::Symbol => matches!(self.text, "[" | "{" | "(" | "." | "-" | "!"),
            _ => true,
        }
    }
}

/// What a token is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenKind {
    End,
    Ident,
    /// An operator or a bracket, or the word `in`: the text says which.
    Symbol,
    Literal(Literal),
    /// The magnitude of the smallest integer, which fits only after a minus.
    MinInt,
    /// A number that does not fit, with what cel-go says of it.
    BadNumber(&'static str),
}

/// Two characters first, so that they win over one.
const SYMBOLS: &[&str] = &[
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":",
    "+", "*", "/", "%",
];

/// A place where the lexer fails, with cel-go's words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LexError {
    pub(crate) at: u32,
    pub(crate) message: String,
}

/// Splits the source into tokens, the last of which is the end. What is no token is skipped and reported.
pub(crate) fn tokens(source: &str) -> (Vec<Token<'_>>, Vec<LexError>) {
    let mut lexer = Lexer { source, at: 0 };
    let (mut tokens, mut errors) = (Vec::new(), Vec::new());
    loop {
        lexer.skip_space();
        match lexer.next() {
            Ok(token) => {
                let end = token.kind == TokenKind::End;
                tokens.push(token);
                if end {
                    return (tokens, errors);
                }
            }
            Err(error) => errors.push(error),
        }
    }
}

struct Lexer<'s> {
    source: &'s str,
    at: usize,
}

impl<'s> Lexer<'s> {
    fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let spaces = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{C}']).len();
            self.at += spaces;
            if !self.rest().starts_with("//") {
                return;
            }
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    fn token(&mut self, kind: TokenKind, length: usize) -> Token<'s> {
        let at = self.at;
        self.at += length;
        Token { kind, at: at as u32, text: &self.source[at..self.at] }
    }

    fn next(&mut self) -> Result<Token<'s>, LexError> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(Token { kind: TokenKind::End, at: self.at as u32, text: "<EOF>" });
        };
        if first.is_ascii_digit() || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            return Ok(self.number());
        }
        if let Some(token) = self.quoted()? {
            return Ok(token);
        }
        if first.is_ascii_alphabetic() || first == '_' {
            return Ok(self.word());
        }
        if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            return Ok(self.token(TokenKind::Symbol, symbol.len()));
        }
        // Half of an operator fails at the character behind it.
        let length = if matches!(first, '=' | '&' | '|') { 2 } else { 1 };
        Err(self.unrecognized(length))
    }

    /// Skips so many characters that are no token.
    fn unrecognized(&mut self, characters: usize) -> LexError {
        let at = self.at;
        let text: String = self.rest().chars().take(characters).collect();
        self.at += text.len();
        let shown = text.replace('\n', "\\n").replace('\t', "\\t").replace('\r', "\\r");
        LexError { at: at as u32, message: format!("Syntax error: token recognition error at: '{shown}'") }
    }

    fn word(&mut self) -> Token<'s> {
        let rest = self.rest();
        let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let kind = match &rest[..length] {
            "true" => TokenKind::Literal(Literal::Bool(true)),
            "false" => TokenKind::Literal(Literal::Bool(false)),
            "null" => TokenKind::Literal(Literal::Null),
            "in" => TokenKind::Symbol,
            _ => TokenKind::Ident,
        };
        self.token(kind, length)
    }

    fn number(&mut self) -> Token<'s> {
        let rest = self.rest();
        let digits = |from: usize, hex: bool| {
            let is_digit = |c: char| if hex { c.is_ascii_hexdigit() } else { c.is_ascii_digit() };
            rest[from..].find(|c: char| !is_digit(c)).map_or(rest.len(), |i| from + i)
        };
        let hex = rest.starts_with("0x") && digits(2, true) > 2;
        let mut end = if hex { digits(2, true) } else { digits(0, false) };
        let mut float = false;
        if !hex {
            if rest[end..].starts_with('.') && digits(end + 1, false) > end + 1 {
                float = true;
                end = digits(end + 1, false);
            }
            let exponent = rest[end..].strip_prefix(['e', 'E']).map(|tail| {
                let sign = usize::from(tail.starts_with(['+', '-']));
                end + 1 + sign
            });
            if let Some(start) = exponent.filter(|start| digits(*start, false) > *start) {
                float = true;
                end = digits(start, false);
            }
        }
        let unsigned = !float && rest[end..].starts_with(['u', 'U']);
        let kind = if float { double(&rest[..end]) } else { integer(&rest[..end], hex, unsigned) };
        self.token(kind, end + usize::from(unsigned))
    }

    /// A string or bytes, with any prefix of `r` and `b`.
    fn quoted(&mut self) -> Result<Option<Token<'s>>, LexError> {
        let rest = self.rest();
        let prefix = rest.find(|c: char| !matches!(c, 'r' | 'R' | 'b' | 'B')).unwrap_or(rest.len());
        let letters = rest[..prefix].to_ascii_lowercase();
        if !matches!(letters.as_str(), "" | "r" | "b" | "br" | "rb") {
            return Ok(None);
        }
        // The grammar of cel-go has `b` before `r` only.
        let (raw, bytes) = (letters.contains('r'), letters.contains('b'));
        let body = &rest[prefix..];
        let quote = match ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| body.starts_with(*quote)) {
            Some(quote) if letters != "rb" => quote,
            _ => return Ok(None),
        };
        let length = match text::end(&body[quote.len()..], quote, raw) {
            Ok(length) => length,
            Err(failed) => return Err(self.unrecognized(prefix + quote.len() + failed)),
        };
        let content = &body[quote.len()..quote.len() + length];
        let kind = match text::literal(content, raw, bytes) {
            Ok(kind) => kind,
            Err(message) => {
                let at = self.at as u32;
                self.at += prefix + 2 * quote.len() + length;
                return Err(LexError { at, message: message.to_owned() });
            }
        };
        Ok(Some(self.token(TokenKind::Literal(kind), prefix + 2 * quote.len() + length)))
    }
}

fn double(text: &str) -> TokenKind {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => TokenKind::Literal(Literal::Double(value)),
        _ => TokenKind::BadNumber("invalid double literal"),
    }
}

fn integer(text: &str, hex: bool, unsigned: bool) -> TokenKind {
    let parsed = match text.strip_prefix("0x").filter(|_| hex) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse::<u64>(),
    };
    match parsed {
        Ok(value) if unsigned => TokenKind::Literal(Literal::Uint(value)),
        Ok(value) => match i64::try_from(value) {
            Ok(value) => TokenKind::Literal(Literal::Int(value)),
            Err(_) if value == i64::MIN.unsigned_abs() => TokenKind::MinInt,
            Err(_) => TokenKind::BadNumber("invalid int literal"),
        },
        Err(_) if unsigned => TokenKind::BadNumber("invalid uint literal"),
        Err(_) => TokenKind::BadNumber("invalid int literal"),
    }
}
