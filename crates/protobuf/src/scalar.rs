//! Types that are scalars in JSON and messages in protobuf.

use concord_codec::{Limits, decode_value, encode_into};
use concord_schema::{format_time, parse_time};
use serde_json::Value;

use crate::{
    Error,
    read::{Reader, Tag, wire_type},
    write::Writer,
};

/// A text. Bytes that are no UTF-8 become what Go makes of them in JSON: U+FFFD, one per byte.
pub(crate) fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// Reads the fields of a small message; what `take` does not take is skipped.
fn each<'a>(
    message: &str,
    bytes: &'a [u8],
    mut take: impl FnMut(Tag, &mut Reader<'a>) -> Result<bool, Error>,
) -> Result<(), Error> {
    let mut reader = Reader(bytes);
    while let Some(tag) = reader.tag(message)? {
        if !take(tag, &mut reader)? {
            reader.skip(tag.wire_type)?;
        }
    }
    Ok(())
}

/// A moment, to the second or to the microsecond. An empty message is none.
pub(crate) fn time(bytes: &[u8], micro: bool) -> Result<Value, Error> {
    let (mut seconds, mut nanos) = (0, 0);
    each("Timestamp", bytes, |tag, reader| {
        match (tag.number, tag.wire_type) {
            (1, wire_type::VARINT) => seconds = reader.varint()? as i64,
            (2, wire_type::VARINT) => nanos = reader.varint()? as i32,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    if !micro {
        return format_time(seconds, None).map(Value::String).ok_or(Error::Time(seconds));
    }
    // Go takes more nanoseconds than a second has, and fewer than none.
    let micros = i64::from(nanos) / 1000;
    let unix = seconds.checked_add(micros.div_euclid(1_000_000)).ok_or(Error::Time(seconds))?;
    let micros = u32::try_from(micros.rem_euclid(1_000_000)).unwrap_or_default();
    format_time(unix, Some(micros)).map(Value::String).ok_or(Error::Time(seconds))
}

pub(crate) fn write_time(writer: &mut Writer, value: Option<&Value>) {
    let Some((seconds, micros)) = value.and_then(Value::as_str).and_then(parse_time) else { return };
    writer.varint(2, u64::from(micros) * 1000);
    writer.varint(1, seconds as u64);
}

/// An amount. An empty message is zero.
pub(crate) fn quantity(bytes: &[u8]) -> Result<Value, Error> {
    let mut amount = "0".to_owned();
    each("Quantity", bytes, |tag, reader| {
        if (tag.number, tag.wire_type) != (1, wire_type::BYTES) {
            return Ok(false);
        }
        amount = text(reader.bytes()?);
        Ok(true)
    })?;
    Ok(Value::String(amount))
}

pub(crate) fn write_quantity(writer: &mut Writer, value: Option<&Value>) {
    writer.bytes(1, value.and_then(Value::as_str).unwrap_or("0").as_bytes());
}

pub(crate) fn int_or_string(bytes: &[u8]) -> Result<Value, Error> {
    let (mut is_text, mut number, mut string) = (false, 0, String::new());
    each("IntOrString", bytes, |tag, reader| {
        match (tag.number, tag.wire_type) {
            (1, wire_type::VARINT) => is_text = reader.varint()? == 1,
            (2, wire_type::VARINT) => number = reader.varint()? as i32,
            (3, wire_type::BYTES) => string = text(reader.bytes()?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(if is_text { Value::String(string) } else { number.into() })
}

pub(crate) fn write_int_or_string(writer: &mut Writer, value: Option<&Value>) {
    let text = value.and_then(Value::as_str);
    let number = value.and_then(Value::as_i64).unwrap_or_default();
    writer.bytes(3, text.unwrap_or_default().as_bytes());
    writer.varint(2, number as u64);
    writer.varint(1, u64::from(text.is_some()));
}

/// JSON in a message of its own. An empty message is null.
pub(crate) fn json(bytes: &[u8], max_depth: usize) -> Result<Value, Error> {
    let mut raw: &[u8] = &[];
    each("RawExtension", bytes, |tag, reader| {
        if (tag.number, tag.wire_type) != (1, wire_type::BYTES) {
            return Ok(false);
        }
        raw = reader.bytes()?;
        Ok(true)
    })?;
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    Ok(decode_value(raw, Limits { max_bytes: usize::MAX, max_depth })?)
}

pub(crate) fn write_json(writer: &mut Writer, value: Option<&Value>) {
    let Some(value) = value else { return };
    let mut raw = Vec::new();
    encode_into(value, &mut raw);
    writer.bytes(1, &raw);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(write: fn(&mut Writer, Option<&Value>), value: &Value) -> Vec<u8> {
        let mut writer = Writer::default();
        write(&mut writer, Some(value).filter(|value| !value.is_null()));
        writer.finish()
    }

    #[test]
    fn scalars_are_read_as_they_were_written() {
        for (value, read) in [("2026-11-16T01:02:03Z", false), ("2026-11-16T01:02:03.000004Z", true)] {
            let bytes = written(write_time, &value.into());
            assert_eq!(time(&bytes, read), Ok(value.into()));
        }
        assert_eq!(time(&[], true), Ok(Value::Null));
        assert!(written(write_time, &Value::Null).is_empty());
        for value in [json!(-3), json!("50%"), json!("")] {
            assert_eq!(int_or_string(&written(write_int_or_string, &value)), Ok(value));
        }
        assert_eq!(quantity(&written(write_quantity, &"500m".into())), Ok("500m".into()));
        assert_eq!(quantity(&[]), Ok("0".into()));
        for value in [json!({"a": [1, null]}), json!("text"), Value::Null] {
            assert_eq!(json(&written(write_json, &value), 500), Ok(value));
        }
    }

    #[test]
    fn what_json_cannot_tell_is_refused() {
        let mut writer = Writer::default();
        writer.varint(1, i64::MAX as u64);
        assert_eq!(time(&writer.finish(), false), Err(Error::Time(i64::MAX)));
        assert!(matches!(json(&[0x0a, 1, b'{'], 500), Err(Error::Json(_))));
        assert!(matches!(json(b"\x0a\x06[[[]]]", 2), Err(Error::Json(_))));
        assert_eq!(text(b"a\xff\xfeb"), "a\u{fffd}\u{fffd}b");
    }
}
