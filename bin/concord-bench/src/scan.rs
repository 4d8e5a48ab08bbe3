//! Finds the few values we need in answers without parsing them: parsing would cost more than the rest of
//! the client together.
//!
//! This is safe only because the objects are our own: nothing in them looks like one of the markers.

use std::sync::LazyLock;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use memchr::memmem::Finder;

static RESOURCE_VERSION: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r#""resourceVersion":""#));
static CONTINUE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r#""continue":""#));
static STAMP: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r#""stamp":""#));

/// A list's metadata stands before or after its items; this much of either end holds it.
const END_BYTES: usize = 4096;

fn text_after<'a>(finder: &Finder<'_>, body: &'a [u8]) -> Option<&'a str> {
    let rest = &body[finder.find(body)? + finder.needle().len()..];
    std::str::from_utf8(&rest[..memchr::memchr(b'"', rest)?]).ok()
}

/// The `metadata.resourceVersion` of an object, or of a list when its metadata comes first.
pub(crate) fn resource_version(body: &[u8]) -> Result<u64> {
    let text = text_after(&RESOURCE_VERSION, body).context("the answer has no resourceVersion")?;
    text.parse().with_context(|| format!("resourceVersion {text:?} is not a number"))
}

/// The value that the writers put into `data.stamp`.
pub(crate) fn stamp(body: &[u8]) -> Option<&str> {
    text_after(&STAMP, body)
}

/// Both ends of a body that went by.
#[derive(Default)]
pub(crate) struct Ends {
    head: Vec<u8>,
    tail: Vec<u8>,
    /// Of the whole body.
    pub(crate) bytes: u64,
}

impl Ends {
    fn push(&mut self, data: &[u8]) {
        self.bytes += data.len() as u64;
        let missing = END_BYTES.saturating_sub(self.head.len()).min(data.len());
        self.head.extend_from_slice(&data[..missing]);
        if data.len() >= END_BYTES {
            self.tail.clear();
        }
        self.tail.extend_from_slice(&data[data.len().saturating_sub(END_BYTES)..]);
        let surplus = self.tail.len().saturating_sub(END_BYTES);
        self.tail.drain(..surplus);
    }

    /// The token of the next page, as it may be put into a query.
    pub(crate) fn continue_token(&self) -> Option<String> {
        let token = text_after(&CONTINUE, &self.head).or_else(|| text_after(&CONTINUE, &self.tail))?;
        // Tokens are base64; only these characters of its alphabets mean something else in a query.
        let token = token.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        Some(token).filter(|token| !token.is_empty())
    }
}

/// What is done with the bodies of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// They go by: next to nothing of what is measured is ours.
    Passing,
    /// They are decoded, as clients do that work with them.
    Decoding,
}

/// Lets a body go by, keeping its ends.
pub(crate) async fn drain(mut body: Incoming) -> Result<Ends> {
    let mut ends = Ends::default();
    while let Some(frame) = body.frame().await {
        if let Some(data) = frame?.data_ref() {
            ends.push(data);
        }
    }
    Ok(ends)
}

/// Reads a body; gives its ends.
pub(crate) async fn read(body: Incoming, reading: Reading) -> Result<Ends> {
    if reading == Reading::Passing {
        return drain(body).await;
    }
    let mut ends = Ends::default();
    let whole = whole(body).await?;
    ends.push(&whole);
    let decoded: serde_json::Value = serde_json::from_slice(&whole).context("the answer is not JSON")?;
    ensure!(decoded.is_object(), "the answer is no object");
    Ok(ends)
}

/// A whole body; for answers that are small.
pub(crate) async fn whole(body: Incoming) -> Result<Bytes> {
    Ok(body.collect().await?.to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found() {
        let body = br#"{"metadata":{"resourceVersion":"42","managedFields":[{"f:stamp":{}}]},"data":{"stamp":"1.2"}}"#;
        assert_eq!(resource_version(body).expect("found"), 42);
        assert_eq!(stamp(body), Some("1.2"));
        assert_eq!(stamp(br#"{"data":{"stamp":"cut of"#), None);
        assert!(resource_version(b"{}").is_err());
        let failure = resource_version(br#"{"resourceVersion":"x"}"#).expect_err("not a number");
        assert!(failure.to_string().contains("\"x\" is not a number"));
    }

    fn ends(frames: &[&[u8]]) -> Ends {
        let mut ends = Ends::default();
        frames.iter().for_each(|frame| ends.push(frame));
        ends
    }

    #[test]
    fn the_continue_token_is_found_at_either_end() {
        let filler = vec![b'x'; 3 * END_BYTES];
        let metadata = br#"{"metadata":{"continue":"a+b/c=","resourceVersion":"1"}}"#;
        for frames in [[&metadata[..], &filler], [&filler, &metadata[..]]] {
            let ends = ends(&frames);
            assert_eq!(ends.continue_token().as_deref(), Some("a%2Bb%2Fc%3D"));
            assert_eq!(ends.bytes, (filler.len() + metadata.len()) as u64);
        }
    }

    #[test]
    fn the_continue_token_is_found_across_frames() {
        let filler = vec![b'x'; END_BYTES];
        let ends = ends(&[&filler, br#"{"metadata":{"conti"#, br#"nue":"abc"}}"#]);
        assert_eq!(ends.continue_token().as_deref(), Some("abc"));
    }

    #[test]
    fn the_last_page_has_no_token() {
        assert_eq!(ends(&[br#"{"metadata":{"continue":""}}"#]).continue_token(), None);
        assert_eq!(ends(&[br#"{"metadata":{}}"#]).continue_token(), None);
        assert_eq!(ends(&[]).continue_token(), None);
    }
}
