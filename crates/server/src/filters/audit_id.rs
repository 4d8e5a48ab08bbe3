use http::{HeaderName, HeaderValue};

use crate::{
    http::{Filter, Request, Response},
    random,
};

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Gives every request an id and tells it to the client, so that an answer can be found in the log. An id
/// that the client brings is kept: it may have crossed other servers before.
pub(crate) struct AuditId<H>(pub(crate) H);

impl<H: Filter> Filter for AuditId<H> {
    async fn call(&self, mut request: Box<Request>) -> Response {
        let mut id = match request.headers().get(&AUDIT_ID) {
            Some(id) if !id.is_empty() => id.clone(),
            _ => random_id(),
        };
        keep_out_of_tables(&mut id);
        request.headers_mut().insert(AUDIT_ID, id.clone());
        let mut response = self.0.call(request).await;
        // An answer that came from another server has its id already.
        keep_out_of_tables(response.headers_mut().entry(AUDIT_ID).or_insert(id));
        response
    }
}

/// No two requests have the same id. HTTP/2 would keep each in the table of what was sent before, push out for it what is sent
/// again and again, and compare it with all other ids that are there, which are about fifty.
fn keep_out_of_tables(id: &mut HeaderValue) {
    id.set_sensitive(true);
}

/// A random UUID (version 4).
fn random_id() -> HeaderValue {
    let random = random::u128();
    let bits = random & !(0xf << 76) | 0x4 << 76;
    let mut bits = bits & !(0x3 << 62) | 0x2 << 62;
    let mut id = *b"00000000-0000-0000-0000-000000000000";
    for digit in id.iter_mut().rev().filter(|digit| **digit != b'-') {
        *digit = b"0123456789abcdef"[(bits & 0xf) as usize];
        bits >>= 4;
    }
    HeaderValue::from_bytes(&id).expect("hexadecimal digits and dashes are a valid header value")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::{Echo, request};

    async fn id_for(given: Option<&'static str>) -> String {
        let mut request = request("GET", "/");
        if let Some(given) = given {
            request.headers_mut().insert(AUDIT_ID, HeaderValue::from_static(given));
        }
        let response = AuditId(Echo).call(request.into()).await;
        response.headers()["audit-id"].to_str().expect("text").to_owned()
    }

    #[tokio::test]
    async fn no_id_is_kept_for_the_next_request() {
        struct Behind;
        impl Filter for Behind {
            async fn call(&self, request: Box<Request>) -> Response {
                assert!(request.headers()[AUDIT_ID].is_sensitive(), "also if the request is sent on");
                let mut response = Response::new(crate::http::full("answered elsewhere"));
                response.headers_mut().insert(AUDIT_ID, HeaderValue::from_static("of another server"));
                response
            }
        }
        for response in [
            AuditId(Echo).call(request("GET", "/").into()).await,
            AuditId(Behind).call(request("GET", "/").into()).await,
        ] {
            assert!(response.headers()[AUDIT_ID].is_sensitive(), "{response:?}");
        }
    }

    #[tokio::test]
    async fn a_given_id_is_kept_and_a_missing_one_is_made() {
        assert_eq!(id_for(Some("mine")).await, "mine");
        let (one, other) = (id_for(None).await, id_for(Some("")).await);
        assert_ne!(one, other);
        for id in [one, other] {
            assert_eq!(id.len(), 36, "{id}");
            assert_eq!(&id[14..15], "4", "{id} should be of version 4");
            assert!("89ab".contains(&id[19..20]), "{id} should be of the RFC 9562 variant");
        }
    }
}
