//! Text to tree: a lexer, a parser by precedence, and the macros.

mod lex;
mod macros;
mod primary;
mod text;

use std::sync::Arc;

use crate::ast::{Call, Expr, Id, Kind, Literal};
use crate::source::Issues;
use crate::version::Features;
use lex::{Token, TokenKind};

/// cel-go's limit of the size of an expression, in characters.
const MAX_CHARACTERS: usize = 100_000;
/// cel-go's limit of nesting. A chain like `a.b.c` or `1 + 2 + 3` nests too.
const MAX_DEPTH: usize = 250;

/// What may start an expression, as ANTLR prints it.
const EXPECTED_START: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, \
     NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// The same with what else may stand after an opening bracket.
const EXPECTED_INDEX: &str = "{'[', '{', '(', '.', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, \
     NUM_UINT, STRING, BYTES, IDENTIFIER}";
const EXPECTED_ARGUMENT: &str = "{'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, \
     NUM_UINT, STRING, BYTES, IDENTIFIER}";
const EXPECTED_ELEMENT: &str = "{'[', ']', '{', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, \
     NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
const EXPECTED_ENTRY: &str = "{'[', '{', '}', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, \
     NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// A parsed expression and how many ids it has.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) expr: Expr,
    pub(crate) ids: Id,
}

/// Parses an expression.
pub(crate) fn parse(source: &str, features: Features) -> Result<Parsed, Issues> {
    let mut issues = Issues::new(source);
    let size = source.chars().count();
    if size > MAX_CHARACTERS {
        issues.report_everywhere(format!(
            "expression code point size exceeds limit: size: {size}, limit {MAX_CHARACTERS}"
        ));
        return Err(issues);
    }
    let (tokens, errors) = lex::tokens(source);
    for error in errors {
        issues.report(error.at, error.message);
    }
    let mut parser = Parser { tokens, next: 0, ids: 0, depth: 0, features, issues };
    match parser.whole() {
        Ok(expr) if parser.issues.is_empty() => Ok(Parsed { expr, ids: parser.ids }),
        _ => Err(parser.issues),
    }
}

/// Parsing stops; what is wrong is in the issues.
struct Stop;

type Parse<T> = Result<T, Stop>;

struct Parser<'s> {
    tokens: Vec<Token<'s>>,
    next: usize,
    ids: Id,
    depth: usize,
    features: Features,
    issues: Issues,
}

impl<'s> Parser<'s> {
    fn whole(&mut self) -> Parse<Expr> {
        let expr = self.expr()?;
        match self.peek().kind {
            TokenKind::End => Ok(expr),
            _ => {
                let last = self.tokens.get(self.next + 1).is_none_or(|token| token.kind == TokenKind::End);
                Err(self.unexpected(if last { "extraneous" } else { "mismatched" }, "<EOF>"))
            }
        }
    }

    fn peek(&self) -> &Token<'s> {
        // The end is the last token and is never passed.
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn advance(&mut self) -> Token<'s> {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    /// Whether the next token is this symbol.
    fn at(&self, symbol: &str) -> bool {
        self.peek().is_symbol(symbol)
    }

    /// Takes the next token if it is this symbol.
    fn take(&mut self, symbol: &str) -> Option<u32> {
        if !self.at(symbol) {
            return None;
        }
        Some(self.advance().at)
    }

    fn expect(&mut self, symbol: &str) -> Parse<u32> {
        self.take(symbol).ok_or_else(|| self.unexpected("mismatched", &format!("'{symbol}'")))
    }

    /// The end of something in brackets. What is superfluous is told from what is wrong by what follows; that the end is
    /// missing is told if all that is open at the end of the text is this.
    fn expect_closing(&mut self, symbol: &str) -> Parse<u32> {
        if let Some(at) = self.take(symbol) {
            return Ok(at);
        }
        if self.peek().kind == TokenKind::End && self.open_brackets() == 1 {
            return Err(self.syntax_error(&format!("missing '{symbol}' at '<EOF>'")));
        }
        let how = self.how_unexpected(|next| next.is_symbol(symbol));
        Err(self.unexpected(how, &format!("'{symbol}'")))
    }

    /// The end of a list after an element: a comma would do too.
    fn expect_end_of_list(&mut self, symbol: &str) -> Parse<u32> {
        if let Some(at) = self.take(symbol) {
            return Ok(at);
        }
        let how = self.how_unexpected(|next| next.is_symbol(symbol) || next.is_symbol(","));
        Err(self.unexpected(how, &format!("{{'{symbol}', ','}}")))
    }

    /// What stands between a key and its value.
    fn expect_colon(&mut self) -> Parse<u32> {
        if self.at(":") || !self.peek().starts_expression() {
            return self.expect(":");
        }
        let text = self.peek().text;
        Err(self.syntax_error(&format!("missing ':' at '{text}'")))
    }

    /// How many brackets are open here.
    fn open_brackets(&self) -> usize {
        let read = self.tokens.iter().take(self.next).filter(|token| token.kind == TokenKind::Symbol);
        read.fold(0, |open: usize, token| match token.text {
            "(" | "[" | "{" => open + 1,
            ")" | "]" | "}" => open.saturating_sub(1),
            _ => open,
        })
    }

    /// Something that no expression starts with.
    fn no_expression(&mut self) -> Stop {
        self.nothing_of(EXPECTED_START)
    }

    /// An expression, or one of the symbols that these more would be, has to start here.
    fn check_start(&mut self, expected: &str, others: &[&str]) -> Parse<()> {
        let token = self.peek();
        if token.starts_expression() || others.iter().any(|other| token.is_symbol(other)) {
            return Ok(());
        }
        Err(self.nothing_of(expected))
    }

    fn nothing_of(&mut self, expected: &str) -> Stop {
        let how = self.how_unexpected(Token::starts_expression);
        self.unexpected(how, expected)
    }

    /// What is superfluous is told from what is wrong by what follows.
    fn how_unexpected(&self, fits: impl Fn(&Token<'s>) -> bool) -> &'static str {
        let next = self.tokens.get(self.next + 1).filter(|_| self.peek().kind != TokenKind::End);
        if next.is_some_and(fits) { "extraneous" } else { "mismatched" }
    }

    fn unexpected(&mut self, how: &str, expected: &str) -> Stop {
        let text = self.peek().text;
        self.syntax_error(&format!("{how} input '{text}' expecting {expected}"))
    }

    fn syntax_error(&mut self, message: &str) -> Stop {
        let at = self.peek().at;
        self.error(at, format!("Syntax error: {message}"))
    }

    fn error(&mut self, at: u32, message: String) -> Stop {
        self.issues.report(at, message);
        Stop
    }

    fn node(&mut self, at: u32, kind: Kind) -> Expr {
        self.ids += 1;
        Expr { id: self.ids - 1, at, kind }
    }

    fn call(&mut self, at: u32, function: &str, args: Vec<Expr>) -> Expr {
        let call = Call { target: None, function: Arc::from(function), args };
        self.node(at, Kind::Call(Box::new(call)))
    }

    /// One level deeper, or an error.
    fn descend(&mut self) -> Parse<()> {
        self.deeper(&format!("expression recursion limit exceeded: {MAX_DEPTH}"))
    }

    /// One link more of a chain of operators.
    fn extend_chain(&mut self) -> Parse<()> {
        self.deeper("max recursion depth exceeded")
    }

    fn deeper(&mut self, message: &str) -> Parse<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.issues.report_everywhere(message.to_owned());
            return Err(Stop);
        }
        Ok(())
    }

    fn expr(&mut self) -> Parse<Expr> {
        self.descend()?;
        let condition = self.logical("||", "_||_", &mut |parser| {
            parser.logical("&&", "_&&_", &mut |parser| parser.binary(0))
        })?;
        let expr = match self.take("?") {
            None => condition,
            Some(at) => {
                let then = self.logical("||", "_||_", &mut |parser| {
                    parser.logical("&&", "_&&_", &mut |parser| parser.binary(0))
                })?;
                self.expect(":")?;
                let otherwise = self.expr()?;
                self.call(at, "_?_:_", vec![condition, then, otherwise])
            }
        };
        self.depth -= 1;
        Ok(expr)
    }

    /// A chain of one logical operator, as a balanced tree so that long chains are not deep.
    fn logical(
        &mut self,
        symbol: &str,
        function: &str,
        term: &mut dyn FnMut(&mut Self) -> Parse<Expr>,
    ) -> Parse<Expr> {
        let mut terms = vec![term(self)?];
        let mut operators = Vec::new();
        while let Some(at) = self.take(symbol) {
            operators.push(at);
            terms.push(term(self)?);
        }
        let mut terms: Vec<Option<Expr>> = terms.into_iter().map(Some).collect();
        Ok(self.balance(function, &mut terms, &operators))
    }

    fn balance(&mut self, function: &str, terms: &mut [Option<Expr>], operators: &[u32]) -> Expr {
        if operators.is_empty() {
            return terms[0].take().expect("every term is taken once");
        }
        let middle = operators.len() / 2;
        let (left_terms, right_terms) = terms.split_at_mut(middle + 1);
        let left = self.balance(function, left_terms, &operators[..middle]);
        let right = self.balance(function, right_terms, &operators[middle + 1..]);
        self.call(operators[middle], function, vec![left, right])
    }

    /// Relations, sums and products: operators of one level are left-associative.
    fn binary(&mut self, level: usize) -> Parse<Expr> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let depth = self.depth;
        let mut left = self.binary(level + 1)?;
        while let Some((_, function)) = operators.iter().find(|(symbol, _)| self.at(symbol)) {
            self.extend_chain()?;
            let at = self.advance().at;
            let right = self.binary(level + 1)?;
            left = self.call(at, function, vec![left, right]);
        }
        self.depth = depth;
        Ok(left)
    }

    fn unary(&mut self) -> Parse<Expr> {
        for (symbol, function) in [("!", "!_"), ("-", "-_")] {
            let start = self.next;
            let mut count = 0;
            while self.take(symbol).is_some() {
                count += 1;
            }
            if count == 0 {
                continue;
            }
            let at = self.tokens[start].at;
            let next_is_number = matches!(
                self.peek().kind,
                TokenKind::Literal(Literal::Int(_) | Literal::Double(_)) | TokenKind::MinInt
            );
            if symbol == "-" && count == 1 && next_is_number {
                self.next = start;
                return self.member();
            }
            let operand = self.member()?;
            // Two of them cancel.
            return Ok(if count % 2 == 0 { operand } else { self.call(at, function, vec![operand]) });
        }
        self.member()
    }
}

/// The binary operators with their functions, loosest first.
const LEVELS: &[&[(&str, &str)]] = &[
    &[
        ("==", "_==_"),
        ("!=", "_!=_"),
        ("<=", "_<=_"),
        (">=", "_>=_"),
        ("<", "_<_"),
        (">", "_>_"),
        ("in", "@in"),
    ],
    &[("+", "_+_"), ("-", "_-_")],
    &[("*", "_*_"), ("/", "_/_"), ("%", "_%_")],
];
