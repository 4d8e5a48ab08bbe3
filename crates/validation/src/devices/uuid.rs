//! The identity of a share of a device.

use concord_meta::go;

use crate::node::Node;

const LENGTH: usize = 36;
const URN: &str = "urn:uuid:";
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
const MALFORMED: &str = "invalid UUID format";

/// A UUID as RFC 4122 writes it, if there is one.
pub(super) fn share(node: Node<'_>) {
    let text = node.text();
    if !node.is_set() {
        return;
    }
    if let Err(why) = parse(text.as_bytes()) {
        node.invalid(text, format!("error validating uid: {why}"));
    } else if text.len() != LENGTH || text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        let why = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase \
                   hexadecimal characters";
        node.invalid(text, why);
    }
}

/// Whether a text is a UUID in any of the forms that Go's parser takes; what is wrong in its words.
fn parse(text: &[u8]) -> Result<(), String> {
    const WITH_URN: usize = LENGTH + URN.len();
    const BRACKETED: usize = LENGTH + 2;
    match text.len() {
        LENGTH => hyphenated(text),
        WITH_URN => {
            let (prefix, rest) = text.split_at(URN.len());
            if !prefix.eq_ignore_ascii_case(URN.as_bytes()) {
                return Err(format!("invalid urn prefix: {}", go::quote(&String::from_utf8_lossy(prefix))));
            }
            hyphenated(rest)
        }
        BRACKETED => match text {
            [b'{', inner @ .., b'}'] => hyphenated(inner),
            _ => Err("invalid bracketed UUID format".to_owned()),
        },
        32 if text.iter().all(u8::is_ascii_hexdigit) => Ok(()),
        32 => Err(MALFORMED.to_owned()),
        length => Err(format!("invalid UUID length: {length}")),
    }
}

fn hyphenated(text: &[u8]) -> Result<(), String> {
    let fits = text.iter().enumerate().all(|(at, byte)| match HYPHENS.contains(&at) {
        true => *byte == b'-',
        false => byte.is_ascii_hexdigit(),
    });
    if fits { Ok(()) } else { Err(MALFORMED.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn identities_have_the_forms_that_go_takes() {
        let plain = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
        for text in [
            plain,
            &plain.to_uppercase(),
            &plain.replace('-', ""),
            &format!("{{{plain}}}"),
            &format!("URN:uuid:{plain}"),
        ] {
            assert_eq!(parse(text.as_bytes()), Ok(()), "{text}");
        }
        for (text, why) in [
            (String::new(), "invalid UUID length: 0"),
            (plain.replace('-', "x"), "invalid UUID format"),
            (plain.replace('b', "g"), "invalid UUID format"),
            (plain.replace('-', "").replace('b', "g"), "invalid UUID format"),
            (format!("({plain})"), "invalid bracketed UUID format"),
            (format!("urn-uuid:{plain}"), "invalid urn prefix: \"urn-uuid:\""),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(why.to_owned()), "{text}");
        }
    }
}
