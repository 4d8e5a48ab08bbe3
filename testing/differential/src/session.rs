//! One run of tables against one server.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    expand::Variables,
    kubeconfig::Server,
    short::short,
    table::{Case, Sweep},
    wire::{Answer, Wire},
};

/// How much of an answer is told for one byte of a sweep.
const LONGEST_LINE: usize = 120;

/// What came of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The answers: one, or one for each byte of a sweep.
    pub answers: Vec<Answer>,
    /// All of them in short.
    pub short: String,
}

/// A connection, a namespace of its own and what cases saved.
pub struct Session {
    wire: Wire,
    variables: Variables,
}

impl Session {
    /// Connects and makes the namespace.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached or does not allow that.
    pub fn begin(server: Server, namespace: &str) -> Result<Self> {
        let mut session = Self { wire: Wire::new(server), variables: Variables::default() };
        session.variables.set("ns", namespace);
        let body = json!({"metadata": {"name": namespace}}).to_string();
        let created = session.send("POST /api/v1/namespaces", &[], body.as_bytes())?;
        ensure!(created.code == 201, "no namespace: {}", String::from_utf8_lossy(&created.body));
        Ok(session)
    }

    /// Deletes the namespace. What is in it goes when the server's controllers have found it.
    ///
    /// # Errors
    ///
    /// When the server is not there any more.
    pub fn end(mut self) -> Result<()> {
        self.send("DELETE /api/v1/namespaces/<ns>", &[], b"")?;
        Ok(())
    }

    /// What cases saved.
    pub fn variables(&self) -> &Variables {
        &self.variables
    }

    /// Sends a case.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached or does not speak HTTP.
    pub fn run(&mut self, case: &Case) -> Result<Outcome> {
        let body = self.variables.expand(&case.body);
        let Some(sweep) = case.sweep else {
            let answer = self.send(&case.request, &case.headers, &body)?;
            self.save(case, &answer);
            let short = [short(&answer, &self.variables), shown(case, &answer)].concat();
            return Ok(Outcome { answers: vec![answer], short });
        };
        let varied = (0..body.len()).map(|at| vary(sweep, &body, at));
        let answers: Result<Vec<Answer>> =
            varied.map(|body| self.send(&case.request, &case.headers, &body)).collect();
        let answers = answers?;
        let short = self.runs(&answers);
        Ok(Outcome { answers, short })
    }

    /// A sweep in short: where an answer begins, and the answer on one line without its details.
    fn runs(&self, answers: &[Answer]) -> String {
        let mut lines = vec!["sweep".to_owned()];
        let mut last = String::new();
        for (at, answer) in answers.iter().enumerate() {
            let short = short(answer, &self.variables);
            let line = short.lines().filter(|line| !line.starts_with(['{'])).collect::<Vec<_>>().join(" ");
            let line: String = line.chars().take(LONGEST_LINE).collect();
            if line != last {
                lines.push(format!("{at}: {line}"));
                last = line;
            }
        }
        lines.join("\n")
    }

    fn save(&mut self, case: &Case, answer: &Answer) {
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        for (name, pointer) in &case.saves {
            let value = body.pointer(pointer).and_then(Value::as_str).unwrap_or("nothing-saved");
            self.variables.set(name, value);
        }
    }

    fn send(&mut self, request: &str, headers: &[String], body: &[u8]) -> Result<Answer> {
        let method = request.split(' ').next().unwrap_or_default();
        let head = self.head(request, headers, body);
        let answer = self.wire.exchange(method, &head, body)?;
        if answer.code == 0 {
            // It may only have been an old connection that the server had closed meanwhile.
            self.wire.reconnect();
            return self.wire.exchange(method, &head, body);
        }
        Ok(answer)
    }

    /// The head of a request: what the table says, and what every request needs and the table does not mention. A
    /// header without a value is one that is not to be sent.
    fn head(&self, request: &str, headers: &[String], body: &[u8]) -> Vec<u8> {
        let named = |name: &str| headers.iter().any(|line| is(line, name));
        let mut head = self.variables.expand(request);
        if !request.contains(" HTTP/") {
            head.extend_from_slice(b" HTTP/1.1");
        }
        head.extend_from_slice(b"\r\n");
        let has_body = !body.is_empty() && !named("transfer-encoding");
        let token = self.wire.token().map(|token| format!("Bearer {token}"));
        let defaults = [
            ("host", Some(self.wire.host().to_owned())),
            ("user-agent", Some("differential/1".to_owned())),
            ("authorization", token),
            ("content-type", has_body.then(|| "application/json".to_owned())),
            ("content-length", has_body.then(|| body.len().to_string())),
        ];
        for (name, value) in defaults {
            if let Some(value) = value.filter(|_| !named(name)) {
                head.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
            }
        }
        for line in headers.iter().filter(|line| !line.ends_with(':')) {
            head.extend(self.variables.expand(line));
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

/// The parts of an answer that a case shows, a line each.
fn shown(case: &Case, answer: &Answer) -> String {
    let body: Value = match answer.code {
        200..300 => serde_json::from_slice(&answer.body).unwrap_or_default(),
        _ => return String::new(),
    };
    let line = |pointer: &String| format!("\n{pointer} {}", body.pointer(pointer).unwrap_or(&Value::Null));
    case.shows.iter().map(line).collect()
}

fn is(line: &str, name: &str) -> bool {
    line.split_once(':').is_some_and(|(found, _)| found.eq_ignore_ascii_case(name))
}

fn vary(sweep: Sweep, body: &[u8], at: usize) -> Vec<u8> {
    match sweep {
        Sweep::Cut => body[..at].to_vec(),
        Sweep::Put(byte) => {
            let mut body = body.to_vec();
            body[at] = byte;
            body
        }
    }
}
