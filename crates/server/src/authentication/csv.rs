//! Comma-separated values as Go's `encoding/csv` reads them.

/// What is wrong, and where. The text is Go's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parse error on line {line}, column {column}: {what}")]
pub struct CsvError {
    line: usize,
    column: usize,
    what: &'static str,
}

const BARE_QUOTE: &str = "bare \" in non-quoted-field";
const STRAY_QUOTE: &str = "extraneous or missing \" in quoted-field";

/// The records of a text; empty lines are none. A quoted field may hold commas, line breaks and, doubled,
/// quotes.
pub(super) fn records(text: &str) -> Result<Vec<Vec<String>>, CsvError> {
    let mut reader = Reader { rest: text, line: 1, column: 1 };
    let mut records = Vec::new();
    while !reader.rest.is_empty() {
        if reader.eat("\r\n") || reader.eat("\n") {
            continue;
        }
        records.push(reader.record()?);
    }
    Ok(records)
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    /// In bytes, from 1.
    column: usize,
}

impl<'a> Reader<'a> {
    fn error(&self, what: &'static str) -> CsvError {
        CsvError { line: self.line, column: self.column, what }
    }

    fn advance(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        match taken.rfind('\n') {
            Some(end) => {
                self.line += taken.matches('\n').count();
                self.column = taken.len() - end;
            }
            None => self.column += taken.len(),
        }
        taken
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest.starts_with(token);
        if found {
            self.advance(token.len());
        }
        found
    }

    fn at_end_of_line(&self) -> bool {
        self.rest.is_empty() || self.rest.starts_with('\n') || self.rest.starts_with("\r\n")
    }

    fn record(&mut self) -> Result<Vec<String>, CsvError> {
        let mut fields = Vec::new();
        loop {
            fields.push(if self.eat("\"") { self.quoted()? } else { self.plain()? });
            if !self.eat(",") {
                self.eat("\r");
                self.eat("\n");
                return Ok(fields);
            }
        }
    }

    fn plain(&mut self) -> Result<String, CsvError> {
        let line_end = self.rest.find('\n').unwrap_or(self.rest.len());
        let line = self.rest[..line_end].trim_end_matches('\r');
        let end = line.find(',').unwrap_or(line.len());
        if let Some(quote) = line[..end].find('"') {
            self.advance(quote);
            return Err(self.error(BARE_QUOTE));
        }
        Ok(self.advance(end).to_owned())
    }

    /// After the opening quote.
    fn quoted(&mut self) -> Result<String, CsvError> {
        let mut field = String::new();
        loop {
            let Some(quote) = self.rest.find('"') else {
                self.advance(self.rest.len());
                return Err(self.error(STRAY_QUOTE));
            };
            field.push_str(self.advance(quote));
            self.eat("\"");
            if self.eat("\"") {
                field.push('"');
            } else if self.rest.starts_with(',') || self.at_end_of_line() {
                return Ok(field.replace("\r\n", "\n"));
            } else {
                return Err(self.error(STRAY_QUOTE));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("", &[][..]),
            ("\n\r\n\n", &[]),
            ("a,b,c", &[&["a", "b", "c"][..]]),
            ("a,b\r\nc,d\r\n", &[&["a", "b"], &["c", "d"]]),
            ("a,,\n,", &[&["a", "", ""], &["", ""]]),
            ("a,\"b,c\"\n", &[&["a", "b,c"]]),
            ("a,\"b\"\"c\"\nd", &[&["a", "b\"c"], &["d"]]),
            ("\"a\r\nb\",c", &[&["a\nb", "c"]]),
            (" a , b", &[&[" a ", " b"]]),
            ("é,\"ü\"", &[&["é", "ü"]]),
        ] {
            assert_eq!(records(text).expect(text), expected, "{text:?}");
        }
    }

    #[test]
    fn errors_say_where() {
        for (text, expected) in [
            ("a\"b,c", "parse error on line 1, column 2: bare \" in non-quoted-field"),
            ("x,y\n\"a\"b", "parse error on line 2, column 4: extraneous or missing \" in quoted-field"),
            ("\"a\nb", "parse error on line 2, column 2: extraneous or missing \" in quoted-field"),
        ] {
            assert_eq!(records(text).expect_err(text).to_string(), expected, "{text:?}");
        }
    }
}
