use concord_server::full;
use http::header::CONTENT_TYPE;

use super::*;
use crate::testing::{P256, signing_key};

fn keys() -> VerificationKeys {
    let mut keys = VerificationKeys::default();
    keys.add_pem(include_bytes!("../../testdata/rsa.pub")).expect("a key");
    keys.add(signing_key(P256).public().clone());
    keys
}

fn openid(issuer: &str, jwks_uri: Option<&str>) -> Result<OpenId, Error> {
    let config = Config { issuers: vec![issuer.to_owned()], ..Config::default() };
    OpenId::new(&config, &keys(), jwks_uri, "192.0.2.1:6443")
}

#[test]
fn the_documents_are_upstreams() {
    let openid = openid("https://issuer", None).expect("good");
    assert_eq!(
        openid.documents.load().configuration,
        concat!(
            r#"{"issuer":"https://issuer","jwks_uri":"https://192.0.2.1:6443/openid/v1/jwks","#,
            r#""response_types_supported":["id_token"],"subject_types_supported":["public"],"#,
            r#""id_token_signing_alg_values_supported":["ES256","RS256"]}"#
        )
    );
    let keys = String::from_utf8(openid.documents.load().keys.to_vec()).expect("text");
    let rsa = concat!(
        r#"{"keys":[{"use":"sig","kty":"RSA","kid":"vOn07wAm5s3sgQO6pVJRzuy6sEjgr6Wnj4uMwlp3gEo","#,
        r#""alg":"RS256","n":""#
    );
    let p256 = concat!(
        r#""e":"AQAB"},{"use":"sig","kty":"EC","kid":"ao4MAE8gNSZ1C5Jkx3MiU9voNKRvJkSZ5KUAeHzHvMU","#,
        r#""crv":"P-256","alg":"ES256","x":"B0tyV1iG5kAZEQZk6lHYI8s-4jOhRkmIVxH3WhEvZeU","#,
        r#""y":"xtOx5v3cBDWrifXZX7oDbY44CaVgxjnwh9TGF8pLOv0"}]}"#
    );
    assert!(keys.starts_with(rsa) && keys.ends_with(p256), "{keys}");
}

#[test]
fn issuers_that_nobody_could_trust_are_not_published() {
    for (issuer, jwks_uri, complaint) in [
        ("http://issuer", None, "issuer URL must use https scheme, got: http://issuer"),
        ("kubernetes/serviceaccount", None, "issuer URL must"),
        ("https://issuer?a=b", None, "issuer URL may not include a query"),
        ("https://issuer#a", None, "issuer URL may not include a fragment"),
        ("https://issuer", Some("http://keys"), "jwksURI requires https scheme, parsed as: http://keys"),
    ] {
        let error = openid(issuer, jwks_uri).err().expect("refused").to_string();
        assert!(error.starts_with(complaint), "{error}");
    }
    let elsewhere = openid("https://issuer", Some("https://keys/jwks")).expect("good");
    assert!(
        String::from_utf8_lossy(&elsewhere.documents.load().configuration)
            .contains(r#""jwks_uri":"https://keys/jwks""#)
    );
}

#[test]
fn keys_can_be_replaced() {
    let openid = openid("https://issuer", None).expect("good");
    openid.replace_keys(&VerificationKeys::default()).expect("good");
    assert_eq!(openid.documents.load().keys, r#"{"keys":[]}"#);
}

#[tokio::test]
async fn the_documents_may_be_kept() {
    let openid = openid("https://issuer", None).expect("good");
    let (json, key_set) = ("application/json", "application/jwk-set+json");
    let kept = Some("public, max-age=3600");
    for (method, path, accept, status, content_type, cache_control) in [
        ("GET", "/openid/v1/jwks", "*/*", 200, key_set, kept),
        ("GET", "/openid/v1/jwks/", "text/html, application/jwk-set+json;q=0.5", 200, key_set, kept),
        ("GET", "/openid/v1/jwks", json, 406, json, None),
        ("GET", CONFIGURATION, json, 200, json, kept),
        ("POST", CONFIGURATION, json, 405, json, None),
    ] {
        assert!(OpenId::answers(path));
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(ACCEPT, accept)
            .body(full(""))
            .expect("a request");
        let answer = openid.handle(request).await;
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()[CONTENT_TYPE]),
            (status, &content_type.parse().expect("a header"))
        );
        let kept = answer.headers().get(CACHE_CONTROL).map(|value| value.to_str().expect("text"));
        assert_eq!(kept, cache_control, "{method} {path}");
    }
    assert!(!OpenId::answers("/openid") && !OpenId::answers("/openid/v1"));
}
