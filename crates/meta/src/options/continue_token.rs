//! Where the next page of a list begins.

use serde::Deserialize;
use serde_json::json;

use crate::{Status, go};

const VERSION: &str = "meta.k8s.io/v1";
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// What a `continue` token says. Tokens are upstream's, so pages may be read from different servers.
///
/// ```
/// use concord_meta::options::ContinueToken;
/// let token = ContinueToken { revision: Some(7), start: "ns/web\0".to_owned() };
/// assert_eq!(ContinueToken::decode(&token.encode()), Ok(token));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContinueToken {
    /// The revision all pages show; none to go on at the newest one, after the history is gone.
    pub revision: Option<u64>,
    /// The key to begin at, without the list's prefix and without a leading slash.
    pub start: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Content {
    v: String,
    rv: i64,
    start: String,
}

impl ContinueToken {
    /// The token for the client.
    #[must_use]
    pub fn encode(&self) -> String {
        let revision = self.revision.map_or(-1, |revision| i64::try_from(revision).unwrap_or(i64::MAX));
        let start = go::json(&json!(self.start));
        encode_base64(format!(r#"{{"v":"{VERSION}","rv":{revision},"start":{start}}}"#).as_bytes())
    }

    /// Reads a token. It cannot leave the list's prefix: the key has no empty, `.` or `..` segments.
    ///
    /// # Errors
    ///
    /// 400 for what is no token. Where Go's decoders complain, the end of the text is our own.
    pub fn decode(token: &str) -> Result<Self, Status> {
        Self::read(token).map_err(|problem| {
            Status::bad_request(format!("invalid continue token: continue key is not valid{problem}"))
        })
    }

    fn read(token: &str) -> Result<Self, String> {
        let bytes = decode_base64(token).map_err(|at| format!(": illegal base64 data at input byte {at}"))?;
        let content: Content = serde_json::from_slice(&bytes).map_err(|error| format!(": {error}"))?;
        if content.v != VERSION {
            return Err(format!(": server does not recognize this encoded version {}", content.v));
        }
        let revision = match content.rv {
            0 => return Err(format!(": incorrect encoded start resourceVersion (version {VERSION})")),
            revision => u64::try_from(revision).ok(),
        };
        if content.start.is_empty() {
            return Err(format!(": encoded start key empty (version {VERSION})"));
        }
        let start = content.start.strip_prefix('/').unwrap_or(&content.start);
        let clean = |segment: &str| !["", ".", ".."].contains(&segment);
        if !(start.is_empty() || start.split('/').all(clean)) {
            return Err(format!(": {}", content.start));
        }
        Ok(Self { revision, start: start.to_owned() })
    }
}

fn encode_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 4 / 3 + 3);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte))
            << (8 * (3 - chunk.len()));
        let sextets = [18, 12, 6, 0].map(|shift| char::from(ALPHABET[bits >> shift & 63]));
        out.extend(&sextets[..=chunk.len()]);
    }
    out
}

/// The error is the place of the first wrong character.
fn decode_base64(text: &str) -> Result<Vec<u8>, usize> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    for (at, chunk) in text.as_bytes().chunks(4).enumerate() {
        let mut bits = 0_u32;
        for (offset, byte) in chunk.iter().enumerate() {
            let sextet = ALPHABET.iter().position(|known| known == byte).and_then(|n| u32::try_from(n).ok());
            bits |= sextet.ok_or(at * 4 + offset)? << (18 - 6 * offset);
        }
        if chunk.len() == 1 {
            return Err(text.len() - 1);
        }
        out.extend_from_slice(&bits.to_be_bytes()[1..chunk.len()]);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tokens_are_upstreams() {
        let token = ContinueToken { revision: Some(1234), start: "default/l1\0".to_owned() };
        // base64url of {"v":"meta.k8s.io/v1","rv":1234,"start":"default/l1\u0000"}
        let text = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTIzNCwic3RhcnQiOiJkZWZhdWx0L2wxXHUwMDAwIn0";
        assert_eq!(token.encode(), text);
        assert_eq!(ContinueToken::decode(text), Ok(token));
        let latest = ContinueToken { revision: None, start: "a".to_owned() };
        assert_eq!(ContinueToken::decode(&latest.encode()), Ok(latest));
    }

    #[test]
    fn bad_tokens_are_refused() {
        let v1 = r#""v":"meta.k8s.io/v1""#;
        let content = |rest: &str| encode_base64(format!("{{{v1}{rest}}}").as_bytes());
        let table = [
            ("not/base64".to_owned(), ": illegal base64 data at input byte 3"),
            ("abcde".to_owned(), ": illegal base64 data at input byte 4"),
            (encode_base64(br#"{"v":"v9"}"#), ": server does not recognize this encoded version v9"),
            (content(""), ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)"),
            (content(r#","rv":1"#), ": encoded start key empty (version meta.k8s.io/v1)"),
            (content(r#","rv":1,"start":"../pods""#), ": ../pods"),
            (content(r#","rv":1,"start":"a//b""#), ": a//b"),
            (content(r#","rv":1,"start":"a/""#), ": a/"),
        ];
        for (token, problem) in table {
            let status = ContinueToken::decode(&token).expect_err(problem);
            let message = format!("invalid continue token: continue key is not valid{problem}");
            assert_eq!((status.code, status.message), (400, message));
        }
        let no_json = ContinueToken::decode(&encode_base64(b"x")).expect_err("no JSON").message;
        assert!(no_json.starts_with("invalid continue token: continue key is not valid: "), "{no_json}");
        let slash =
            ContinueToken::decode(&content(r#","rv":1,"start":"/l1""#)).expect("a leading slash is fine");
        assert_eq!(slash.start, "l1");
    }

    proptest! {
        #[test]
        fn bytes_survive_base64(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(decode_base64(&encode_base64(&bytes)), Ok(bytes));
        }

        #[test]
        fn any_content_is_answered(start in ".*", rv in any::<i64>()) {
            let content = json!({"v": VERSION, "rv": rv, "start": start}).to_string();
            if let Ok(token) = ContinueToken::decode(&encode_base64(content.as_bytes())) {
                prop_assert_eq!(start.strip_prefix('/').unwrap_or(&start), &token.start);
                prop_assert!(!token.start.split('/').any(|segment| segment == ".."));
            }
            prop_assert!(ContinueToken::decode(&start).is_err());
        }
    }
}
