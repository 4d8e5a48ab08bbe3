use super::*;
use crate::testing::{P256, RSA, signing_key};

fn encoded(value: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(concord_codec::encode(value))
}

/// A token with any header, signed by the key.
fn with_header(key: &SigningKey, header: &Value) -> String {
    let message = format!("{}.{}", encoded(header), encoded(&json!({"iss": "me"})));
    let signature = key.sign(message.as_bytes()).expect("signed");
    format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
}

fn is_verified(token: &str, key: &SigningKey) -> bool {
    Unverified::parse(token).is_some_and(|token| token.verify(key.public()).is_some())
}

#[test]
fn a_token_is_verified_by_its_own_key_alone() {
    let keys = [signing_key(P256), signing_key(RSA)];
    for (index, key) in keys.iter().enumerate() {
        let token = sign(key, &json!({"iss": "me", "a": "<&>"})).expect("signed");
        let parsed = Unverified::parse(&token).expect("a token");
        assert_eq!((parsed.issuer(), parsed.key_id()), ("me", key.public().id()));
        assert!(is_verified(&token, key));
        assert!(!is_verified(&token, &keys[1 - index]));
        assert!(token.starts_with(&format!("{}.", encoded(&parsed.header.clone().into()))));
    }
}

#[test]
fn a_token_does_not_choose_how_it_is_verified() {
    let key = signing_key(P256);
    let good = json!({"alg": "ES256"});
    assert!(is_verified(&with_header(&key, &good), &key), "the name of the key is not needed");
    for header in [
        json!({}),
        json!({"alg": "none"}),
        json!({"alg": "None"}),
        json!({"alg": ""}),
        json!({"alg": "es256"}),
        json!({"alg": "HS256"}),
        json!({"alg": "RS256"}),
        json!({"alg": "ES384"}),
        json!({"alg": ["ES256"]}),
        json!({"alg": "ES256", "crit": ["b64"], "b64": false}),
        json!({"alg": "ES256", "crit": []}),
    ] {
        assert!(!is_verified(&with_header(&key, &header), &key), "{header}");
    }
}

#[test]
fn an_unsigned_token_is_no_token() {
    let key = signing_key(P256);
    for header in [json!({"alg": "none"}), json!({"alg": "ES256"})] {
        let message = format!("{}.{}", encoded(&header), encoded(&json!({"iss": "me"})));
        for signature in ["", "AAAA", &"A".repeat(86), &"A".repeat(96)] {
            assert!(!is_verified(&format!("{message}.{signature}"), &key), "{header} {signature}");
        }
    }
    // The key that everybody knows is not a secret to sign with.
    let message = format!("{}.{}", encoded(&json!({"alg": "HS256"})), encoded(&json!({"iss": "me"})));
    let public = include_bytes!("../../testdata/p256.pub");
    let hmac = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, public);
    let signature = BASE64_URL_SAFE_NO_PAD.encode(aws_lc_rs::hmac::sign(&hmac, message.as_bytes()));
    assert!(!is_verified(&format!("{message}.{signature}"), &key));
}

#[test]
fn a_token_that_was_changed_is_refused() {
    let key = signing_key(P256);
    let token = sign(&key, &json!({"iss": "me", "sub": "somebody"})).expect("signed");
    for end in 0..token.len() {
        assert!(!is_verified(&token[..end], &key), "cut after {end}");
    }
    for at in 0..token.len() {
        let mut changed = token.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).expect("ASCII");
        assert!(!is_verified(&changed, &key), "changed at {at}");
    }
    for added in [
        format!("{token}."),
        format!(".{token}"),
        format!("{token}=="),
        format!("{token}\n"),
        format!("a.{token}"),
    ] {
        assert!(!is_verified(&added, &key), "{added}");
    }
}

#[test]
fn what_can_be_read_in_two_ways_is_no_token() {
    let twice = BASE64_URL_SAFE_NO_PAD.encode(r#"{"alg":"none","alg":"ES256"}"#);
    let payload = encoded(&json!({}));
    for token in [
        String::new(),
        "..".to_owned(),
        format!("{twice}.{payload}.AAAA"),
        format!("{}.{payload}.AAAA", BASE64_URL_SAFE_NO_PAD.encode("[]")),
        format!("{payload}.{}.AAAA", BASE64_URL_SAFE_NO_PAD.encode("{")),
        format!("{payload}.{payload}.A"),
        format!("{payload}.{payload}.{}", "A".repeat(MAX_BYTES)),
    ] {
        assert!(Unverified::parse(&token).is_none(), "{token:.80}");
    }
}
