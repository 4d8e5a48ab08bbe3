use async_trait::async_trait;
use concord_meta::Status;
use concord_registry::{Admission, Attributes, Object, Operation};
use concord_schema::decode_base64;
use serde_json::Value;
use x509_parser::{
    certification_request::X509CertificationRequest, pem::parse_x509_pem, prelude::FromDer as _,
    x509::X509Name,
};

use crate::{at, concerns, forbidden};

/// Who signs certificates of clients of the API server.
const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
/// The group of those who may do everything.
const MASTERS: &str = "system:masters";

/// Keeps the group of those who may do everything out of requests for certificates of clients.
#[derive(Debug, Default)]
pub struct CertificateSubjectRestriction;

#[async_trait]
impl Admission for CertificateSubjectRestriction {
    fn name(&self) -> &'static str {
        "CertificateSubjectRestriction"
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Object>) -> Result<(), Status> {
        let concerned = attributes.operation == Operation::Create
            && concerns(attributes, "certificates.k8s.io", "certificatesigningrequests", "");
        let text = |object: &Object, field: &str| {
            at(object, &["spec", field]).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let Some(request) = object.filter(|object| concerned && text(object, "signerName") == SIGNER) else {
            return Ok(());
        };
        let organizations = organizations(&text(request, "request"));
        let organizations =
            organizations.map_err(|why| forbidden(attributes, &format!("failed to parse CSR: {why}")))?;
        match organizations.iter().any(|organization| organization == MASTERS) {
            false => Ok(()),
            true => {
                let why = format!("use of {SIGNER} signer with {MASTERS} group is not allowed");
                Err(forbidden(attributes, &why))
            }
        }
    }
}

/// The organizations in the subject of a request: PEM, in base64.
fn organizations(encoded: &str) -> Result<Vec<String>, String> {
    let pick = |subject: &X509Name<'_>| {
        // A name that is not text is nobody's group.
        subject.iter_organization().filter_map(|name| name.as_str().ok().map(str::to_owned)).collect()
    };
    of_subject(encoded, pick)
}

/// The common name in the subject of a request: PEM, in base64. The last one counts, as in Go.
pub(crate) fn common_name(encoded: &str) -> Result<String, String> {
    let pick = |subject: &X509Name<'_>| {
        let names = subject.iter_common_name().filter_map(|name| name.as_str().ok().map(str::to_owned));
        names.last().unwrap_or_default()
    };
    of_subject(encoded, pick)
}

fn of_subject<T>(encoded: &str, pick: impl FnOnce(&X509Name<'_>) -> T) -> Result<T, String> {
    let malformed = |_| "asn1: structure error".to_owned();
    let pem =
        decode_base64(encoded.as_bytes()).map_err(|at| format!("illegal base64 data at input byte {at}"))?;
    let (_, pem) =
        parse_x509_pem(&pem).map_err(|_| "PEM block type must be CERTIFICATE REQUEST".to_owned())?;
    let (_, request) = X509CertificationRequest::from_der(&pem.contents).map_err(malformed)?;
    Ok(pick(&request.certification_request_info.subject))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of CN=a, O=system:masters and of CN=a, O=b; made with `openssl req -new -newkey ec`.
    const OF_MASTERS: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIZ01JR0hBZ0VBTUNVeEZ6QVZCZ05WQkFvTURuTjVjM1JsYlRwdFlYTjBaWEp6TVFvd0NBWURWUVFEREFGaApNRmt3RXdZSEtvWkl6ajBDQVFZSUtvWkl6ajBEQVFjRFFnQUVsUnl3UmhTd2lORUt4QXllNHlCbU1URWo3WWJvCjJaSDhYRW04YlFGWGtCZWordTB5MGhuRHd0S1FDcWtXaTJPZXA4Q1JadU1sSUdra24rK3FkeHZCcjZBQU1Bb0cKQ0NxR1NNNDlCQU1DQTBnQU1FVUNJUURJWUtmV2gzd0VrdmxBUUhMS3pBaHhRNzNIdjZEMjV5Z3pTSU9MWUdWUApHQUlnVDNKVUkxSWxyZ21jbHNWYmpTUDdERWVBRUx6alVOblFwbVlBalZ4S0lXQT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";
    const OF_OTHERS: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIU01Ib0NBUUF3R0RFS01BZ0dBMVVFQ2d3QllqRUtNQWdHQTFVRUF3d0JZVEJaTUJNR0J5cUdTTTQ5QWdFRwpDQ3FHU000OUF3RUhBMElBQkNyZXVpVnJaMzRMTHhvbVBhQlF5ZysyamJreUtmaU1KeFFkdk5PNit1UE0vQS9vCmd0MUF6RzRGWWRTcnFUdjRtVEQrZnNSUXF1eWZwQWdmMUZ5U0xrS2dBREFLQmdncWhrak9QUVFEQWdOSUFEQkYKQWlBSCs3dVNVd290WTlzdmdQN1FqRmhaV2RYSlpHNzJWMkdsV2FxZ0FxZXlpZ0loQUw5VEpMOENuVTRrck9IUApsano4ck82Mng1emZxTGdaOHpoQUplcDZPcEtKCi0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";

    #[test]
    fn organizations_are_found() {
        assert_eq!(organizations(OF_MASTERS), Ok(vec![MASTERS.to_owned()]));
        assert_eq!(organizations(OF_OTHERS), Ok(vec!["b".to_owned()]));
        assert!(organizations("").is_err() && organizations("aGVsbG8=").is_err());
        let no_request = "LS0tLS1CRUdJTiBYLS0tLS0KQUFBQQotLS0tLUVORCBYLS0tLS0K";
        assert!(organizations(no_request).is_err());
    }
}
