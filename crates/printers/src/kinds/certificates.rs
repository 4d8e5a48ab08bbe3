//! Certificates and who asks for them.

use jiff::{SignedDuration, Timestamp};

use crate::column::{AGE, NAME};
use crate::duration::human_duration;
use crate::fields::Fields;
use crate::format::{NONE, age, labels};
use crate::printer::BuiltIn;
use crate::{Column, Printer, Row};

pub(super) fn printer(kind: &str) -> Option<&'static dyn Printer> {
    match kind {
        "CertificateSigningRequest" => Some(&SIGNING_REQUEST),
        "ClusterTrustBundle" => Some(&TRUST_BUNDLE),
        "PodCertificateRequest" => Some(&POD_REQUEST),
        _ => None,
    }
}

const SIGNER: Column = Column::string("SignerName", "Who signs.");

static SIGNING_REQUEST: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        AGE,
        SIGNER,
        Column::string("Requestor", "User who asks."),
        Column::string("RequestedDuration", "How long the certificate should be valid."),
        Column::string("Condition", "What was decided."),
    ],
    print: signing_request,
};

fn signing_request(object: Fields<'_>, now: Timestamp) -> Row {
    let spec = object.at("spec");
    let duration = spec.optional_int("expirationSeconds").map(SignedDuration::from_secs);
    row![
        object.name(),
        age(object, now),
        spec.text_or("signerName", NONE),
        spec.text("username"),
        duration.map_or_else(|| NONE.to_owned(), human_duration),
        decision(object.at("status")),
    ]
}

/// A denial outweighs an approval.
fn decision(status: Fields<'_>) -> String {
    let has = |condition_type| status.condition(condition_type).is_some();
    let decided = ["Denied", "Approved"].into_iter().find(|decision| has(decision)).unwrap_or("Pending");
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if status.text("certificate").is_empty() { "" } else { ",Issued" };
    format!("{decided}{failed}{issued}")
}

static TRUST_BUNDLE: BuiltIn = BuiltIn { columns: &[NAME, SIGNER], print: trust_bundle };

fn trust_bundle(object: Fields<'_>, _now: Timestamp) -> Row {
    row![object.name(), object.at("spec").text_or("signerName", NONE)]
}

static POD_REQUEST: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("PodName", "Pod that gets the certificate."),
        Column::string("ServiceAccountName", "Service account of the pod."),
        Column::string("NodeName", "Node that runs the pod."),
        SIGNER,
        Column::string("State", "What became of the request."),
        Column::string("UnverifiedUserAnnotations", "What the pod's author adds, unchecked."),
    ],
    print: pod_request,
};

fn pod_request(object: Fields<'_>, _now: Timestamp) -> Row {
    let spec = object.at("spec");
    let mut types = object.at("status").items("conditions").map(|condition| condition.text("type"));
    let state = types.rfind(|state| matches!(*state, "Issued" | "Denied" | "Failed"));
    row![
        object.name(),
        spec.text("podName"),
        spec.text("serviceAccountName"),
        spec.text("nodeName"),
        spec.text("signerName"),
        state.unwrap_or("Pending"),
        labels(spec, "unverifiedUserAnnotations"),
    ]
}
