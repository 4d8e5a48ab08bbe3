//! YAML as sigs.k8s.io/yaml reads and writes it, which is YAML 1.1 as Go's yaml v2 understands it.

mod read;
mod resolve;
mod scalar;
mod sort;
mod write;

use crate::{Decoded, Options, decode, encode, error::DecodeError, strict::Violation};

pub use self::write::encode_yaml;

/// Reads the first document of a YAML body as an object.
///
/// Further documents are not looked at, as upstream does. The document is turned into JSON first and that
/// is read with [`decode`], so that numbers, unknown fields and their order come out as they do there:
/// `1.0` becomes the integer 1, and violations follow sorted keys. Keys given twice are found only here.
///
/// # Errors
///
/// As [`decode`], and when the YAML does not parse, holds something JSON cannot, or expands to far more
/// than was sent.
pub fn decode_yaml(body: &[u8], options: &Options<'_>) -> Result<Decoded, DecodeError> {
    if body.len() > options.limits.max_bytes {
        return Err(DecodeError::TooLarge { limit: options.limits.max_bytes });
    }
    let (value, repeated) = read::document(body, options.limits)?;
    // Quoting makes JSON longer than the YAML was; its size is bounded by what the reader allows.
    let mut lenient = *options;
    lenient.limits.max_bytes = usize::MAX;
    let mut decoded = decode(&encode(&value), &lenient)?;
    if options.collects() && !repeated.is_empty() {
        decoded.violations.insert(0, Violation::Yaml(repeated));
    }
    Ok(decoded)
}
