//! The wire, written from its end.
//!
//! The length of a message stands before it. Written backwards, the message is there when its length is wanted, and
//! nothing has to be measured first or moved afterwards.

use crate::read::wire_type;

/// Bytes in the opposite of their order.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    /// The bytes in their order.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.0.reverse();
        self.0
    }

    /// How much there is.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// What stands before everything else so far.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend(bytes.iter().rev());
    }

    pub(crate) fn number(&mut self, value: u64) {
        let mut bytes = [0; 10];
        let mut length = 0;
        let mut rest = value;
        loop {
            let more = rest > 0x7f;
            bytes[length] = (rest & 0x7f) as u8 | if more { 0x80 } else { 0 };
            length += 1;
            rest >>= 7;
            if !more {
                break;
            }
        }
        self.raw(&bytes[..length]);
    }

    fn tag(&mut self, number: u32, wire_type: u8) {
        self.number(u64::from(number) << 3 | u64::from(wire_type));
    }

    pub(crate) fn varint(&mut self, number: u32, value: u64) {
        self.number(value);
        self.tag(number, wire_type::VARINT);
    }

    pub(crate) fn double(&mut self, number: u32, value: f64) {
        self.raw(&value.to_le_bytes());
        self.tag(number, wire_type::FIXED64);
    }

    pub(crate) fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.message(number, |writer| writer.raw(bytes));
    }

    /// A field whose value is everything that is written meanwhile.
    pub(crate) fn message(&mut self, number: u32, write: impl FnOnce(&mut Self)) {
        let before = self.len();
        write(self);
        self.number((self.len() - before) as u64);
        self.tag(number, wire_type::BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_out_in_the_opposite_order() {
        let mut writer = Writer::default();
        writer.message(3, |writer| {
            writer.bytes(2, b"ab");
            writer.varint(1, 300);
        });
        writer.double(1, 1.0);
        let expected =
            [&[0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f][..], &[0x1a, 7, 0x08, 0xac, 0x02, 0x12, 2, b'a', b'b']];
        assert_eq!(writer.finish(), expected.concat());
    }
}
