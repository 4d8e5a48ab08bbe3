use std::{borrow::Cow, ops::Range};

use super::NotSpliceable;
use crate::json::unquote;

/// A member of an object.
pub(super) struct Member<'a> {
    /// Where its key starts, quote included.
    pub(super) start: usize,
    key: &'a [u8],
    /// Where its value is.
    pub(super) value: Range<usize>,
}

impl Member<'_> {
    pub(super) fn is(&self, name: &str) -> bool {
        *self.name() == *name.as_bytes()
    }

    pub(super) fn sorts_after(&self, name: &str) -> bool {
        *self.name() > *name.as_bytes()
    }

    fn name(&self) -> Cow<'_, [u8]> {
        if self.key.contains(&b'\\') {
            Cow::Owned(unquote(self.key, true).into_bytes())
        } else {
            Cow::Borrowed(self.key)
        }
    }
}

/// Finds the members of one object and steps over their values.
#[derive(Clone)]
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// A scanner for an object that is a value in this one.
    pub(super) fn inside(&self, value: &Range<usize>) -> Result<Self, NotSpliceable> {
        let is_object = self.bytes.get(value.start) == Some(&b'{');
        is_object.then_some(Self { bytes: self.bytes, at: value.start }).ok_or(NotSpliceable::NoMetadata)
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Reads an object and shows its members in turn; returns where it is.
    pub(super) fn object(
        &mut self,
        mut see: impl FnMut(&Member<'a>, &Self) -> Result<(), NotSpliceable>,
    ) -> Result<Range<usize>, NotSpliceable> {
        self.skip_space();
        let start = self.at;
        self.expect(b'{')?;
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(start..self.at);
        }
        loop {
            let member = self.member()?;
            see(&member, self)?;
            self.skip_space();
            if self.peek() == Some(b'}') {
                self.at += 1;
                return Ok(start..self.at);
            }
            self.expect(b',')?;
        }
    }

    /// Only space may follow.
    pub(super) fn end(&mut self) -> Result<(), NotSpliceable> {
        self.skip_space();
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.malformed()) }
    }

    fn member(&mut self) -> Result<Member<'a>, NotSpliceable> {
        self.skip_space();
        let start = self.at;
        self.string()?;
        let key = &self.bytes[start + 1..self.at - 1];
        self.skip_space();
        self.expect(b':')?;
        self.skip_space();
        let value = self.value()?;
        Ok(Member { start, key, value })
    }

    fn value(&mut self) -> Result<Range<usize>, NotSpliceable> {
        let start = self.at;
        match self.peek() {
            Some(b'{' | b'[') => self.container()?,
            Some(b'"') => self.string()?,
            _ => self.word()?,
        }
        Ok(start..self.at)
    }

    /// Steps over a container by counting brackets outside strings.
    fn container(&mut self) -> Result<(), NotSpliceable> {
        let mut depth = 0_usize;
        loop {
            match self.peek().ok_or(self.malformed())? {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                b'"' => {
                    self.string()?;
                    continue;
                }
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn string(&mut self) -> Result<(), NotSpliceable> {
        self.expect(b'"')?;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            self.at += memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            if self.peek().ok_or(self.malformed())? == b'"' {
                self.at += 1;
                return Ok(());
            }
            self.at += 2;
        }
    }

    /// Steps over a number, `true`, `false` or `null`.
    fn word(&mut self) -> Result<(), NotSpliceable> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) {
            self.at += 1;
        }
        if self.at == start { Err(self.malformed()) } else { Ok(()) }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Result<(), NotSpliceable> {
        if self.peek() != Some(byte) {
            return Err(self.malformed());
        }
        self.at += 1;
        Ok(())
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn malformed(&self) -> NotSpliceable {
        NotSpliceable::Malformed { offset: self.at.min(self.bytes.len()) }
    }
}
