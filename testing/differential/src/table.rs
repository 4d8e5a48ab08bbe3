//! The tables: requests as text, and the answers that were written down for them.
//!
//! ```text
//! ### what the case is about
//! POST /api/v1/namespaces/<ns>/configmaps?dryRun=All
//! content-type: application/json
//! @save uid /metadata/uid
//!
//! {"metadata":{"name":"a"}}
//! --- 201
//! ```
//!
//! Lines with `@` among the headers say what to do with the request. After `---` stands kube-apiserver's answer in
//! short; after `===` stands Concord's where it knowingly differs.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail, ensure};

/// A file of cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// What stands before the first case: comments.
    pub preamble: String,
    /// The cases, in the order in which they are sent.
    pub cases: Vec<Case>,
}

/// One request, sent once or, in a sweep, once for every byte of its body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Case {
    /// What it is about.
    pub title: String,
    /// Method and target, as they stand on the request line.
    pub request: String,
    /// Header lines.
    pub headers: Vec<String>,
    /// The body, before its `<...>` are expanded.
    pub body: String,
    /// Variables to take from the answer: a name and a JSON pointer.
    pub saves: Vec<(String, String)>,
    /// What of the answer is written down, if it is no failure: JSON pointers.
    pub shows: Vec<String>,
    /// How the body is varied.
    pub sweep: Option<Sweep>,
    /// Why Concord answers differently.
    pub known: Option<String>,
    /// Header names and JSON pointers in which two servers may differ in any case.
    pub ignored: Vec<String>,
    /// kube-apiserver's answer in short, if it was written down.
    pub upstream: Option<String>,
    /// Concord's, where it differs.
    pub ours: Option<String>,
}

/// What happens to a body, at each of its bytes in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// It ends before the byte.
    Cut,
    /// The byte is replaced by this one.
    Put(u8),
}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    ///
    /// When a case has no request line or a directive is not understood.
    pub fn parse(text: &str) -> Result<Self> {
        let start =
            if text.starts_with("### ") { 0 } else { text.find("\n### ").map_or(text.len(), |at| at + 1) };
        let (preamble, cases) = text.split_at(start);
        let cases = cases.split("\n### ").filter(|case| !case.is_empty());
        let cases = cases.map(|case| {
            let case = case.strip_prefix("### ").unwrap_or(case);
            Case::parse(case).with_context(|| format!("case {:?}", case.lines().next().unwrap_or_default()))
        });
        Ok(Self { preamble: preamble.to_owned(), cases: cases.collect::<Result<_>>()? })
    }

    /// Writes the table as [`Self::parse`] reads it.
    pub fn render(&self) -> String {
        let cases: Vec<String> = self.cases.iter().map(Case::render).collect();
        format!("{}{}", self.preamble, cases.join("\n"))
    }
}

impl Case {
    fn parse(text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let title = lines.next().unwrap_or_default().to_owned();
        let request = lines.next().context("there is no request line")?.to_owned();
        ensure!(request.contains(' '), "there is no request line");
        let mut case = Self { title, request, ..Self::default() };
        let mut rest = lines.by_ref().peekable();
        while let Some(line) = rest.next_if(|line| !line.is_empty() && !is_answer(line)) {
            match line.strip_prefix('@') {
                Some(directive) => case.directive(directive)?,
                None => case.headers.push(line.to_owned()),
            }
        }
        let mut part = Part::Body;
        let [mut body, mut upstream, mut ours] = [const { Vec::new() }; 3];
        for line in rest {
            part = match &line.get(..3) {
                Some("---") => Part::Upstream,
                Some("===") => Part::Ours,
                _ => part,
            };
            match part {
                Part::Body => body.push(line),
                Part::Upstream => upstream.push(line),
                Part::Ours => ours.push(line),
            }
        }
        case.body = body.join("\n").trim_matches('\n').to_owned();
        case.upstream = answer(&upstream);
        case.ours = answer(&ours);
        Ok(case)
    }

    fn directive(&mut self, text: &str) -> Result<()> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        match word {
            "save" => {
                let (name, pointer) = rest.split_once(' ').context("@save needs a name and a pointer")?;
                self.saves.push((name.to_owned(), pointer.to_owned()));
            }
            "show" => self.shows.push(rest.to_owned()),
            "sweep" if rest == "cut" => self.sweep = Some(Sweep::Cut),
            "sweep" => {
                let byte = rest.strip_prefix("put ").context("@sweep is cut, or put and a byte in hex")?;
                self.sweep = Some(Sweep::Put(u8::from_str_radix(byte, 16)?));
            }
            "known" => self.known = Some(rest.to_owned()),
            "ignore" => self.ignored.push(rest.to_owned()),
            _ => bail!("@{word} is not a directive"),
        }
        Ok(())
    }

    fn render(&self) -> String {
        let mut text = format!("### {}\n{}\n", self.title, self.request);
        let mut line = |prefix: &str, line: &str| text.push_str(&format!("{prefix}{line}\n"));
        self.headers.iter().for_each(|header| line("", header));
        self.saves.iter().for_each(|(name, pointer)| line("@save ", &format!("{name} {pointer}")));
        self.shows.iter().for_each(|pointer| line("@show ", pointer));
        match self.sweep {
            Some(Sweep::Cut) => line("@sweep ", "cut"),
            Some(Sweep::Put(byte)) => line("@sweep ", &format!("put {byte:02x}")),
            None => {}
        }
        self.ignored.iter().for_each(|ignored| line("@ignore ", ignored));
        self.known.iter().for_each(|known| line("@known ", known));
        if !self.body.is_empty() {
            // A String takes everything.
            write!(text, "\n{}\n", self.body).ok();
        }
        for (mark, answer) in [("---", &self.upstream), ("===", &self.ours)] {
            if let Some(answer) = answer {
                writeln!(text, "{mark} {answer}").ok();
            }
        }
        text
    }
}

enum Part {
    Body,
    Upstream,
    Ours,
}

fn is_answer(line: &str) -> bool {
    line.starts_with("---") || line.starts_with("===")
}

fn answer(lines: &[&str]) -> Option<String> {
    let text = lines.join("\n");
    let text = text.trim_matches('\n').get(3..)?;
    Some(text.strip_prefix(' ').unwrap_or(text).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# About it.\n\n### one\nGET /a\n--- 404\n404 page not found\n\n### two\nPOST /b?x=y\n\
        content-type: text/plain\n@save uid /metadata/uid\n@show /spec\n@sweep put ff\n@known why\n\n{\"a\":\n\n1}\n--- 400 BadRequest\n\
        no\n=== 422\n";

    #[test]
    fn a_table_reads_as_it_is_written() {
        let table = Table::parse(TABLE).expect("a table");
        assert_eq!(table.render(), TABLE);
        let [one, two] = &table.cases[..] else { panic!("{table:?}") };
        assert_eq!((one.request.as_str(), one.body.as_str()), ("GET /a", ""));
        assert_eq!(one.upstream.as_deref(), Some("404\n404 page not found"));
        assert_eq!((two.body.as_str(), two.sweep), ("{\"a\":\n\n1}", Some(Sweep::Put(255))));
        assert_eq!((two.upstream.as_deref(), two.ours.as_deref()), (Some("400 BadRequest\nno"), Some("422")));
        assert_eq!((two.known.as_deref(), two.headers.len()), (Some("why"), 1));
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        for text in ["### a\n", "### a\nGET\n", "### a\nGET /\n@what\n", "### a\nGET /\n@sweep put zz\n"] {
            assert!(Table::parse(text).is_err(), "{text}");
        }
    }
}
