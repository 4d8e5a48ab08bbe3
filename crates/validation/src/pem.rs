//! PEM as Go's `encoding/pem` reads it.

use std::collections::BTreeMap;

use x509_parser::{
    certificate::X509Certificate, certification_request::X509CertificationRequest, error::X509Error,
    prelude::FromDer as _, public_key::PublicKey,
};

use crate::json::base64;

/// A block of PEM.
pub(crate) struct Block {
    /// What stands after `BEGIN`.
    pub(crate) label: String,
    /// Whether there are lines like `Key: value` before the content.
    pub(crate) has_headers: bool,
    /// What is inside.
    pub(crate) content: Vec<u8>,
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
    whole.then(|| (Block { label: label.to_owned(), has_headers, content: base64(plain) }, rest))
}

/// What is wrong with a request for a certificate, in base64.
pub(crate) fn request_problem(encoded: &str) -> Option<&'static str> {
    let blocks = read(encoded);
    let Some(block) = blocks.first().filter(|block| block.label == "CERTIFICATE REQUEST") else {
        return Some("PEM block type must be CERTIFICATE REQUEST");
    };
    let Ok((rest, request)) = X509CertificationRequest::from_der(&block.content) else {
        return Some(match is_cut(&block.content) {
            _ if block.content.is_empty() => "asn1: syntax error: sequence truncated",
            true => "asn1: syntax error: data truncated",
            false => "asn1: structure error",
        });
    };
    if !rest.is_empty() {
        return Some("asn1: syntax error: trailing data");
    }
    // In Go's words, which depend on the kind of key.
    match request.verify_signature() {
        Ok(()) => None,
        Err(X509Error::SignatureUnsupportedAlgorithm) => {
            Some("x509: cannot verify signature: algorithm unimplemented")
        }
        Err(_) => Some(match request.certification_request_info.subject_pki.parsed() {
            Ok(PublicKey::RSA(_)) => "crypto/rsa: verification error",
            Ok(PublicKey::EC(_)) => "x509: ECDSA verification failure",
            _ => "x509: Ed25519 verification failure",
        }),
    }
}

/// Whether there is less than the outermost length of DER says.
fn is_cut(der: &[u8]) -> bool {
    let Some(&[_, length]) = der.first_chunk::<2>() else { return true };
    let bytes = usize::from(length & 0x7f);
    let (header, length) = match length < 0x80 {
        true => (2, bytes),
        // Four bytes are more than anything that can be sent.
        false if bytes > 4 => return true,
        false => {
            let Some(length) = der.get(2..2 + bytes) else { return true };
            (2 + bytes, length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
        }
    };
    der.len() < header + length
}

/// What is wrong with a chain of certificates, in base64.
pub(crate) fn certificate_problem(encoded: &str) -> Option<String> {
    if encoded.is_empty() {
        return None;
    }
    let blocks = read(encoded);
    if blocks.is_empty() {
        return Some("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    blocks.iter().find_map(|block| {
        if block.label != "CERTIFICATE" {
            let found = concord_meta::go::quote(&block.label);
            return Some(format!("only CERTIFICATE PEM blocks are allowed, found {found}"));
        }
        if block.has_headers {
            return Some("no PEM block headers are permitted".to_owned());
        }
        X509Certificate::from_der(&block.content).is_err().then(|| "x509: malformed certificate".to_owned())
    })
}

/// What is wrong with each of the authorities in a bundle, or with all of them together.
pub(crate) fn bundle_problems(text: &str) -> Vec<String> {
    let blocks = blocks(text);
    let problem = |block: &Block| -> Option<String> {
        if block.label != "CERTIFICATE" {
            return Some(format!("has bad block type: {}", block.label));
        }
        if block.has_headers {
            return Some("has PEM block headers".to_owned());
        }
        let Ok((_, certificate)) = X509Certificate::from_der(&block.content) else {
            return Some("does not parse as X.509".to_owned());
        };
        (!certificate.is_ca()).then(|| "does not have the CA bit set".to_owned())
    };
    let wrong = blocks.iter().enumerate();
    let wrong: Vec<String> =
        wrong.filter_map(|(index, block)| Some(format!("entry {index} {}", problem(block)?))).collect();
    if !wrong.is_empty() {
        return wrong;
    }
    if blocks.is_empty() {
        return vec!["at least one trust anchor must be provided".to_owned()];
    }
    let mut places: BTreeMap<&[u8], Vec<String>> = BTreeMap::new();
    for (index, block) in blocks.iter().enumerate() {
        places.entry(&block.content).or_default().push(index.to_string());
    }
    let repeated = places.into_values().filter(|places| places.len() > 1);
    repeated.map(|places| format!("duplicate trust anchor (indices [{}])", places.join(" "))).collect()
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
