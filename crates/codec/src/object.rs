use serde_json::{Map, Value};

use crate::{DecodeError, go};

/// How much of a body an error message shows.
const SUMMARY_BYTES: usize = 30;

/// What an object says it is; empty where it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeMeta {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

/// Reads `kind` and `apiVersion`.
///
/// # Errors
///
/// When one of them is neither a string nor null, or `apiVersion` has more than one slash.
pub fn type_meta(object: &Map<String, Value>) -> Result<TypeMeta, DecodeError> {
    let api_version = type_field(object, "apiVersion")?;
    let kind = type_field(object, "kind")?.to_owned();
    let (group, version) = match api_version.split_once('/') {
        // A lone slash is the same as nothing.
        _ if api_version == "/" => ("", ""),
        None => ("", api_version),
        Some((group, version)) if !version.contains('/') => (group, version),
        Some(_) => return Err(DecodeError::GroupVersion { api_version: api_version.to_owned() }),
    };
    Ok(TypeMeta { group: group.to_owned(), version: version.to_owned(), kind })
}

fn type_field<'a>(object: &'a Map<String, Value>, field: &'static str) -> Result<&'a str, DecodeError> {
    let found = match object.get(field) {
        None | Some(Value::Null) => return Ok(""),
        Some(Value::String(text)) => return Ok(text),
        Some(Value::Bool(_)) => "bool",
        Some(Value::Number(_)) => "number",
        Some(Value::Array(_)) => "array",
        Some(Value::Object(_)) => "object",
    };
    Err(DecodeError::TypeField { found, field })
}

/// The message of the BadRequest a body that cannot be decoded is answered with.
///
/// `seen` is what the request or the body says the object is; it shows only where upstream would know it
/// by then. `expected_kind` is what the endpoint takes, `summary` what is shown of the body.
pub fn bad_object(error: &DecodeError, seen: &TypeMeta, expected_kind: &str, summary: &str) -> String {
    if !error.hides_the_kind() && !seen.kind.is_empty() {
        let TypeMeta { kind, version, .. } = seen;
        let version = go::quote(version);
        return format!("{kind} in version {version} cannot be handled as a {expected_kind}: {error}");
    }
    let step = if error.met_while_looking_for_the_kind() {
        "couldn't get version/kind; json parse error: "
    } else {
        ""
    };
    format!(
        "the object provided is unrecognized (must be of type {expected_kind}): {step}{error} ({summary})"
    )
}

/// The beginning of a body for an error message: as it is when it looks like JSON, else in hexadecimal.
pub fn summarize(body: &[u8]) -> String {
    let Some(first) = body.first() else { return String::from("<empty>") };
    let shown = &body[..body.len().min(SUMMARY_BYTES)];
    let mut summary = match first {
        b'{' => String::from_utf8_lossy(shown).into_owned(),
        _ => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if body.len() > SUMMARY_BYTES {
        summary.push_str(" ...");
    }
    summary
}

/// The text about an object without a kind where one is needed.
pub fn missing_kind(body: &[u8]) -> String {
    format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, decode};

    fn message(body: &[u8]) -> String {
        let seen = TypeMeta { group: String::new(), version: "v1".into(), kind: "ConfigMap".into() };
        let decoded = decode(body, &Options::default());
        let error = decoded.and_then(|decoded| type_meta(&decoded.object)).expect_err("a bad body");
        bad_object(&error, &seen, "ConfigMap", &summarize(body))
    }

    #[test]
    fn bad_bodies_are_described_as_upstream_does() {
        let unrecognized = "the object provided is unrecognized (must be of type ConfigMap): ";
        let looking = "couldn't get version/kind; json parse error: ";
        let go_struct = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
        let cases: [(&[u8], String); 8] = [
            (b"", format!("{unrecognized}{looking}unexpected end of JSON input (<empty>)")),
            (b"{", format!("{unrecognized}{looking}unexpected end of JSON input ({{)")),
            (
                b"[]",
                format!("{unrecognized}{looking}json: cannot unmarshal array into Go value of type {go_struct} (5b5d)"),
            ),
            (
                br#"{"kind":5}"#,
                format!("{unrecognized}{looking}json: cannot unmarshal number into Go struct field .kind of type string ({{\"kind\":5}})"),
            ),
            (
                br#"{"apiVersion":"a/b/c"}"#,
                format!("{unrecognized}unexpected GroupVersion string: a/b/c ({{\"apiVersion\":\"a/b/c\"}})"),
            ),
            (
                br#"{"metadata":{"name":"a-long-name"},}"#,
                format!("{unrecognized}{looking}invalid character '}}' looking for beginning of object key string ({{\"metadata\":{{\"name\":\"a-long-na ...)"),
            ),
            (
                b"\xff\xfe",
                format!("{unrecognized}{looking}invalid character 'ÿ' looking for beginning of value (fffe)"),
            ),
            (
                br#"{"a":1e400}"#,
                "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number 1e400 into Go value of type float64".into(),
            ),
        ];
        for (body, expected) in cases {
            assert_eq!(message(body), expected);
        }
    }

    #[test]
    fn the_type_is_read() {
        let read = |body: &str| {
            let decoded = decode(body.as_bytes(), &Options::default()).expect("JSON");
            let TypeMeta { group, version, kind } = type_meta(&decoded.object).expect("a type");
            format!("{group}|{version}|{kind}")
        };
        assert_eq!(read(r#"{"apiVersion":"apps/v1","kind":"Deployment"}"#), "apps|v1|Deployment");
        assert_eq!(read(r#"{"apiVersion":"v1","kind":null}"#), "|v1|");
        assert_eq!(read(r#"{"apiVersion":"/"}"#), "||");
        assert_eq!(read("null"), "||");
    }

    #[test]
    fn missing_fields_are_described() {
        assert_eq!(missing_kind(b"{}"), "Object 'Kind' is missing in '{}'");
    }
}
