//! What documents say about types besides their structure.

use std::io::Read as _;

use flate2::read::DeflateDecoder;
use serde_json::{Map, Value};

/// What the build script wrote.
static COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/annotations.json.z"));

/// Descriptions, enums, defaults and the like: parts of OpenAPI schemas, by the names of their definitions.
///
/// They are unpacked by every call and kept by nobody: it takes a few milliseconds, and few ever ask.
pub fn annotations() -> Map<String, Value> {
    let mut text = Vec::new();
    let read = DeflateDecoder::new(COMPRESSED).read_to_end(&mut text);
    read.expect("the build script compresses what is unpacked here");
    serde_json::from_slice(&text).expect("the build script writes JSON")
}
