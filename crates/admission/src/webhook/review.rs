//! The question to a webhook: an AdmissionReview with a request.

use bytes::Bytes;
use concord_codec::encode;
use concord_registry::Object;
use serde_json::Value;

use super::Question;

/// A version of AdmissionReview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1Beta1,
}

impl ReviewVersion {
    /// The first that a webhook knows and this server does, too.
    pub(super) fn choose(known: &[String]) -> Option<Self> {
        known.iter().find_map(|version| match version.as_str() {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        })
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1Beta1 => "v1beta1",
        }
    }

    pub(super) fn api_version(self) -> String {
        format!("admission.k8s.io/{}", self.as_str())
    }
}

/// The request of a review, without the uid by which the answer is told from others.
pub(super) fn request(question: &Question) -> Object {
    let mut request = question.described.as_object().cloned().unwrap_or_default();
    request.insert("object".to_owned(), question.versioned.object.clone());
    request.insert("oldObject".to_owned(), question.versioned.old.clone());
    request
}

/// The body of the question.
pub(super) fn body(version: ReviewVersion, uid: &str, mut request: Object) -> Bytes {
    request.insert("uid".to_owned(), uid.into());
    let review = Object::from_iter([
        ("kind".to_owned(), "AdmissionReview".into()),
        ("apiVersion".to_owned(), version.api_version().into()),
        ("request".to_owned(), Value::Object(request)),
    ]);
    encode(&Value::Object(review)).into()
}
