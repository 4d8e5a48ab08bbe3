//! Reads bodies that must not be long.

use bytes::{Bytes, BytesMut};
use concord_server::Body;
use http_body_util::BodyExt as _;

/// Reads a body of at most so many bytes.
///
/// # Errors
///
/// Why it could not be read, for the log.
pub(crate) async fn read(mut body: Body, most: usize) -> Result<Bytes, String> {
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| format!("the answer breaks off: {error}"))?;
        let Ok(data) = frame.into_data() else { continue };
        if read.len() + data.len() > most {
            return Err(format!("the answer has more than {most} bytes"));
        }
        read.extend_from_slice(&data);
    }
    Ok(read.freeze())
}
