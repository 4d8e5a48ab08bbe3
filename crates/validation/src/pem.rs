//! PEM as Go's `encoding/pem` reads it.

use crate::json::base64;

/// A block of PEM.
pub(crate) struct Block {
    /// What stands after `BEGIN`.
    pub(crate) label: String,
    /// Whether there are lines like `Key: value` before the content.
    pub(crate) has_headers: bool,
}

const BEGIN: &str = "-----BEGIN ";
const DASHES: &str = "-----";

/// The blocks in a text; what is no block is passed over.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some((block, after)) = next(rest) {
        blocks.push(block);
        rest = after;
    }
    blocks
}

/// The first block, and what comes after it.
fn next(text: &str) -> Option<(Block, &str)> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find(BEGIN)?;
        from = at + BEGIN.len();
        let starts_line = at == 0 || text.as_bytes()[at - 1] == b'\n';
        if let Some(found) = starts_line.then(|| block(&text[from..])).flatten() {
            return Some(found);
        }
    }
}

/// Reads what comes after `-----BEGIN `.
fn block(text: &str) -> Option<(Block, &str)> {
    let (first, rest) = text.split_once('\n')?;
    let label = first.trim_end_matches([' ', '\t', '\r']).strip_suffix(DASHES)?;
    let end = format!("{DASHES}END {label}{DASHES}");
    let (content, rest) = match rest.strip_prefix(&end) {
        Some(rest) => ("", rest),
        None => {
            let at = rest.find(&format!("\n{end}"))?;
            (&rest[..at], &rest[at + 1 + end.len()..])
        }
    };
    let is_header = |line: &&str| line.contains(':');
    let has_headers = content.lines().next().is_some_and(|line| is_header(&line));
    let body: String = content.lines().skip_while(is_header).flat_map(str::chars).collect();
    let body: String = body.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let plain = body.trim_end_matches('=');
    let digits = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '/';
    let whole = body.len().is_multiple_of(4) && body.len() - plain.len() <= 2 && plain.chars().all(digits);
    whole.then(|| (Block { label: label.to_owned(), has_headers }, rest))
}

/// What is wrong with a request for a certificate, in base64; its content is not looked at.
pub(crate) fn request_problem(encoded: &str) -> Option<&'static str> {
    let is_request = read(encoded).first().is_some_and(|block| block.label == "CERTIFICATE REQUEST");
    (!is_request).then_some("PEM block type must be CERTIFICATE REQUEST")
}

/// What is wrong with a chain of certificates, in base64; their content is not looked at.
pub(crate) fn certificate_problem(encoded: &str) -> Option<String> {
    if encoded.is_empty() {
        return None;
    }
    let blocks = read(encoded);
    if blocks.is_empty() {
        return Some("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    blocks.iter().find_map(|block| match block {
        Block { label, .. } if label != "CERTIFICATE" => {
            let found = concord_meta::go::quote(label);
            Some(format!("only CERTIFICATE PEM blocks are allowed, found {found}"))
        }
        Block { has_headers: true, .. } => Some("no PEM block headers are permitted".to_owned()),
        Block { .. } => None,
    })
}

fn read(encoded: &str) -> Vec<Block> {
    blocks(&String::from_utf8_lossy(&base64(encoded)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<String> {
        blocks(text).into_iter().map(|block| block.label).collect()
    }

    #[test]
    fn blocks_are_found_among_other_lines() {
        let one = "-----BEGIN A-----\nAAAA\n-----END A-----\n";
        assert_eq!(labels(one), ["A"]);
        assert_eq!(labels(&format!("x\n{one}y\n-----BEGIN B-----\n-----END B-----")), ["A", "B"]);
        for text in [
            "",
            "-----BEGIN A-----",
            "-----BEGIN A-----\nAAAA\n-----END B-----",
            " -----BEGIN A-----\nAAAA\n-----END A-----",
            "-----BEGIN A-----\nA*AA\n-----END A-----",
            "-----BEGIN A-----\nAAA\n-----END A-----",
        ] {
            assert_eq!(labels(text), [""; 0], "{text:?}");
        }
        assert!(blocks("-----BEGIN A-----\nk: v\n\nAAAA\n-----END A-----")[0].has_headers);
    }
}
