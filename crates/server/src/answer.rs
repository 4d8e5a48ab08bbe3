//! Answers in the form the client wants them.

use std::sync::Arc;

use concord_codec::{JSON_YAML_AND_PROTOBUF, MediaType, encode_yaml, negotiate, no_transform, wants_pretty};
use concord_meta::Status;
use http::{
    HeaderValue, StatusCode,
    header::{ACCEPT, RETRY_AFTER, USER_AGENT},
};
use serde::Serialize;

use crate::{
    RequestContext,
    http::{Response, text, with_body},
};

/// What of a request decides the form of its answer. Taken before the request is consumed.
#[derive(Debug, Clone, Default)]
pub struct Accept {
    header: Option<HeaderValue>,
    pretty: bool,
}

impl Accept {
    /// What this request wants.
    pub fn of(request: &impl RequestContext) -> Self {
        let headers = request.request_headers();
        let user_agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let query = request.request_uri().query().unwrap_or_default();
        // Hardly anybody asks; do not decode the query of those who do not.
        let parameter = query.contains("pretty").then(|| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs.find(|(name, _)| name == "pretty").map(|(_, value)| value.into_owned())
        });
        let pretty = wants_pretty(parameter.flatten().as_deref(), user_agent);
        Self { header: headers.get(ACCEPT).cloned(), pretty }
    }

    /// The `Accept` header; empty if there is none or it is not text.
    #[must_use]
    pub fn header(&self) -> &str {
        self.header.as_ref().and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Whether the client wants indented output, whatever its `Accept` header says.
    #[must_use]
    pub fn pretty(&self) -> bool {
        self.pretty
    }
}

/// Answers with a `Status`, in the media type the client accepts, but never as a table or the like. A client
/// that accepts nothing of what there is gets its error as JSON: an error must not hide behind another one.
#[must_use]
pub fn respond_status(status: &Status, accept: &Accept) -> Response {
    let negotiated = negotiate(accept.header(), JSON_YAML_AND_PROTOBUF, no_transform);
    let (media_type, body) = match negotiated {
        Ok(choice) if choice.media_type == MediaType::Protobuf => {
            (MediaType::Protobuf, Ok(status.to_protobuf()))
        }
        Ok(choice) if choice.media_type == MediaType::Yaml => (MediaType::Yaml, yaml(status)),
        Ok(choice) => (MediaType::Json, go_json(status, choice.pretty || accept.pretty)),
        Err(_) => (MediaType::Json, go_json(status, true)),
    };
    let body = match body {
        Ok(body) => body,
        Err(error) => {
            tracing::error!(%error, "A status could not be encoded.");
            return text(StatusCode::INTERNAL_SERVER_ERROR, "the answer could not be encoded\n");
        }
    };
    // A success that names no code is a 200; nothing else makes codes outside the valid range.
    let code = if status.code == 0 { 200 } else { status.code };
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = with_body(code, media_type.as_str(), body.into());
    // For who writes down how requests ended.
    response.extensions_mut().insert(Arc::new(status.clone()));
    if let Some(seconds) = status.retry_after_seconds() {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

fn yaml(status: &Status) -> serde_json::Result<Vec<u8>> {
    let mut out = Vec::new();
    encode_yaml(&serde_json::to_value(status)?, &mut out);
    Ok(out)
}

/// JSON as Go writes its structs: members in the order of the type, characters that mean something in HTML
/// escaped; compact with a newline at the end, or indented without one.
pub(crate) fn go_json(value: &impl Serialize, pretty: bool) -> serde_json::Result<Vec<u8>> {
    let plain = if pretty { serde_json::to_vec_pretty(value) } else { serde_json::to_vec(value) }?;
    let mut out = Vec::with_capacity(plain.len() + 1);
    // These characters occur in strings only, so that each can be replaced where it stands.
    let mut rest = plain.as_slice();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'<' => out.extend_from_slice(b"\\u003c"),
            b'>' => out.extend_from_slice(b"\\u003e"),
            b'&' => out.extend_from_slice(b"\\u0026"),
            // Line and paragraph separator, which JavaScript takes for line ends.
            0xe2 if after.starts_with(b"\x80\xa8") || after.starts_with(b"\x80\xa9") => {
                out.extend_from_slice(if after[1] == 0xa8 { b"\\u2028" } else { b"\\u2029" });
                rest = &after[2..];
            }
            other => out.push(other),
        }
    }
    if !pretty {
        out.push(b'\n');
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use concord_meta::Status;
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::http::testing::{read, request};

    async fn answer(headers: &[(&'static str, &'static str)], query: &str) -> (String, String) {
        let mut request = request("GET", &format!("/api/v1/pods{query}"));
        for (name, value) in headers {
            request.headers_mut().insert(*name, HeaderValue::from_static(value));
        }
        let response = respond_status(&Status::bad_request("<b>"), &Accept::of(&request));
        assert_eq!(response.status(), 400);
        let content_type = response.headers()["content-type"].to_str().expect("text").to_owned();
        (content_type, read(response).await.1)
    }

    const COMPACT: &str = concat!(
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"\u003cb\u003e","#,
        r#""reason":"BadRequest","code":400}"#,
        "\n"
    );
    const INDENTED: &str = "{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {},\n  \
        \"status\": \"Failure\",\n  \"message\": \"\\u003cb\\u003e\",\n  \"reason\": \"BadRequest\",\n  \
        \"code\": 400\n}";

    #[tokio::test]
    async fn errors_take_the_form_the_client_accepts() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let with_fallback = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        for (headers, query, content_type, body) in [
            (&[][..], "", "application/json", COMPACT),
            (
                &[("accept", "application/json,application/vnd.kubernetes.protobuf")],
                "",
                "application/json",
                COMPACT,
            ),
            (&[("accept", with_fallback)], "", "application/json", COMPACT),
            (&[("accept", table)], "", "application/json", INDENTED),
            (&[("accept", "text/html")], "", "application/json", INDENTED),
            (&[("accept", "application/json;pretty=1")], "", "application/json", INDENTED),
            (&[], "?pretty=true", "application/json", INDENTED),
            (&[("user-agent", "curl/8")], "", "application/json", INDENTED),
            (&[("user-agent", "curl/8")], "?pretty=0", "application/json", COMPACT),
            (&[("user-agent", "curl/8")], "?fieldManager=pretty", "application/json", INDENTED),
        ] {
            let expected = (content_type.to_owned(), body.to_owned());
            assert_eq!(answer(headers, query).await, expected, "{headers:?} {query}");
        }
        let protobuf = "application/vnd.kubernetes.protobuf";
        let status = Status::bad_request("<b>");
        for accept in [protobuf, "application/vnd.kubernetes.protobuf,application/json"] {
            let mut request = request("GET", "/api/v1/pods");
            request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
            let response = respond_status(&status, &Accept::of(&request));
            assert_eq!(response.headers()["content-type"], protobuf);
            let body = response.into_body().collect().await.expect("a body").to_bytes();
            assert_eq!(body, status.to_protobuf(), "{accept}");
        }
        let (content_type, yaml) = answer(&[("accept", "application/yaml")], "").await;
        assert_eq!(content_type, "application/yaml");
        assert!(yaml.starts_with("apiVersion: v1\ncode: 400\nkind: Status\nmessage: <b>\n"), "{yaml}");
    }

    #[test]
    fn retries_are_told_in_the_header_too() {
        let later = respond_status(&Status::too_many_requests("later", 7), &Accept::default());
        assert_eq!(later.headers()[RETRY_AFTER], "7");
        assert!(
            !respond_status(&Status::unauthorized(), &Accept::default()).headers().contains_key(RETRY_AFTER)
        );
    }

    #[test]
    fn separators_are_escaped_as_go_does() {
        let text = go_json(&"a\u{2028}\u{2029}\u{2027}&é\u{7f}\u{1}", false).expect("encoded");
        assert_eq!(
            String::from_utf8(text).expect("text"),
            "\"a\\u2028\\u2029\u{2027}\\u0026é\u{7f}\\u0001\"\n"
        );
    }
}
