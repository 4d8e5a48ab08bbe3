//! Base64 as Go's standard encoding reads and writes it.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const PAD: u8 = b'=';

/// The text as Go writes it after it has read it: line breaks go, and so do bits that stand for nothing.
/// `None` if it is that already.
///
/// # Errors
///
/// The offset that Go names.
pub(crate) fn canonical(text: &str) -> Result<Option<String>, usize> {
    let bytes = decode(text.as_bytes())?;
    let canonical = encode(&bytes);
    Ok((canonical != text).then_some(canonical))
}

/// Bytes as Go writes them into JSON.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            text.push(char::from(if digit <= chunk.len() { ALPHABET[value as usize] } else { PAD }));
        }
    }
    text
}

/// The bytes that a text in base64 stands for. Line breaks in it are skipped.
///
/// # Errors
///
/// The place of the first byte that does not belong there.
pub fn decode(text: &[u8]) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut at = 0;
    let mut digits = Vec::with_capacity(4);
    let mut padded = false;
    while at < text.len() {
        let byte = text[at];
        at += 1;
        match value(byte) {
            Some(value) => digits.push(value),
            None if is_line_break(byte) => {}
            None if byte == PAD => {
                padding(text, at, digits.len())?;
                padded = true;
                break;
            }
            None => return Err(at - 1),
        }
        if digits.len() == 4 {
            flush(&mut digits, &mut bytes);
        }
    }
    if !digits.is_empty() && !padded {
        return Err(text.len() - digits.len());
    }
    flush(&mut digits, &mut bytes);
    Ok(bytes)
}

/// Checks what follows the first `=`, which stands before `at`.
fn padding(text: &[u8], mut at: usize, digits: usize) -> Result<(), usize> {
    let skip = |mut at: usize| {
        while at < text.len() && is_line_break(text[at]) {
            at += 1;
        }
        at
    };
    match digits {
        0 | 1 => return Err(at - 1),
        2 => {
            at = skip(at);
            match text.get(at) {
                None => return Err(text.len()),
                Some(&PAD) => at += 1,
                Some(_) => return Err(at - 1),
            }
        }
        _ => {}
    }
    at = skip(at);
    if at < text.len() { Err(at) } else { Ok(()) }
}

fn flush(digits: &mut Vec<u8>, bytes: &mut Vec<u8>) {
    let bits = digits.iter().fold(0_u32, |bits, digit| bits << 6 | u32::from(*digit));
    let bits = bits << (6 * (4 - digits.len()));
    let [_, first, second, third] = bits.to_be_bytes();
    bytes.extend([first, second, third].iter().take(digits.len().saturating_sub(1)));
    digits.clear();
}

fn value(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

fn is_line_break(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written_as_go_does() {
        for (text, expect) in [
            ("", Ok(None)),
            ("YQ==", Ok(None)),
            ("YWI=", Ok(None)),
            ("YWJj", Ok(None)),
            ("+/+/", Ok(None)),
            ("YW\nJj\r\n", Ok(Some("YWJj"))),
            ("YQ=\n=\n", Ok(Some("YQ=="))),
            ("YR==", Ok(Some("YQ=="))),
            ("YWJ=", Ok(Some("YWI="))),
            ("not base64", Err(3)),
            ("YQ", Err(0)),
            ("YWJjYQ", Err(4)),
            ("YQ=", Err(3)),
            ("YQ=a", Err(2)),
            ("Y=", Err(1)),
            ("=", Err(0)),
            ("YQ==YQ==", Err(4)),
            ("YWI=a", Err(4)),
            ("\u{e9}", Err(0)),
        ] {
            assert_eq!(canonical(text), expect.map(|text: Option<&str>| text.map(str::to_owned)), "{text:?}");
        }
    }

    #[test]
    fn every_byte_survives() {
        for len in 0..20_u8 {
            let bytes: Vec<u8> = (0..len).map(|n| n.wrapping_mul(37).wrapping_add(len)).collect();
            assert_eq!(decode(encode(&bytes).as_bytes()), Ok(bytes));
        }
    }
}
