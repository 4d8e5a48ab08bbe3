//! The envelope that tells what an object is.

use serde_json::{Map, Value};

use crate::{
    Codec, Error,
    read::{Reader, wire_type},
    scalar,
    write::Writer,
};

/// What everything begins with.
const PREFIX: &[u8; 4] = b"k8s\0";

/// The envelope of an object: upstream's `runtime.Unknown`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown<'a> {
    /// The group and version of the object.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// The object itself, as the message of its kind.
    pub raw: &'a [u8],
}

/// What the metadata of a list says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListMeta<'a> {
    /// The state that the list shows.
    pub resource_version: &'a str,
    /// Where the next page begins; empty on the last.
    pub continue_token: &'a str,
    /// How many objects are on the pages to come, if that is known.
    pub remaining_item_count: Option<i64>,
}

impl<'a> Unknown<'a> {
    /// Opens the envelope.
    ///
    /// # Errors
    ///
    /// When it is none.
    pub fn read(body: &'a [u8]) -> Result<Self, Error> {
        let message = match body.strip_prefix(PREFIX) {
            _ if body.is_empty() => return Err(Error::EmptyData),
            None => return Err(Error::Prefix),
            Some([]) => return Err(Error::EmptyBody),
            Some(message) => message,
        };
        let mut unknown = Self::default();
        let mut reader = Reader(message);
        while let Some(tag) = reader.tag("Unknown")? {
            match (tag.number, tag.wire_type) {
                (1, wire_type::BYTES) => unknown.type_meta(reader.bytes()?)?,
                (2, wire_type::BYTES) => unknown.raw = reader.bytes()?,
                (number @ 1..=4, wire_type) if wire_type != wire_type::BYTES => {
                    let field = ["TypeMeta", "Raw", "ContentEncoding", "ContentType"][number as usize - 1];
                    return Err(Error::WrongWireType { wire_type, field: field.to_owned() });
                }
                (_, wire_type) => reader.skip(wire_type)?,
            }
        }
        Ok(unknown)
    }

    fn type_meta(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut reader = Reader(bytes);
        while let Some(tag) = reader.tag("TypeMeta")? {
            match (tag.number, tag.wire_type) {
                (1, wire_type::BYTES) => self.api_version = scalar::text(reader.bytes()?),
                (2, wire_type::BYTES) => self.kind = scalar::text(reader.bytes()?),
                (_, wire_type) => reader.skip(wire_type)?,
            }
        }
        Ok(())
    }
}

impl Codec {
    /// An object in its envelope. It must be as its schema normalises it.
    pub fn encode(&self, api_version: &str, kind: &str, object: &Map<String, Value>) -> Vec<u8> {
        envelope(api_version, kind, |writer| self.write(object, writer))
    }

    /// A list of objects of this kind in its envelope. The objects come from the last to the first, so that no more
    /// than one of them has to be there at a time.
    ///
    /// # Errors
    ///
    /// Those of the objects.
    pub fn encode_list<E>(
        &self,
        api_version: &str,
        kind: &str,
        meta: ListMeta<'_>,
        reversed: impl IntoIterator<Item = Result<Map<String, Value>, E>>,
    ) -> Result<Vec<u8>, E> {
        let mut outcome = Ok(());
        let list = envelope(api_version, kind, |writer| {
            for object in reversed {
                match object {
                    Ok(object) => writer.message(2, |writer| self.write(&object, writer)),
                    Err(error) => {
                        outcome = Err(error);
                        return;
                    }
                }
            }
            writer.message(1, |writer| meta.write(writer));
        });
        outcome.map(|()| list)
    }
}

impl ListMeta<'_> {
    pub(crate) fn write(&self, writer: &mut Writer) {
        if let Some(count) = self.remaining_item_count {
            writer.varint(4, count as u64);
        }
        writer.bytes(3, self.continue_token.as_bytes());
        writer.bytes(2, self.resource_version.as_bytes());
        // The link to itself that lists once had.
        writer.bytes(1, b"");
    }
}

pub(crate) fn envelope(api_version: &str, kind: &str, write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::default();
    // How the object is encoded: as always, but upstream writes even that.
    writer.bytes(4, b"");
    writer.bytes(3, b"");
    writer.message(2, write);
    writer.message(1, |writer| {
        writer.bytes(2, kind.as_bytes());
        writer.bytes(1, api_version.as_bytes());
    });
    writer.raw(PREFIX);
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_are_read_as_they_were_written() {
        let envelope = envelope("apps/v1", "Deployment", |writer| writer.raw(b"abc"));
        let expected =
            Unknown { api_version: "apps/v1".to_owned(), kind: "Deployment".to_owned(), raw: b"abc" };
        assert_eq!(Unknown::read(&envelope), Ok(expected));
        assert!(envelope.ends_with(&[0x1a, 0, 0x22, 0]));
        for end in 4..envelope.len() {
            // Whatever is cut off, it is an error or there is less in it.
            if let Ok(unknown) = Unknown::read(&envelope[..end]) {
                assert!(unknown.raw.len() <= 3);
            }
        }
    }

    #[test]
    fn what_is_no_envelope_is_refused_in_upstreams_words() {
        for (body, message) in [
            (&b""[..], "empty data"),
            (
                b"k8s",
                "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
            ),
            (
                b"{\"kind\"",
                "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
            ),
            (b"k8s\0", "empty body"),
            (b"k8s\0\x0a", "unexpected EOF"),
            (b"k8s\0\x0a\x05", "unexpected EOF"),
            (b"k8s\0\x08\x05", "proto: wrong wireType = 0 for field TypeMeta"),
            (b"k8s\0\x0c", "proto: Unknown: wiretype end group for non-group"),
            (b"k8s\0\x00\x00", "proto: Unknown: illegal tag 0 (wire type 0)"),
            (b"k8s\0\x2f", "proto: illegal wireType 7"),
        ] {
            assert_eq!(Unknown::read(body).map_err(|error| error.to_string()), Err(message.to_owned()));
        }
    }
}
