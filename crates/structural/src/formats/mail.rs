//! Mail addresses as Go's `mail.ParseAddress` reads them: `a@b`, `Name <a@b>`, `"quoted"@b`, comments.

/// Whether a text is one address.
pub(super) fn is_address(text: &str) -> bool {
    let mut reader = Reader(text);
    reader.address().is_some() && reader.0.is_empty()
}

struct Reader<'a>(&'a str);

impl Reader<'_> {
    fn address(&mut self) -> Option<()> {
        // Comments may stand anywhere but here.
        self.0 = self.0.trim_start_matches(is_space);
        let start = self.0;
        if self.spec().is_some() {
            self.space()?;
            return Some(());
        }
        self.0 = start;
        // Words of any number, then the address in angle brackets.
        while !self.0.starts_with('<') {
            self.word()?;
            self.space()?;
        }
        self.take('<')?;
        self.spec()?;
        self.take('>')?;
        self.space()
    }

    fn word(&mut self) -> Option<()> {
        match self.0.chars().next()? {
            '"' => self.quoted(),
            _ => self.atom(true),
        }
    }

    fn spec(&mut self) -> Option<()> {
        match self.0.chars().next()? {
            '"' => self.quoted()?,
            _ => self.atom(false)?,
        }
        self.take('@')?;
        self.space()?;
        if self.0.starts_with('[') { self.literal() } else { self.atom(false) }
    }

    /// A domain literal: an IP address in brackets.
    fn literal(&mut self) -> Option<()> {
        let (inside, rest) = self.0.strip_prefix('[')?.split_once(']')?;
        self.0 = rest;
        super::address::parse_ip(inside).map(drop)
    }

    /// Characters with dots between; `lenient` ones may have dots anywhere.
    fn atom(&mut self, lenient: bool) -> Option<()> {
        let rest = self.0.trim_start_matches(is_atom);
        let atom = &self.0[..self.0.len() - rest.len()];
        self.0 = rest;
        let dotted = lenient || !(atom.starts_with('.') || atom.ends_with('.') || atom.contains(".."));
        (!atom.is_empty() && dotted).then_some(())
    }

    fn quoted(&mut self) -> Option<()> {
        let mut chars = self.0.strip_prefix('"')?.chars();
        let mut empty = true;
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => drop(chars.next().filter(|c| is_visible(*c) || is_space(*c))?),
                c if is_visible(c) || is_space(c) => {}
                _ => return None,
            }
            empty = false;
        }
        self.0 = chars.as_str();
        (!empty).then_some(())
    }

    /// White space and comments.
    fn space(&mut self) -> Option<()> {
        self.0 = self.0.trim_start_matches(is_space);
        while self.0.starts_with('(') {
            self.comment()?;
            self.0 = self.0.trim_start_matches(is_space);
        }
        Some(())
    }

    fn comment(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        let mut chars = self.0.chars();
        loop {
            match chars.next()? {
                '(' => depth += 1,
                ')' => depth -= 1,
                '\\' => drop(chars.next()?),
                _ => {}
            }
            if depth == 0 {
                self.0 = chars.as_str();
                return Some(());
            }
        }
    }

    fn take(&mut self, c: char) -> Option<()> {
        self.0 = self.0.strip_prefix(c)?;
        Some(())
    }
}

fn is_atom(c: char) -> bool {
    is_visible(c) && !"()<>[]:;@\\,\"".contains(c)
}

fn is_visible(c: char) -> bool {
    ('!'..='~').contains(&c) || !c.is_ascii()
}

fn is_space(c: char) -> bool {
    c == ' ' || c == '\t'
}
