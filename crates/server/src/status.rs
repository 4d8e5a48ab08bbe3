//! The Kubernetes `Status` object: how an API error looks on the wire.

use http::StatusCode;
use serde::Serialize;

use crate::http::{Response, json};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    kind: &'static str,
    api_version: &'static str,
    metadata: Empty,
    status: &'static str,
    message: &'static str,
    reason: &'static str,
    details: Empty,
    code: u16,
}

#[derive(Serialize)]
struct Empty {}

/// The path exists, the method does not.
pub(crate) fn method_not_allowed() -> Response {
    failure(
        StatusCode::METHOD_NOT_ALLOWED,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )
}

fn failure(code: StatusCode, reason: &'static str, message: &'static str) -> Response {
    let status = Status {
        kind: "Status",
        api_version: "v1",
        metadata: Empty {},
        status: "Failure",
        message,
        reason,
        details: Empty {},
        code: code.as_u16(),
    };
    let encoded = serde_json::to_vec(&status).map(|mut bytes| {
        // Go's encoder ends each object with a line break.
        bytes.push(b'\n');
        bytes
    });
    json(code, encoded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::read;

    #[tokio::test]
    async fn a_status_is_written_as_upstream_writes_it() {
        let (code, body) = read(method_not_allowed()).await;
        assert_eq!(code, 405);
        let expected = concat!(
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"#,
            r#""the server does not allow this method on the requested resource","#,
            r#""reason":"MethodNotAllowed","details":{},"code":405}"#,
            "\n"
        );
        assert_eq!(body, expected);
    }
}
