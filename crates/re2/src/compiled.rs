//! A compiled pattern, by whichever engine.

use crate::{Code, Error, MAX_PATTERN, parse, small::Small};

/// How much `regex` may make of a pattern, by the parser's estimate in states. That is about 300 KiB, and takes a few
/// milliseconds.
const FAST_WEIGHT: u64 = 2_000;
/// The most that `regex` may take for the automaton, in bytes, should the estimate be wrong.
const FAST_SIZE: usize = 1 << 20;
/// The most that `regex` may keep of what it found out while matching, in bytes. Its own default is 2 MiB, for each
/// pattern and thread.
const FAST_CACHE: usize = 128 << 10;
/// Deep enough for every tree that passes the height limit of the parser, with the groups added by the rewriting.
const NEST_LIMIT: u32 = 8 * parse::MAX_HEIGHT as u32;
/// What `regex` takes for any pattern, and for a unit of the estimate, in bytes.
const FAST_LEAST: usize = 12 << 10;
const FAST_UNIT: usize = 128;

/// A compiled pattern. It says where it matches, nothing of groups.
#[derive(Debug)]
pub struct Regex {
    engine: Engine,
    footprint: usize,
}

#[derive(Debug)]
enum Engine {
    /// On bytes, by states that are found as they are needed.
    Fast(Box<regex::Regex>),
    /// On characters, for patterns that would take megabytes.
    Small(Small),
}

/// Compiles a pattern written in Go's syntax.
///
/// ```
/// assert!(concord_re2::compile(r"^\d{3}$")?.is_match("123"));
/// let error = concord_re2::compile("[a").unwrap_err();
/// assert_eq!(error.to_string(), "error parsing regexp: missing closing ]: `[a`");
/// # Ok::<(), concord_re2::Error>(())
/// ```
///
/// # Errors
///
/// As [`check`].
pub fn compile(pattern: &str) -> Result<Regex, Error> {
    let (rewritten, weight) = rewrite(pattern)?;
    let fast = (weight <= FAST_WEIGHT).then(|| Regex::fast(&rewritten, weight)).flatten();
    Ok(fast.unwrap_or_else(|| Regex::small(&rewritten)))
}

/// Checks a pattern. Nothing is compiled for that: it takes microseconds, whatever the pattern.
///
/// # Errors
///
/// What Go says of the pattern, or that it is too large.
pub fn check(pattern: &str) -> Result<(), Error> {
    rewrite(pattern).map(drop)
}

fn rewrite(pattern: &str) -> Result<(String, u64), Error> {
    if pattern.len() > MAX_PATTERN {
        return Err(Error::new(Code::Large, pattern));
    }
    parse::rewrite(pattern)
}

impl Regex {
    fn fast(rewritten: &str, weight: u64) -> Option<Self> {
        let mut builder = regex::RegexBuilder::new(rewritten);
        builder.size_limit(FAST_SIZE).dfa_size_limit(FAST_CACHE).nest_limit(NEST_LIMIT);
        // The rewritten pattern is valid, so only a limit can refuse it.
        let regex = builder.build().ok()?;
        let footprint = FAST_LEAST + FAST_UNIT * usize::try_from(weight).unwrap_or(usize::MAX);
        Some(Self { engine: Engine::Fast(Box::new(regex)), footprint })
    }

    fn small(rewritten: &str) -> Self {
        let small = Small::new(rewritten);
        let footprint = small.footprint();
        Self { engine: Engine::Small(small), footprint }
    }

    /// Whether it matches anywhere in a text.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        match &self.engine {
            Engine::Fast(regex) => regex.is_match(text),
            Engine::Small(small) => small.find(text, 0, true).is_some(),
        }
    }

    /// The leftmost match.
    #[must_use]
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.find_at(text, 0).map(|(start, end)| &text[start..end])
    }

    /// The matches from left to right that do not overlap. An empty one right behind another is none.
    pub fn find_iter<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let (mut next, mut last) = (Some(0), None);
        std::iter::from_fn(move || {
            loop {
                let (start, end) = self.find_at(text, next?)?;
                let is_empty = start == end;
                next = match is_empty {
                    true => text[end..].chars().next().map(|c| end + c.len_utf8()),
                    false => Some(end),
                };
                if !is_empty || last != Some(end) {
                    last = Some(end);
                    return Some(&text[start..end]);
                }
            }
        })
    }

    /// Where the leftmost match is that begins at `from` or later.
    #[must_use]
    pub fn find_at(&self, text: &str, from: usize) -> Option<(usize, usize)> {
        match &self.engine {
            Engine::Fast(regex) => regex.find_at(text, from).map(|found| (found.start(), found.end())),
            Engine::Small(small) => small.find(text, from, false),
        }
    }

    /// About how many bytes it takes.
    #[must_use]
    pub fn footprint(&self) -> usize {
        self.footprint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Go 1.26 answers; `tests/go.rs` explains it and asks the engine that a pattern gets.
    #[test]
    fn the_small_engine_answers_as_go_does() {
        let mut lines = include_str!("../tests/go.jsonl").lines();
        let inputs: Vec<String> = serde_json::from_str(lines.next().expect("inputs")).expect("inputs");
        let mut wrong = Vec::new();
        for line in lines {
            let [pattern, kind, expect]: [String; 3] = serde_json::from_str(line).expect("a row");
            if kind != "match" {
                continue;
            }
            let (rewritten, _) = rewrite(&pattern).expect("a pattern");
            let small = Regex::small(&rewritten);
            let found = inputs.iter().enumerate().filter_map(|(index, input)| {
                let (start, end) = small.find_at(input, 0)?;
                assert!(small.is_match(input));
                Some(format!("{index}:{start}-{end}"))
            });
            let found = found.collect::<Vec<_>>().join(" ");
            if found != expect {
                wrong.push(format!("{pattern:?} as {rewritten}\n  Go:  {expect}\n  got: {found}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn both_engines_find_the_same() {
        for pattern in ["a*", "", r"\b", "a|ab", "(?:a|ab)+?", r"[^,]*", r"(?i)é+", r"^a|b$", r"(a|b|)*c"] {
            let (rewritten, weight) = rewrite(pattern).expect("a pattern");
            let (fast, small) = (Regex::fast(&rewritten, weight).expect("fast"), Regex::small(&rewritten));
            for text in ["", "a", "baac", "ab,cd,,e", "éÉ é", "aab\nabc b"] {
                let all = |regex: &Regex| regex.find_iter(text).map(str::to_owned).collect::<Vec<_>>();
                assert_eq!(all(&fast), all(&small), "{pattern} in {text:?}");
            }
        }
    }

    #[test]
    fn what_would_take_megabytes_gets_the_small_engine() {
        for (pattern, is_fast) in [
            (r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$", true),
            (r"^.{1,200}$", true),
            (r"^\pL+$", true),
            (r"^\pL{200}$", false),
            (r"(?i)[A-\x{1e943}]{30}", false),
        ] {
            let regex = compile(pattern).expect("a pattern");
            assert_eq!(matches!(regex.engine, Engine::Fast(_)), is_fast, "{pattern}");
            assert!(regex.footprint() < 512 << 10, "{pattern}: {}", regex.footprint());
        }
        assert!(compile(r"^\pL{200}$").expect("a pattern").is_match(&"é".repeat(200)));
        assert!(!compile(r"^\pL{200}$").expect("a pattern").is_match(&"é".repeat(201)));
    }
}
