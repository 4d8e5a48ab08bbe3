//! The wire, read from its beginning.

use crate::Error;

/// How a value is written.
pub(crate) mod wire_type {
    pub(crate) const VARINT: u8 = 0;
    pub(crate) const FIXED64: u8 = 1;
    pub(crate) const BYTES: u8 = 2;
    pub(crate) const START_GROUP: u8 = 3;
    pub(crate) const END_GROUP: u8 = 4;
    pub(crate) const FIXED32: u8 = 5;
}

/// What is left of a message.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

/// A field begins.
#[derive(Clone, Copy)]
pub(crate) struct Tag {
    pub(crate) number: u32,
    pub(crate) wire_type: u8,
}

impl<'a> Reader<'a> {
    /// The next field; `None` at the end. The name of the message is for errors.
    pub(crate) fn tag(&mut self, message: &str) -> Result<Option<Tag>, Error> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let wire_type = (tag & 7) as u8;
        // As Go does, which cuts the number to 32 bits and looks at their sign.
        let number = (tag >> 3) as u32 as i32;
        if wire_type == wire_type::END_GROUP {
            return Err(Error::NoGroup(message.to_owned()));
        }
        match u32::try_from(number) {
            Ok(number) if number > 0 => Ok(Some(Tag { number, wire_type })),
            _ => Err(Error::IllegalTag { message: message.to_owned(), number, wire_type }),
        }
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(Error::UnexpectedEnd)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Error::Overflow)
    }

    pub(crate) fn fixed64(&mut self) -> Result<u64, Error> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(Error::UnexpectedEnd)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    /// Bytes with their length before them.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let length = i64::try_from(self.varint()?).map_err(|_| Error::Length)?;
        self.take(usize::try_from(length).map_err(|_| Error::Length)?)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Error::UnexpectedEnd)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Leaves out a value that nobody knows.
    pub(crate) fn skip(&mut self, wire_type: u8) -> Result<(), Error> {
        let mut groups = 0_usize;
        let mut wire_type = wire_type;
        loop {
            match wire_type {
                wire_type::VARINT => drop(self.varint()?),
                wire_type::FIXED64 => drop(self.take(8)?),
                wire_type::BYTES => drop(self.bytes()?),
                wire_type::FIXED32 => drop(self.take(4)?),
                wire_type::START_GROUP => groups += 1,
                wire_type::END_GROUP => groups = groups.checked_sub(1).ok_or(Error::EndOfGroup)?,
                other => return Err(Error::IllegalWireType(other)),
            }
            if groups == 0 {
                return Ok(());
            }
            wire_type = (self.varint()? & 7) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_to_64_bits() {
        assert_eq!(Reader(&[0x96, 0x01]).varint(), Ok(150));
        assert_eq!(
            Reader(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]).varint(),
            Ok(u64::MAX)
        );
        assert_eq!(Reader(&[0x80; 11]).varint(), Err(Error::Overflow));
        assert_eq!(Reader(&[0x80]).varint(), Err(Error::UnexpectedEnd));
    }

    #[test]
    fn what_nobody_knows_is_left_out() {
        // A group with a group, a number and a text in it.
        let mut reader = Reader(&[0x0b, 0x10, 0x05, 0x1a, 0x01, b'a', 0x0c, 0x0c, 0x08]);
        assert_eq!(reader.skip(wire_type::START_GROUP), Ok(()));
        assert_eq!(reader.0, [0x08]);
        assert_eq!(Reader(&[1, 2, 3]).skip(wire_type::FIXED32), Err(Error::UnexpectedEnd));
        assert_eq!(Reader(&[]).skip(7), Err(Error::IllegalWireType(7)));
        assert_eq!(Reader(&[]).skip(wire_type::END_GROUP), Err(Error::EndOfGroup));
    }

    #[test]
    fn lengths_beyond_the_end_are_refused() {
        assert_eq!(Reader(&[5, 1]).bytes(), Err(Error::UnexpectedEnd));
        assert_eq!(
            Reader(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]).bytes(),
            Err(Error::Length)
        );
    }
}
