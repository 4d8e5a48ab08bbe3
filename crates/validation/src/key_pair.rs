//! Whether a certificate and a private key belong together, in the words of Go's `crypto/tls`.

use x509_parser::{certificate::X509Certificate, public_key::PublicKey};

use crate::{keys, pem};

/// What is wrong with a certificate and its key, both in PEM. Only what is in a key is compared: the public half of a key on
/// Ed25519 is not, and that of one on another curve may be missing.
pub(crate) fn problem(certificate: &str, key: &str) -> Option<String> {
    let blocks = pem::blocks(certificate);
    let Some(leaf) = blocks.iter().find(|block| block.label == "CERTIFICATE") else {
        return Some(no_certificate(&labels(&blocks)));
    };
    let blocks = pem::blocks(key);
    let is_key = |label: &str| label == "PRIVATE KEY" || label.ends_with(" PRIVATE KEY");
    let Some(key) = blocks.iter().find(|block| is_key(&block.label)) else {
        return Some(no_key(&labels(&blocks)));
    };
    let Some(leaf) = keys::certificate(&leaf.content) else {
        return Some("x509: malformed certificate".to_owned());
    };
    let Some(key) = private(&key.content) else {
        return Some("tls: failed to parse private key".to_owned());
    };
    mismatch(&leaf, &key).map(str::to_owned)
}

fn labels(blocks: &[pem::Block]) -> Vec<&str> {
    blocks.iter().map(|block| block.label.as_str()).collect()
}

fn no_certificate(skipped: &[&str]) -> String {
    match skipped {
        [] => "tls: failed to find any PEM data in certificate input".to_owned(),
        [one] if one.ends_with("PRIVATE KEY") => {
            "tls: failed to find certificate PEM data in certificate input, but did \
            find a private key; PEM inputs may have been switched"
                .to_owned()
        }
        skipped => format!(
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the \
             following types: [{}]",
            skipped.join(" ")
        ),
    }
}

fn no_key(skipped: &[&str]) -> String {
    match skipped {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        ["CERTIFICATE"] => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        skipped => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks \
             of the following types: [{}]",
            skipped.join(" ")
        ),
    }
}

/// What a private key says of its public half.
enum Private<'k> {
    /// The modulus.
    Rsa(&'k [u8]),
    /// The point, if it is there.
    Ec(Option<&'k [u8]>),
    Ed25519,
}

const RSA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";
const EC: &[u8] = b"\x2a\x86\x48\xce\x3d\x02\x01";
const ED25519: &[u8] = b"\x2b\x65\x70";

/// A key in PKCS#1, PKCS#8 or SEC 1: a sequence that begins with a number, and a number, an algorithm or a text after it.
fn private(der: &[u8]) -> Option<Private<'_>> {
    let (SEQUENCE, content, []) = value(der)? else { return None };
    let (INTEGER, _, rest) = value(content)? else { return None };
    match value(rest)? {
        (INTEGER, modulus, _) => Some(Private::Rsa(modulus)),
        (OCTETS, _, rest) => sec1(rest),
        (SEQUENCE, algorithm, rest) => {
            let (_, name, _) = value(algorithm)?;
            let (OCTETS, key, _) = value(rest)? else { return None };
            match name {
                RSA | EC => private(key),
                ED25519 => Some(Private::Ed25519),
                _ => None,
            }
        }
        _ => None,
    }
}

/// What comes after the secret of a key of SEC 1: the curve, and the point in a string of bits.
fn sec1(mut rest: &[u8]) -> Option<Private<'_>> {
    while !rest.is_empty() {
        let (tag, content, more) = value(rest)?;
        if tag == POINT {
            let (_, bits, _) = value(content)?;
            return Some(Private::Ec(Some(bits.get(1..)?)));
        }
        rest = more;
    }
    Some(Private::Ec(None))
}

const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const SEQUENCE: u8 = 0x30;
const POINT: u8 = 0xa1;

/// The first value in DER: its tag, its content and what comes after it.
fn value(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, length], rest) = der.split_first_chunk::<2>()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        // Three bytes are more than anything that can be sent.
        0x81..=0x83 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            (bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

fn mismatch(certificate: &X509Certificate<'_>, key: &Private<'_>) -> Option<&'static str> {
    const KIND: &str = "tls: private key type does not match public key type";
    const KEY: &str = "tls: private key does not match public key";
    let public = certificate.public_key();
    let is_ed25519 = public.algorithm.algorithm.to_id_string() == "1.3.101.112";
    match (public.parsed(), key) {
        (_, Private::Ed25519) => (!is_ed25519).then_some(KIND),
        (Ok(PublicKey::RSA(public)), Private::Rsa(modulus)) => (public.modulus != *modulus).then_some(KEY),
        (Ok(PublicKey::EC(public)), Private::Ec(point)) => {
            point.is_some_and(|point| public.data() != point).then_some(KEY)
        }
        (Ok(PublicKey::RSA(_) | PublicKey::EC(_)), _) => Some(KIND),
        _ if is_ed25519 => Some(KIND),
        _ => Some("tls: unknown public key algorithm"),
    }
}
