//! JSON for people.

/// Indents compact JSON by two spaces, as Go's `json.Indent` does. Without the newline at the end.
pub(crate) fn indent(compact: &[u8]) -> Vec<u8> {
    let compact = compact.trim_ascii();
    let mut out = Vec::with_capacity(compact.len() * 2);
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = compact.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let end = at + string_length(&compact[at..]);
                out.extend_from_slice(&compact[at - 1..end]);
                at = end;
            }
            b'{' | b'[' => {
                out.push(byte);
                // Nothing stands on a line of its own in something empty.
                if let Some(close @ (b'}' | b']')) = compact.get(at) {
                    out.push(*close);
                    at += 1;
                } else {
                    depth += 1;
                    new_line(depth, &mut out);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                new_line(depth, &mut out);
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                new_line(depth, &mut out);
            }
            b':' => out.extend_from_slice(b": "),
            other => out.push(other),
        }
    }
    out
}

/// How many bytes are left of a string after its opening quote, the closing one included.
fn string_length(rest: &[u8]) -> usize {
    let mut escaped = false;
    let end = rest.iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    });
    end.map_or(rest.len(), |end| end + 1)
}

fn new_line(depth: usize, out: &mut Vec<u8>) {
    out.push(b'\n');
    out.resize(out.len() + 2 * depth, b' ');
}

#[cfg(test)]
mod tests {
    use super::indent;

    #[test]
    fn json_is_indented_as_go_does_it() {
        let cases = [
            ("{}\n", "{}"),
            ("[]", "[]"),
            ("1", "1"),
            (r#"{"a":1}"#, "{\n  \"a\": 1\n}"),
            (
                r#"{"a":{},"b":[],"c":[{"d":"{,:\"}"},null]}"#,
                "{\n  \"a\": {},\n  \"b\": [],\n  \"c\": [\n    {\n      \"d\": \"{,:\\\"}\"\n    },\n    null\n  ]\n}",
            ),
            (r#"{"a":"\\"}"#, "{\n  \"a\": \"\\\\\"\n}"),
            // Broken input does no harm.
            ("]]\"", "\n]\n]\""),
        ];
        for (compact, expected) in cases {
            assert_eq!(String::from_utf8(indent(compact.as_bytes())).expect("text"), expected, "{compact}");
        }
    }
}
