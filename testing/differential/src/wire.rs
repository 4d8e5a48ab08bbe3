//! HTTP/1.1 by hand: what a table says goes over the wire byte for byte, which no client library would do.

use std::{
    io::{self, Read, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use rustls::{ClientConnection, StreamOwned};

use crate::kubeconfig::Server;

/// How long a server may say nothing.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long an answer may go on, and how long it may be.
const LONGEST: Duration = Duration::from_secs(30);
const LARGEST: usize = 64 << 20;

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// The status code; 0 when the connection was closed without an answer.
    pub code: u16,
    /// Names in lower case, and values, in the order in which they came.
    pub headers: Vec<(String, String)>,
    /// The body, without chunks.
    pub body: Vec<u8>,
    /// The codes of interim answers, such as 100.
    pub interim: Vec<u16>,
}

impl Answer {
    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// A connection to a server, opened again when it was closed.
pub struct Wire {
    server: Server,
    stream: Option<StreamOwned<ClientConnection, TcpStream>>,
}

impl Wire {
    /// Speaks to this server.
    pub fn new(server: Server) -> Self {
        Self { server, stream: None }
    }

    /// Sends these bytes, which are a request with this method, and reads the answer.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached or does not speak HTTP.
    pub fn exchange(&mut self, method: &str, head: &[u8], body: &[u8]) -> Result<Answer> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.connect()?,
        };
        // A server may refuse and close before everything is sent; its answer is there to be read all the same.
        let sent = stream.write_all(head).and_then(|()| stream.write_all(body)).and_then(|()| stream.flush());
        let answer = Reader { stream: &mut stream, ahead: Vec::new(), begun: Instant::now() }.answer(method);
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) if closed(&error) => return Ok(Answer::default()),
            Err(error) => return Err(error),
        };
        let ends = answer.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        if sent.is_ok() && !ends && answer.code != 101 {
            self.stream = Some(stream);
        }
        Ok(answer)
    }

    /// Forgets the connection, so that the next request has one of its own.
    pub fn reconnect(&mut self) {
        self.stream = None;
    }

    /// The headers that every request has unless its table says otherwise.
    pub(crate) fn host(&self) -> &str {
        &self.server.authority
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.server.token.as_deref()
    }

    fn connect(&self) -> Result<StreamOwned<ClientConnection, TcpStream>> {
        let socket = TcpStream::connect(&self.server.authority)
            .with_context(|| format!("cannot connect to {}", self.server.authority))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.set_nodelay(true)?;
        let connection = ClientConnection::new(self.server.tls.clone(), self.server.name.clone())?;
        Ok(StreamOwned::new(connection, socket))
    }
}

/// Whether the other side went away, which is an answer of a kind.
fn closed(error: &anyhow::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    matches!(kind, Some(BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof))
}

struct Reader<'a, S> {
    stream: &'a mut S,
    /// What was read and not used yet.
    ahead: Vec<u8>,
    begun: Instant,
}

impl<S: Read> Reader<'_, S> {
    fn answer(&mut self, method: &str) -> Result<Answer> {
        let mut interim = Vec::new();
        loop {
            let (code, headers) = self.head()?;
            if (100..200).contains(&code) && code != 101 {
                interim.push(code);
                continue;
            }
            let mut answer = Answer { code, headers, body: Vec::new(), interim };
            if method != "HEAD" && ![101, 204, 304].contains(&code) {
                answer.body = self.body(&answer)?;
            }
            return Ok(answer);
        }
    }

    fn head(&mut self) -> Result<(u16, Vec<(String, String)>)> {
        let status = self.line()?;
        let code = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let code = code.with_context(|| format!("{status:?} is not a status line"))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { return Ok((code, headers)) };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    fn body(&mut self, answer: &Answer) -> Result<Vec<u8>> {
        if let Some(length) = answer.header("content-length") {
            return self.take(length.parse().context("a content-length that is none")?);
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            return self.chunks();
        }
        while self.more()? {}
        Ok(std::mem::take(&mut self.ahead))
    }

    fn chunks(&mut self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let length =
                usize::from_str_radix(&line, 16).with_context(|| format!("{line:?} is not a length"))?;
            body.extend(self.take(length)?);
            self.line()?;
            if length == 0 {
                return Ok(body);
            }
        }
    }

    fn line(&mut self) -> Result<String> {
        loop {
            if let Some(at) = self.ahead.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.ahead.drain(..=at).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            self.need_more()?;
        }
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>> {
        ensure!(length <= LARGEST, "an answer of {length} bytes");
        while self.ahead.len() < length {
            self.need_more()?;
        }
        Ok(self.ahead.drain(..length).collect())
    }

    fn need_more(&mut self) -> Result<()> {
        if self.more()? { Ok(()) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()) }
    }

    /// Reads a little; `false` at the end.
    fn more(&mut self) -> Result<bool> {
        ensure!(self.begun.elapsed() < LONGEST && self.ahead.len() <= LARGEST, "the answer does not end");
        let mut bytes = [0; 16 * 1024];
        let read = self.stream.read(&mut bytes)?;
        self.ahead.extend_from_slice(&bytes[..read]);
        Ok(read > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, bytes: &str) -> Result<Answer> {
        Reader { stream: &mut bytes.as_bytes(), ahead: Vec::new(), begun: Instant::now() }.answer(method)
    }

    #[test]
    fn answers_of_every_shape_are_read() {
        for (method, bytes, body) in [
            ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabcd", "ab"),
            (
                "GET",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
                "abc",
            ),
            ("GET", "HTTP/1.1 200 OK\r\n\r\nall of it", "all of it"),
            ("GET", "HTTP/1.1 304 Not Modified\r\n\r\n", ""),
            ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", ""),
            ("PUT", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "x"),
        ] {
            let answer = read(method, bytes).expect(bytes);
            assert_eq!(String::from_utf8_lossy(&answer.body), body, "{bytes}");
            assert_eq!(answer.interim.len(), usize::from(method == "PUT"));
        }
    }

    #[test]
    fn what_is_no_answer_is_an_error_and_an_end_is_known_as_one() {
        assert!(!closed(&read("GET", "SSH-2.0\r\n\r\n").expect_err("not HTTP")));
        for cut in ["", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"] {
            assert!(closed(&read("GET", cut).expect_err(cut)), "{cut}");
        }
    }
}
