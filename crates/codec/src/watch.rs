use crate::splice::{Splice, TypeFields};

/// What happened to the object of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// It came to be, or came to match.
    Added,
    /// It changed.
    Modified,
    /// It was deleted, or no longer matches.
    Deleted,
    /// Nothing: the object only carries a resource version.
    Bookmark,
    /// The watch ends with the Status that is the object.
    Error,
}

impl EventType {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }
}

/// Writes a frame of a watch stream around an encoded object.
pub fn write_event(event: EventType, object: &[u8], out: &mut Vec<u8>) {
    out.reserve(object.len() + 40);
    begin(event, out);
    out.extend_from_slice(object.trim_ascii());
    out.extend_from_slice(b"}\n");
}

/// Writes a frame of a watch stream around stored bytes, with the revision as their `resourceVersion`.
pub fn write_spliced_event(
    event: EventType,
    stored: &[u8],
    splice: &Splice,
    resource_version: u64,
    out: &mut Vec<u8>,
) {
    out.reserve(stored.len() + 96);
    begin(event, out);
    splice.write(stored, resource_version, TypeFields::Keep, out);
    out.extend_from_slice(b"}\n");
}

fn begin(event: EventType, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(event.as_str().as_bytes());
    out.extend_from_slice(b"\",\"object\":");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_framed() {
        let mut out = Vec::new();
        write_event(EventType::Error, b"{\"kind\":\"Status\"}\n", &mut out);
        let stored = br#"{"metadata":{"name":"a"}}"#;
        let splice = Splice::find(stored).expect("an object");
        write_spliced_event(EventType::Added, stored, &splice, 7, &mut out);
        let expected = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\"}}\n\
             {\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"}}}\n";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }
}
