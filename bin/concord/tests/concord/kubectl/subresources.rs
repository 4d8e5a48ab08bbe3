//! What has verbs of its own, and what goes by itself.

use std::time::{Duration, Instant};

use tempfile::tempdir;

use super::{BOTH, Engine, Kubectl, assert_has};
use crate::support::SOON;

/// A request for a certificate of somebody, in PEM and base64.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIY01JR0VBZ0VBTUNJeERUQUxCZ05WQkFvTUJIUmxjM1F4RVRBUEJnTlZCQU1NQ0hOdmJXVmliMlI1TUZrdwpFd1lIS29aSXpqMENBUVlJS29aSXpqMERBUWNEUWdBRWFsazY2eEsrejdpanJFc0ovRzRyK2V4dHcyZmN6NGt5CmprdW05UElEbHRyc25ReTJ4eEtIMW02cG1TekliWEI4c2xiV0RGRUJNYUtTWGcremlNelRkcUFBTUFvR0NDcUcKU000OUJBTUNBMGNBTUVRQ0lIeHNxTXkzSG51UEcyUmIwTlhuNGc1RkxZc2dEV2hEZWFqTkhCVHJWdUs3QWlCTApKSjF5REw1YUNJOXgvVUhoM3p6S0lNd1hvNUZ1VytVV1lrK1dna1BkZ0E9PQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";

#[tokio::test(flavor = "multi_thread")]
async fn requests_for_certificates_are_approved_and_denied() {
    let Some(kubectl) = Kubectl::start(Engine::Embedded).await else { return };
    for (name, verb, condition) in [("good", "approve", "Approved"), ("bad", "deny", "Denied")] {
        let object = format!(
            r#"{{"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {{"name": "{name}"}},
                "spec": {{"request": "{REQUEST}", "signerName": "example.com/signer", "usages": ["client auth"]}}}}"#
        );
        kubectl.ok(&["create", "-f", &kubectl.file("request.json", &object)]);
        assert_has(
            &kubectl.ok(&["get", "csr", name]),
            &["Pending", "example.com/signer", "kubernetes-admin"],
        );
        // Who changes the object, or its status, approves of nothing.
        let approved =
            r#"{"status":{"conditions":[{"type":"Approved","status":"True","reason":"R","message":"m"}]}}"#;
        let by_others =
            kubectl.fails(&["patch", "csr", name, "--subresource=status", "--type=merge", "-p", approved]);
        assert_has(&by_others, &["may not add a condition of type"]);
        kubectl.ok(&["certificate", verb, name]);
        assert_has(&kubectl.ok(&["get", "csr", name]), &[condition]);
        kubectl.ok(&[
            "wait",
            &format!("--for=condition={condition}"),
            &format!("csr/{name}"),
            "--timeout=30s",
        ]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_go_when_their_time_is_over() {
    for engine in BOTH {
        let flags = ["--event-ttl=2s".to_owned()];
        let Some(kubectl) = Kubectl::start_in(tempdir().expect("a directory"), engine, &flags).await else {
            return;
        };
        let event = r#"{"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"}, "reason": "R", "type": "Normal",
            "involvedObject": {"kind": "Namespace", "name": "default", "namespace": "default"}}"#;
        kubectl.ok(&["create", "-f", &kubectl.file("event.json", event)]);
        kubectl.ok(&["create", "cm", "stays"]);
        let begin = Instant::now();
        while kubectl.output(&["get", "event", "e"]).status.success() {
            assert!(begin.elapsed() < SOON, "not in time: the event is gone");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        kubectl.ok(&["get", "cm", "stays"]);
    }
}
