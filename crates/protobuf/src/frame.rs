use crate::write::Writer;

/// An event of a watch as it is sent: its length, then the event, with an object in its envelope.
pub fn watch_event(event: &str, object: &[u8]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.message(2, |writer| writer.bytes(1, object));
    writer.bytes(1, event.as_bytes());
    let length = u32::try_from(writer.len()).unwrap_or(u32::MAX);
    writer.raw(&length.to_be_bytes());
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_its_length_before_it() {
        let expected = [&[0, 0, 0, 13, 0x0a, 5][..], b"ADDED", &[0x12, 4, 0x0a, 2], b"ab"].concat();
        assert_eq!(watch_event("ADDED", b"ab"), expected);
    }
}
