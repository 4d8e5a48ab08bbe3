//! A `Status` as JSON.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Outcome, Reason, Status, StatusDetails};

/// The members in upstream's order; empty ones are left out, `metadata` never is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Metadata<&'a str>,
    status: Outcome,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "Reason::is_empty")]
    reason: &'a Reason,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a StatusDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
}

#[derive(Serialize, Deserialize)]
struct Metadata<T> {
    #[serde(rename = "continue", default, skip_serializing_if = "Option::is_none")]
    continue_token: Option<T>,
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let token = Some(self.continue_token.as_str()).filter(|token| !token.is_empty());
        let written = Written {
            kind: "Status",
            api_version: "v1",
            metadata: Metadata { continue_token: token },
            status: self.outcome,
            message: &self.message,
            reason: &self.reason,
            details: self.details.as_deref(),
            code: Some(self.code).filter(|code| *code != 0),
        };
        written.serialize(serializer)
    }
}

/// What others send (webhooks, extension servers); anything may be missing or null.
#[derive(Deserialize)]
struct Read {
    metadata: Option<Metadata<String>>,
    status: Option<String>,
    message: Option<String>,
    reason: Option<Reason>,
    details: Option<Box<StatusDetails>>,
    code: Option<i32>,
}

impl<'de> Deserialize<'de> for Status {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Read::deserialize(deserializer)?;
        let succeeded = read.status.is_some_and(|status| status == "Success");
        Ok(Self {
            outcome: if succeeded { Outcome::Success } else { Outcome::Failure },
            message: read.message.unwrap_or_default(),
            reason: read.reason.unwrap_or_default(),
            details: read.details,
            // A number that is no HTTP status is none.
            code: read.code.and_then(|code| u16::try_from(code).ok()).unwrap_or_default(),
            continue_token: read.metadata.and_then(|metadata| metadata.continue_token).unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{GroupKind, GroupResource, Status, field};

    fn check(status: &Status, expected: &str) {
        let written = serde_json::to_string(status).expect("a status is JSON");
        assert_eq!(written, expected);
        assert_eq!(&serde_json::from_str::<Status>(&written).expect("our own JSON"), status);
    }

    #[test]
    fn members_are_in_upstreams_order_and_empty_ones_are_left_out() {
        check(
            &Status::not_found(&GroupResource::new("apps", "deployments"), "web"),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"deployments.apps \"web\" not found","reason":"NotFound","details":{"name":"web","group":"apps","kind":"deployments"},"code":404}"#,
        );
        check(
            &Status::unknown_resource(),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}"#,
        );
        check(
            &Status::unauthorized(),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#,
        );
        check(
            &Status::untyped("boom"),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"boom","code":500}"#,
        );
        check(
            &Status::deleted(&GroupResource::new("", "configmaps"), "c", "u-1"),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"c","kind":"configmaps","uid":"u-1"}}"#,
        );
    }

    #[test]
    fn causes_and_tokens_are_written() {
        let errors = [field::Error::required(&field::Path::new("spec"), "")];
        check(
            &Status::invalid(&GroupKind::new("", "Pod"), "p", &errors),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Pod \"p\" is invalid: spec: Required value","reason":"Invalid","details":{"name":"p","kind":"Pod","causes":[{"reason":"FieldValueRequired","message":"Required value","field":"spec"}]},"code":422}"#,
        );
        let expired = serde_json::to_value(Status::continue_expired(Some("tok"))).expect("JSON");
        assert_eq!(expired["metadata"], serde_json::json!({"continue": "tok"}));
    }

    #[test]
    fn a_sparse_status_of_a_webhook_is_read() {
        let status: Status = serde_json::from_str(r#"{"reason":"Teapot","extra":1}"#).expect("sparse");
        assert_eq!(status.reason.as_str(), "Teapot");
        assert_eq!((status.code, status.outcome), (0, super::Outcome::Failure));
        let odd = r#"{"metadata":null,"status":"","message":null,"reason":null,"details":null,"code":-1}"#;
        assert_eq!(
            serde_json::from_str::<Status>(odd).expect("odd"),
            Status { code: 0, ..Status::untyped("") }
        );
    }
}
