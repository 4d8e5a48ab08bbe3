//! Which form of a document a client wants.

use http::{
    HeaderMap,
    header::{ACCEPT, ACCEPT_ENCODING, IF_NONE_MATCH},
};

use crate::{components::Dialect, leaf::Form};

/// The media types of protobuf, as they are spelled today and as clients spell them.
fn protobuf(dialect: Dialect) -> [&'static str; 2] {
    match dialect {
        Dialect::V3 => [
            "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
            "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
        ],
        Dialect::V2 => [
            "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
            "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        ],
    }
}

/// What a form is called in answers.
pub(crate) fn content_type(form: Form, dialect: Dialect) -> &'static str {
    match form {
        Form::Json => "application/json",
        Form::Protobuf => protobuf(dialect)[0],
    }
}

/// The form that the client likes most; `None` if it takes none. What it wants least by its weight comes last, and what
/// has no weight at all is not wanted.
pub(crate) fn form(headers: &HeaderMap, dialect: Dialect) -> Option<Form> {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let clauses = values.flat_map(|value| value.split(',')).map(str::trim);
    let mut clauses: Vec<(&str, f32)> = clauses.filter(|clause| !clause.is_empty()).map(weighed).collect();
    if headers.get_all(ACCEPT).iter().all(|value| value.as_bytes().trim_ascii().is_empty()) {
        return Some(Form::Json);
    }
    clauses.retain(|(_, weight)| *weight > 0.0);
    clauses.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    clauses.into_iter().find_map(|(media_type, _)| {
        let is = |name: &&str| media_type.eq_ignore_ascii_case(name);
        if ["application/json", "application/*", "*/*"].iter().any(is) {
            Some(Form::Json)
        } else {
            protobuf(dialect).iter().any(is).then_some(Form::Protobuf)
        }
    })
}

/// A media type and its weight.
fn weighed(clause: &str) -> (&str, f32) {
    let mut parts = clause.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default();
    let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    (media_type, weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0)))
}

/// Whether the client takes gzip: the word itself, without weights, as everywhere in the server.
pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|encoding| encoding.trim() == "gzip")
}

/// Whether the client has the document of that tag. Weak and strong tags are the same to a reader.
pub(crate) fn knows(headers: &HeaderMap, tag: &str) -> bool {
    let strong = |tag: &str| tag.trim_start_matches("W/").to_owned();
    let tags = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = tags.flat_map(|tags| tags.split(',')).map(str::trim);
    tags.any(|known| known == "*" || strong(known) == strong(tag))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_form_that_is_wanted_most_is_given() {
        let old = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
        let new = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
        let v2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
        for (accept, wanted) in [
            ("", Some(Form::Json)),
            ("*/*", Some(Form::Json)),
            ("application/*;q=0.1", Some(Form::Json)),
            (old, Some(Form::Protobuf)),
            (&new.to_uppercase(), Some(Form::Protobuf)),
            (&format!("application/json, {old}"), Some(Form::Json)),
            (&format!("application/json;q=0.5, {old};q=0.9"), Some(Form::Protobuf)),
            (&format!("{old};charset=utf-8;q=0.1, */*;q=0.2"), Some(Form::Json)),
            ("application/json;q=0", None),
            ("application/json;q=x", None),
            (&format!("{old};q=0, application/json"), Some(Form::Json)),
            ("application/yaml", None),
            ("application/jsonx", None),
            (";;,", None),
            (v2, None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_str(accept).expect("a value"));
            assert_eq!(form(&headers, Dialect::V3), wanted, "{accept}");
        }
        assert_eq!(form(&HeaderMap::new(), Dialect::V2), Some(Form::Json));
    }
}
