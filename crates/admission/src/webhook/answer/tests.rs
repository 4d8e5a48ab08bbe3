use serde_json::json;

use super::*;

const UID: &str = "u-1";

fn answer(response: &Value) -> String {
    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}).to_string()
}

fn refusal(body: &str, mutating: bool) -> String {
    match read(body.as_bytes(), ReviewVersion::V1, UID, mutating).expect_err(body) {
        BadAnswer::Unreadable(why) => format!("unreadable: {why}"),
        BadAnswer::Invalid(why) => format!("invalid: {why}"),
    }
}

#[test]
fn a_whole_answer_is_read() {
    let body = answer(&json!({
        "uid": UID, "allowed": true, "patch": "W10=", "patchType": "JSONPatch", "warnings": ["w"],
        "auditAnnotations": {"k": "v"}, "status": {"message": "m"},
    }));
    let read = read(body.as_bytes(), ReviewVersion::V1, UID, true).expect("an answer");
    assert_eq!(
        read,
        Answer {
            allowed: true,
            patch: b"[]".to_vec(),
            patch_type: "JSONPatch".to_owned(),
            status: json!({"message": "m"}).as_object().cloned(),
            warnings: vec!["w".to_owned()],
            audit_annotations: vec![("k".to_owned(), "v".to_owned())],
        }
    );
}

/// Every text is what kube-apiserver said to the same answer.
#[test]
fn what_is_no_answer_is_refused_in_upstreams_words() {
    let struct_type = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                       \"json:\\\"kind,omitempty\\\"\" }";
    let unmarshal = |found: &str| {
        format!(
            "unreadable: couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of \
             type {struct_type}"
        )
    };
    for (body, why) in [
        ("this is not json".to_owned(), unmarshal("string")),
        ("[]".to_owned(), unmarshal("array")),
        ("null".to_owned(), "invalid: webhook response was absent".to_owned()),
        (
            r#"{"kind":"Pod","apiVersion":"v1"}"#.to_owned(),
            "unreadable: no kind \"Pod\" is registered for version \"v1\" in scheme \"pkg/util/webhook/client.go:71\""
                .to_owned(),
        ),
        (
            json!({"response": {"uid": UID, "allowed": true}}).to_string(),
            "invalid: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=".to_owned(),
        ),
        (
            r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}"#.to_owned(),
            "invalid: webhook response was absent".to_owned(),
        ),
        (
            answer(&json!({"allowed": "yes", "uid": "x"})),
            "unreadable: json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type \
             bool"
                .to_owned(),
        ),
        (
            r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","response":{}}"#.to_owned(),
            "unreadable: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion".to_owned(),
        ),
        (
            answer(&json!({"uid": "wrong"})),
            "invalid: expected response.uid=\"u-1\", got \"wrong\"".to_owned(),
        ),
    ] {
        assert_eq!(refusal(&body, false), why, "{body}");
    }
}

#[test]
fn a_patch_has_a_type_and_only_mutating_webhooks_have_one() {
    let patch = answer(&json!({"uid": UID, "patch": "W10="}));
    let patch_type = answer(&json!({"uid": UID, "patchType": "JSONPatch"}));
    for (body, mutating, why) in [
        (&patch, true, "invalid: webhook returned response.patch but not response.patchType"),
        (&patch_type, true, "invalid: webhook returned response.patchType but not response.patch"),
        (&patch, false, "invalid: validating webhook may not return response.patch"),
        (&patch_type, false, "invalid: validating webhook may not return response.patchType"),
    ] {
        assert_eq!(refusal(body, mutating), why);
    }
    let old = r#"{"response":{"patch":"W10=","uid":"other"}}"#;
    let read = read(old.as_bytes(), ReviewVersion::V1Beta1, UID, true).expect("the older version is lenient");
    assert_eq!(read.patch_type, "JSONPatch");
}

#[test]
fn denials_are_told_in_the_name_of_the_webhook() {
    let deny = |status: Value| denial("hook.example.org", status.as_object());
    let denied = "admission webhook \"hook.example.org\" denied the request";
    let status = deny(Value::Null);
    assert_eq!((status.code, status.message), (400, format!("{denied} without explanation")));
    let status = deny(json!({"message": "no way", "code": 418, "reason": "Teapot"}));
    assert_eq!((status.code, status.message), (418, format!("{denied}: no way")));
    assert_eq!(status.reason.as_str(), "Teapot");
    let status = deny(json!({"reason": "Because", "code": 200, "status": "Success"}));
    assert_eq!((status.code, status.message), (400, format!("{denied}: Because")));
    assert_eq!(status.outcome, Outcome::Failure);
    let status = deny(json!({"message": "m", "details": {"name": "n", "causes": [{"message": "c"}]}}));
    assert_eq!(status.details.map(|details| details.causes.len()), Some(1));
}
