use super::*;

fn reference(name: &str) -> Reference {
    Reference { name: name.to_owned(), uid: format!("{name}-uid") }
}

fn claims() -> Claims {
    Claims {
        subject: username("ns", "sa"),
        audiences: vec!["api".to_owned(), "vault".to_owned()],
        id: "an-id".to_owned(),
        issued_at: Some(1000),
        not_before: Some(1000),
        expires: Some(4600),
    }
}

fn bound() -> Bound {
    Bound { namespace: "ns".to_owned(), account: reference("sa"), ..Bound::default() }
}

#[test]
fn tokens_say_what_upstreams_say() {
    let base = json!({"namespace": "ns", "serviceaccount": {"name": "sa", "uid": "sa-uid"}});
    let with = |name: &str, value: Value| {
        let mut private = base.clone();
        private[name] = value;
        private
    };
    let no_uid = Reference { name: "gone".to_owned(), uid: String::new() };
    for (bound, private) in [
        (bound(), base.clone()),
        (Bound { pod: Some(reference("p")), ..bound() }, with("pod", json!({"name": "p", "uid": "p-uid"}))),
        (
            Bound { secret: Some(reference("s")), ..bound() },
            with("secret", json!({"name": "s", "uid": "s-uid"})),
        ),
        (Bound { node: Some(no_uid), ..bound() }, with("node", json!({"name": "gone"}))),
        (Bound { warn_after: Some(4607), ..bound() }, with("warnafter", json!(4607))),
    ] {
        let payload = bound.to_json(&claims());
        let expected = json!({
            "aud": ["api", "vault"], "exp": 4600, "iat": 1000, "jti": "an-id", "nbf": 1000,
            "sub": "system:serviceaccount:ns:sa", "kubernetes.io": private,
        });
        assert_eq!(Value::Object(payload.clone()), expected);
        assert_eq!(Bound::from_json(&payload), bound);
        assert_eq!(Claims::from_json(&payload), Some(claims()));
    }
}

#[test]
fn tokens_of_secrets_say_what_upstreams_say() {
    let legacy = Legacy { namespace: "ns".to_owned(), account: reference("sa"), secret: "s".to_owned() };
    let payload = legacy.to_json();
    let expected = json!({
        "sub": "system:serviceaccount:ns:sa",
        "kubernetes.io/serviceaccount/namespace": "ns",
        "kubernetes.io/serviceaccount/secret.name": "s",
        "kubernetes.io/serviceaccount/service-account.name": "sa",
        "kubernetes.io/serviceaccount/service-account.uid": "sa-uid",
    });
    assert_eq!(Value::Object(payload.clone()), expected);
    assert_eq!(Legacy::from_json(&payload), legacy);
    assert_eq!(legacy.check("system:serviceaccount:ns:sa"), Ok(()));
    assert_eq!(legacy.check("system:serviceaccount:ns:other"), Err("sub claim is invalid"));
    assert_eq!(legacy.check(""), Err("sub claim is missing"));
    let without = Legacy { secret: String::new(), ..legacy };
    assert_eq!(without.check("system:serviceaccount:ns:sa"), Err("secretName claim is missing"));
}

#[test]
fn times_are_believed_for_a_minute_more() {
    let expired = Err("service account token has expired");
    let early = Err("service account token is not valid yet");
    for (now, expected) in [
        (939, early),
        (940, Ok(())),
        (1000, Ok(())),
        (4660, Ok(())),
        (4661, expired),
        (i64::MAX, expired),
        (i64::MIN, early),
    ] {
        assert_eq!(claims().check_time(now), expected, "{now}");
    }
    let issued_later = Claims { not_before: None, issued_at: Some(2000), ..claims() };
    assert_eq!(issued_later.check_time(1000), Err("service account token is issued in the future"));
    assert_eq!(Claims::default().check_time(0), Ok(()), "what is not said is not checked");
}

#[test]
fn claims_of_a_wrong_type_are_not_read() {
    let read = |payload: Value| Claims::from_json(payload.as_object().expect("an object"));
    for payload in [
        json!({"aud": 1}),
        json!({"aud": ["a", 1]}),
        json!({"exp": "tomorrow"}),
        json!({"nbf": {}}),
        json!({"iat": true}),
    ] {
        assert_eq!(read(payload.clone()), None, "{payload}");
    }
    let read = read(json!({"aud": "one", "exp": 12.9, "nbf": null})).expect("good");
    assert_eq!((read.audiences, read.expires, read.not_before), (vec!["one".to_owned()], Some(12), None));
}
