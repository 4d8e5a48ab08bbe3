//! A `Status` as protobuf.
//!
//! The message is small and never changes, and every layer that answers requests has statuses: so it is written here,
//! without the tables by which objects are.

use super::{Outcome, Status, StatusCause, StatusDetails};

impl Status {
    /// The status in upstream's envelope, as clients get it that accept protobuf.
    pub fn to_protobuf(&self) -> Vec<u8> {
        let mut type_meta = Message::default();
        type_meta.text(1, "v1").text(2, "Status");
        let mut envelope = Message(b"k8s\0".to_vec());
        envelope.bytes(1, &type_meta.0).bytes(2, &self.message().0).text(3, "").text(4, "");
        envelope.0
    }

    /// Upstream writes strings and numbers also when they are empty.
    fn message(&self) -> Message {
        let mut metadata = Message::default();
        metadata.text(1, "").text(2, "").text(3, &self.continue_token);
        let outcome = match self.outcome {
            Outcome::Success => "Success",
            Outcome::Failure => "Failure",
        };
        let mut status = Message::default();
        status.bytes(1, &metadata.0).text(2, outcome).text(3, &self.message).text(4, self.reason.as_str());
        if let Some(details) = &self.details {
            status.bytes(5, &details.message().0);
        }
        status.number(6, u64::from(self.code));
        status
    }
}

impl StatusDetails {
    fn message(&self) -> Message {
        let mut details = Message::default();
        details.text(1, &self.name).text(2, &self.group).text(3, &self.kind);
        for cause in &self.causes {
            details.bytes(4, &cause.message().0);
        }
        details.number(5, u64::from(self.retry_after_seconds)).text(6, &self.uid);
        details
    }
}

impl StatusCause {
    fn message(&self) -> Message {
        let mut cause = Message::default();
        cause.text(1, self.reason.as_str()).text(2, &self.message).text(3, &self.field);
        cause
    }
}

/// The fields of a message one after the other.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) -> &mut Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(&mut self, field: u64, text: &str) -> &mut Self {
        self.bytes(field, text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GroupResource;

    #[test]
    fn every_member_is_written_in_the_order_of_its_number() {
        let status = Status::not_found(&GroupResource::new("", "pods"), "web");
        let details = b"\x0a\x03web\x12\x00\x1a\x04pods\x28\x00\x32\x00";
        let body = [
            &b"\x0a\x06\x0a\x00\x12\x00\x1a\x00\x12\x07Failure\x1a\x14pods \"web\" not found\x22\x08NotFound\x2a"[..],
            &[details.len() as u8],
            details,
            b"\x30\x94\x03",
        ]
        .concat();
        let expected = [
            &b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Status\x12"[..],
            &[body.len() as u8],
            &body,
            b"\x1a\x00\x22\x00",
        ]
        .concat();
        assert_eq!(status.to_protobuf(), expected);
    }

    #[test]
    fn causes_and_long_texts_are_whole() {
        let cause =
            StatusCause { message: "x".repeat(300), field: "spec".to_owned(), ..StatusCause::default() };
        let message = cause.message().0;
        assert_eq!(message.len(), 2 + 3 + 300 + 6);
        assert_eq!(message[..5], [0x0a, 0, 0x12, 0xac, 0x02]);
        assert!(message.ends_with(b"\x1a\x04spec"));
        let details =
            StatusDetails { causes: vec![cause; 2], retry_after_seconds: 1, ..StatusDetails::default() };
        let details = details.message().0;
        assert_eq!(details.len(), 6 + 2 * (3 + message.len()) + 4);
        assert!(details.ends_with(b"\x28\x01\x32\x00"));
    }
}
