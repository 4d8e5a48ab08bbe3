//! What operators are applied to: names, literals, calls, lists and maps.

use std::sync::Arc;

use super::lex::{Token, TokenKind};
use super::{
    EXPECTED_ARGUMENT, EXPECTED_ELEMENT, EXPECTED_ENTRY, EXPECTED_INDEX, EXPECTED_START, Parse, Parser, Stop,
    macros,
};
use crate::ast::{Call, Element, Entry, Expr, Field, Kind, Literal, Name, Select, Struct};

/// Words that cannot be variables.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "namespace",
    "package",
    "return",
    "var",
    "void",
    "while",
];

impl<'s> Parser<'s> {
    pub(super) fn member(&mut self) -> Parse<Expr> {
        let depth = self.depth;
        let mut expr = self.primary()?;
        loop {
            expr = if let Some(at) = self.take(".") {
                self.descend()?;
                self.field_or_method(expr, at)?
            } else if let Some(at) = self.take("[") {
                self.descend()?;
                self.index(expr, at)?
            } else {
                self.depth = depth;
                return Ok(expr);
            };
        }
    }

    fn index(&mut self, operand: Expr, at: u32) -> Parse<Expr> {
        let optional = self.optional_mark(at, "[?")?;
        if !optional {
            self.check_start(EXPECTED_INDEX, &[])?;
        }
        let index = self.expr()?;
        self.expect_closing("]")?;
        Ok(self.call(at, if optional { "_[?_]" } else { "_[_]" }, vec![operand, index]))
    }

    /// Takes the `?` of an optional access, when this environment has it.
    fn optional_mark(&mut self, at: u32, syntax: &str) -> Parse<bool> {
        if self.take("?").is_none() {
            return Ok(false);
        }
        if self.features.optional_types {
            return Ok(true);
        }
        Err(self.error(at, format!("unsupported syntax '{syntax}'")))
    }

    fn field_or_method(&mut self, operand: Expr, dot: u32) -> Parse<Expr> {
        let optional = self.optional_mark(dot, ".?")?;
        let token = self.advance();
        if token.kind != TokenKind::Ident {
            self.next -= 1;
            return Err(self.no_alternative(&token));
        }
        if optional {
            let field = self.node(token.at, Kind::Literal(Literal::String(Arc::from(token.text))));
            return Ok(self.call(dot, "_?._", vec![operand, field]));
        }
        let Some(open) = self.take("(") else {
            let select = Select { operand, field: Arc::from(token.text), test_only: false };
            return Ok(self.node(dot, Kind::Select(Box::new(select))));
        };
        let args = self.arguments()?;
        if let Some(kind) = macros::receiver(&operand, token.text, args.len(), self.features) {
            return self.expand(kind, open, Some(operand), args);
        }
        let call = Call { target: Some(operand), function: Arc::from(token.text), args };
        Ok(self.node(open, Kind::Call(Box::new(call))))
    }

    /// A dot that no name follows.
    fn no_alternative(&mut self, token: &Token<'_>) -> Stop {
        let text = if token.kind == TokenKind::End { "" } else { token.text };
        self.syntax_error(&format!("no viable alternative at input '.{text}'"))
    }

    /// The arguments after an opening parenthesis, with the closing one.
    fn arguments(&mut self) -> Parse<Vec<Expr>> {
        let mut args = Vec::new();
        if self.take(")").is_some() {
            return Ok(args);
        }
        self.check_start(EXPECTED_ARGUMENT, &[])?;
        loop {
            args.push(self.expr()?);
            if self.take(",").is_none() {
                self.expect_closing(")")?;
                return Ok(args);
            }
        }
    }

    fn primary(&mut self) -> Parse<Expr> {
        if self.take("(").is_some() {
            let inner = self.expr()?;
            self.expect_closing(")")?;
            return Ok(inner);
        }
        if let Some(at) = self.take("[") {
            return self.list(at);
        }
        if let Some(at) = self.take("{") {
            return self.map(at);
        }
        if let Some(at) = self.take("-") {
            return self.negative(at);
        }
        let leading_dot = self.take(".").is_some();
        let token = self.peek().clone();
        match token.kind {
            TokenKind::Ident => {
                self.advance();
                self.identifier(&token, leading_dot)
            }
            TokenKind::Literal(value) if !leading_dot => {
                self.advance();
                Ok(self.node(token.at, Kind::Literal(value)))
            }
            TokenKind::MinInt => Err(self.error(token.at, "invalid int literal".to_owned())),
            TokenKind::BadNumber(message) => Err(self.error(token.at, message.to_owned())),
            _ if leading_dot => Err(self.no_alternative(&token)),
            _ => Err(self.no_expression()),
        }
    }

    fn negative(&mut self, at: u32) -> Parse<Expr> {
        let value = match self.advance().kind {
            TokenKind::Literal(Literal::Int(value)) => Literal::Int(-value),
            TokenKind::Literal(Literal::Double(value)) => Literal::Double(-value),
            TokenKind::MinInt => Literal::Int(i64::MIN),
            TokenKind::BadNumber(message) => return Err(self.error(at, message.to_owned())),
            _ => {
                self.next -= 1;
                return Err(self.unexpected("mismatched", EXPECTED_START));
            }
        };
        Ok(self.node(at, Kind::Literal(value)))
    }

    fn identifier(&mut self, token: &Token<'s>, leading_dot: bool) -> Parse<Expr> {
        let dot = if leading_dot { "." } else { "" };
        let name: Name = Arc::from(format!("{dot}{}", token.text));
        if RESERVED.contains(&token.text) {
            return Err(self.error(token.at, format!("reserved identifier: {}", token.text)));
        }
        if let Some(open) = self.take("(") {
            let args = self.arguments()?;
            if let Some(kind) = macros::global(&name, args.len()) {
                return self.expand(kind, open, None, args);
            }
            return Ok(self.call(open, &name, args));
        }
        if let Some(length) = self.message_name() {
            return self.message(token, length);
        }
        Ok(self.node(token.at, Kind::Ident(name)))
    }

    /// How many tokens of a qualified name follow before an opening brace, if one does.
    fn message_name(&self) -> Option<usize> {
        let rest = &self.tokens[self.next..];
        let symbol = |i: usize, text: &str| {
            rest.get(i).is_some_and(|token| token.kind == TokenKind::Symbol && token.text == text)
        };
        let mut length = 0;
        while symbol(length, ".") && rest.get(length + 1).is_some_and(|token| token.kind == TokenKind::Ident)
        {
            length += 2;
        }
        symbol(length, "{").then_some(length)
    }

    fn message(&mut self, first: &Token<'s>, length: usize) -> Parse<Expr> {
        let mut name = first.text.to_owned();
        for _ in 0..length {
            name.push_str(self.advance().text);
        }
        let at = self.expect("{")?;
        let mut fields = Vec::new();
        while self.take("}").is_none() {
            let optional = self.optional_mark(at, "?")?;
            let field = self.advance();
            if field.kind != TokenKind::Ident {
                self.next -= 1;
                return Err(self.unexpected("mismatched", "{'}', IDENTIFIER}"));
            }
            let colon = self.expect(":")?;
            fields.push(Field { name: Arc::from(field.text), colon, value: self.expr()?, optional });
            if self.take(",").is_none() {
                self.expect("}")?;
                break;
            }
        }
        Ok(self.node(at, Kind::Struct(Box::new(Struct { name: Arc::from(name), fields }))))
    }

    fn list(&mut self, at: u32) -> Parse<Expr> {
        let mut elements = Vec::new();
        self.check_start(EXPECTED_ELEMENT, &["]", ",", "?"])?;
        if self.take(",").is_some() {
            self.expect_closing("]")?;
            return Ok(self.node(at, Kind::List(elements)));
        }
        while self.take("]").is_none() {
            if !elements.is_empty() && self.peek().kind == TokenKind::End {
                self.expect_closing("]")?;
            }
            let mark = self.peek().at;
            let optional = self.optional_mark(mark, "?")?;
            if !elements.is_empty() && self.at(",") {
                return Err(self.unexpected("mismatched", "']'"));
            }
            elements.push(Element { value: self.expr()?, optional });
            if self.take(",").is_none() {
                self.expect_end_of_list("]")?;
                break;
            }
        }
        Ok(self.node(at, Kind::List(elements)))
    }

    fn map(&mut self, at: u32) -> Parse<Expr> {
        let mut entries = Vec::new();
        self.check_start(EXPECTED_ENTRY, &["}", ",", "?"])?;
        if self.take(",").is_some() {
            self.expect_closing("}")?;
            return Ok(self.node(at, Kind::Map(entries)));
        }
        while self.take("}").is_none() {
            if !entries.is_empty() && self.peek().kind == TokenKind::End {
                self.expect_closing("}")?;
            }
            let mark = self.peek().at;
            let optional = self.optional_mark(mark, "?")?;
            let key = self.expr()?;
            self.expect_colon()?;
            entries.push(Entry { key, value: self.expr()?, optional });
            if self.take(",").is_none() {
                self.expect_end_of_list("}")?;
                break;
            }
        }
        Ok(self.node(at, Kind::Map(entries)))
    }
}
